/* SPDX-License-Identifier: Apache-2.0 */
/* What one access log line costs a worker: nanoseconds of thread CPU per line, formatting and queueing, with
 * the writer running and carrying the rings to a file; and what the writer costs. Paced so that the writer
 * keeps up, as on a server: a worker that only logs would measure a full ring.
 *
 *     build/bench/bench_accesslog [FILE] [WORKERS]        default: /dev/null 1 */
#include "core/clock.h"
#include "observe/accesslog.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_PER_BATCH = 250, BATCHES = 800, WORKERS_MAX = 64 };

struct worker {
    struct accesslog *log;
    const struct accesslog_format *format;
    uint32_t index;
    pthread_t thread;
    uint64_t busy_ns, least_ns, dropped;
    uint64_t all_ns; /* CPU of the thread, its pauses included */
};

static void run_batch(struct worker *w, struct accesslog_entry *entry)
{
    uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < LINES_PER_BATCH; i++) {
        entry->wall_ns += 13000; /* 77,000 requests a second */
        entry->duration_us = 80 + (uint64_t)i;
        entry->sent_bytes += 11;
        if (!accesslog_write(w->log, w->index, w->format, entry))
            w->dropped++;
    }
    uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
    w->busy_ns += ns;
    if (ns < w->least_ns)
        w->least_ns = ns;
}

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    struct accesslog_entry entry = {
        .wall_ns = clock_wall_ns(),
        .duration_us = 180,
        .upstream_us = 120,
        .peer_port = 40112,
        .listener = SLICE("checkout/8080"),
        .rule = SLICE("api"),
        .group = SLICE("web"),
        .target = SLICE("10.1.4.21:8080"),
        .method = SLICE("GET"),
        .host = SLICE("shop.example.com"),
        .path = SLICE("/v2/articles/7718/prices"),
        .query = SLICE("currency=eur&page=2"),
        .request_id = SLICE("0190a5d4-8f2e-7c3a-9b1d-1234567890ab"),
        .user_agent = SLICE("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        .referer = SLICE("https://shop.example.com/articles"),
        .protocol = "HTTP/1.1",
        .status = 200,
        .received_bytes = 512,
        .sent_bytes = 1024,
        .attempts = 1,
        .reason = "-",
    };
    ip_parse(SLICE("203.0.113.77"), &entry.client);
    ip_parse(SLICE("203.0.113.77"), &entry.peer);
    for (int i = 0; i < BATCHES; i++) {
        run_batch(w, &entry);
        usleep(LINES_PER_BATCH * 13);
    }
    w->all_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void run(const char *file, const char *format_text, uint32_t n_workers)
{
    static struct worker workers[WORKERS_MAX];
    struct accesslog *log;
    struct accesslog_format *format;
    struct slice what;
    uint64_t start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (accesslog_format_compile(slice_str(format_text), &format, &what) ||
        accesslog_open(slice_str(file), n_workers, &log))
        exit(1);
    for (uint32_t i = 0; i < n_workers; i++) {
        workers[i] = (struct worker){.log = log, .format = format, .index = i, .least_ns = UINT64_MAX};
        pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
    }
    uint64_t busy_ns = 0, dropped = 0, least_ns = UINT64_MAX, workers_ns = 0;
    for (uint32_t i = 0; i < n_workers; i++) {
        pthread_join(workers[i].thread, NULL);
        busy_ns += workers[i].busy_ns, dropped += workers[i].dropped, workers_ns += workers[i].all_ns;
        least_ns = workers[i].least_ns < least_ns ? workers[i].least_ns : least_ns;
    }
    uint64_t lines = (uint64_t)LINES_PER_BATCH * BATCHES * n_workers;
    accesslog_close(&log);
    uint64_t writer_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns - workers_ns;
    printf("%-9s %9.0f %9.0f %9.0f %9llu %9llu\n", format_text, (double)busy_ns / (double)lines,
           (double)least_ns / LINES_PER_BATCH, (double)writer_ns / (double)lines, (unsigned long long)lines,
           (unsigned long long)dropped);
    accesslog_format_free(format);
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "/dev/null";
    uint32_t n_workers = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    if (n_workers < 1 || n_workers > WORKERS_MAX)
        return 2;
    printf("%-9s %9s %9s %9s %9s %9s\n", "format", "ns/line", "best", "writer", "lines", "dropped");
    run(file, "json", n_workers);
    run(file, "combined", n_workers);
    return 0;
}
