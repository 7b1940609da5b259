/* SPDX-License-Identifier: Apache-2.0 */
/* What active checks cost: CPU of the health thread as a share of one core, for N targets every INTERVAL ms
 * over SECONDS, against a small HTTP server in this process, whose own CPU is taken off. On loopback the
 * kernel does the server's half of each packet on the client's time, so the share is more than it is across a
 * network.
 *
 *     build/bench/bench_health [N] [INTERVAL_MS] [SECONDS]        default: 500 5000 20 */
#include "core/clock.h"
#include "core/log.h"
#include "health/health.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int listener;
static struct net_addr addr;

static void listen_on_loopback(void)
{
    struct ip_addr ip;
    socklen_t len = sizeof(addr.in4);
    ip_parse(SLICE("127.0.0.1"), &ip);
    net_addr_ip(&addr, &ip, 0);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, &addr.sa, addr.len) || listen(listener, 4096) || getsockname(listener, &addr.sa, &len))
        exit(1);
}

static void *serve(void *arg)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    char request[1024];
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0)
            (void)!send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 500;
    uint32_t interval_ms = argc > 2 ? (uint32_t)atoi(argv[2]) : 5000;
    uint32_t seconds = argc > 3 ? (uint32_t)atoi(argv[3]) : 20;
    static struct config_status_range good[] = {{200, 399}};
    struct config_health_check check = {.type = CONFIG_HEALTH_HTTP,
                                        .path = SLICE("/healthz"),
                                        .method = SLICE("GET"),
                                        .expect = good,
                                        .n_expect = 1,
                                        .interval_ms = interval_ms,
                                        .timeout_ms = 2000,
                                        .healthy_threshold = 2,
                                        .unhealthy_threshold = 3};
    struct health *health;
    struct health_status *statuses = calloc(n, sizeof(*statuses));
    struct health_spec *specs = calloc(n, sizeof(*specs));
    char(*names)[16] = calloc(n, sizeof(*names));
    pthread_t server;
    clockid_t server_clock;
    if (!statuses || !specs || !names || health_start(&health))
        return 1;
    log_set_level(LOG_LEVEL_WARNING);
    listen_on_loopback();
    pthread_create(&server, NULL, serve, NULL);
    pthread_getcpuclockid(server, &server_clock);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof(names[i]), "t%u", i);
        specs[i] = (struct health_spec){.group = SLICE("bench"),
                                        .name = slice_str(names[i]),
                                        .addr = addr,
                                        .check = &check,
                                        .status = &statuses[i],
                                        .enabled = true};
    }
    uint64_t start_ns = clock_mono_ns();
    health_apply(health, specs, n);
    bool is_settled = health_settle(health, 10000);
    printf("%u targets %s in %llu ms\n", n, is_settled ? "ACTIVE" : "not settled",
           (unsigned long long)((clock_mono_ns() - start_ns) / NS_PER_MS));
    sleep(1);

    uint64_t all_ns = cpu_ns(), served_ns = clock_ns(server_clock), wall_ns = clock_mono_ns(), before = 0,
             checks = 0;
    for (uint32_t i = 0; i < n; i++)
        before += atomic_load(&statuses[i].checks);
    sleep(seconds);
    uint64_t spent_ns = cpu_ns() - all_ns - (clock_ns(server_clock) - served_ns);
    wall_ns = clock_mono_ns() - wall_ns;
    for (uint32_t i = 0; i < n; i++)
        checks += atomic_load(&statuses[i].checks);
    checks -= before;
    printf("%.2f%% of a core, %.1f checks/s, %.0f us of CPU per check\n",
           100.0 * (double)spent_ns / (double)wall_ns, (double)checks * 1e9 / (double)wall_ns,
           (double)spent_ns / 1e3 / (double)(checks ? checks : 1));
    health_stop(&health);
    return 0;
}
