/* SPDX-License-Identifier: Apache-2.0 */
/* UDP echo, both ends. `udpload echo PORT` answers every datagram with itself, in batches. `udpload load PORT
 * CLIENTS BYTES SECONDS PID` keeps one datagram under way on each of CLIENTS sockets (closed loop) and prints
 * echoes, losses (sent again after a second) and the CPU time that process PID took meanwhile, in
 * nanoseconds. `udpload bulk PORT BYTES WINDOW SECONDS PID` keeps WINDOW datagrams under way on one socket.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, BYTES_MAX = 2048 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Time on CPU of all threads of a process. */
static uint64_t cpu_ns(const char *pid)
{
    char path[300];
    uint64_t sum = 0;
    snprintf(path, sizeof(path), "/proc/%s/task", pid);
    DIR *dir = opendir(path);
    if (!dir)
        die(path);
    for (struct dirent *entry; (entry = readdir(dir));) {
        unsigned long long ran = 0;
        snprintf(path, sizeof(path), "/proc/%s/task/%s/schedstat", pid, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file && fscanf(file, "%llu", &ran) == 1)
            sum += ran;
        if (file)
            fclose(file);
    }
    closedir(dir);
    return sum;
}

static struct sockaddr_in loopback(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int client(const char *port)
{
    struct sockaddr_in addr = loopback(port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        die("connect");
    return fd;
}

static int echo(const char *port)
{
    static char data[BATCH][BYTES_MAX];
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    struct sockaddr_in peers[BATCH], addr = loopback(port);
    int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 8 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        die("bind");
    for (;;) {
        for (int i = 0; i < BATCH; i++) {
            iov[i] = (struct iovec){data[i], BYTES_MAX};
            msgs[i].msg_hdr = (struct msghdr){
                .msg_name = &peers[i], .msg_namelen = sizeof(peers[i]), .msg_iov = &iov[i], .msg_iovlen = 1};
        }
        int n = recvmmsg(fd, msgs, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < n; i++)
            iov[i].iov_len = msgs[i].msg_len;
        if (n > 0)
            sendmmsg(fd, msgs, (unsigned)n, 0);
    }
}

struct slot {
    int fd;
    uint64_t sent_ns;
};

static void report(uint64_t echoes, uint64_t lost, uint64_t took_ns, uint64_t cpu)
{
    printf("{\"echoes\": %llu, \"lost\": %llu, \"seconds\": %.3f, \"cpu_ns\": %llu}\n",
           (unsigned long long)echoes, (unsigned long long)lost, (double)took_ns / 1e9,
           (unsigned long long)cpu);
}

static int load(const char *port, int n, size_t bytes, double seconds, const char *pid)
{
    static char data[BYTES_MAX];
    struct slot *slots = calloc((size_t)n, sizeof(*slots));
    int epoll = epoll_create1(0);
    uint64_t echoes = 0, lost = 0, begun = 0, cpu = 0, end = 0;
    for (int i = 0; i < n; i++) {
        slots[i].fd = client(port);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, slots[i].fd, &event);
    }
    uint64_t started = now_ns(), next_check = started;
    for (;;) {
        struct epoll_event events[256];
        uint64_t now = now_ns();
        if (!begun && now - started > 500000000) { /* sessions stand, caches are warm */
            begun = now;
            end = now + (uint64_t)(seconds * 1e9);
            cpu = cpu_ns(pid);
            echoes = lost = 0;
        }
        if (begun && now >= end)
            break;
        if (now >= next_check) {
            next_check = now + 100000000;
            for (int i = 0; i < n; i++) {
                if (slots[i].sent_ns && now - slots[i].sent_ns < 1000000000)
                    continue;
                lost += slots[i].sent_ns != 0;
                slots[i].sent_ns = now;
                (void)!send(slots[i].fd, data, bytes, 0);
            }
        }
        int got = epoll_wait(epoll, events, 256, 50);
        now = now_ns();
        for (int e = 0; e < got; e++) {
            struct slot *slot = &slots[events[e].data.u32];
            if (recv(slot->fd, data, sizeof(data), 0) < 0)
                continue;
            echoes++;
            slot->sent_ns = now;
            (void)!send(slot->fd, data, bytes, 0);
        }
    }
    report(echoes, lost, now_ns() - begun, cpu_ns(pid) - cpu);
    return 0;
}

static int bulk(const char *port, size_t bytes, int window, double seconds, const char *pid)
{
    static char data[BYTES_MAX];
    int fd = client(port), room = 8 << 20, under_way = 0, epoll = epoll_create1(0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    uint64_t echoes = 0, lost = 0, begun = now_ns(), cpu = cpu_ns(pid),
             end = begun + (uint64_t)(seconds * 1e9);
    while (now_ns() < end) {
        while (under_way < window && send(fd, data, bytes, 0) >= 0)
            under_way++;
        if (epoll_wait(epoll, &event, 1, 200) == 0) {
            lost += (uint64_t)under_way;
            under_way = 0;
        }
        while (recv(fd, data, sizeof(data), 0) >= 0) {
            echoes++;
            under_way -= under_way > 0;
        }
    }
    report(echoes, lost, now_ns() - begun, cpu_ns(pid) - cpu);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "echo") == 0)
        return echo(argv[2]);
    if (argc == 7 && strcmp(argv[1], "load") == 0)
        return load(argv[2], atoi(argv[3]), (size_t)atoi(argv[4]), atof(argv[5]), argv[6]);
    if (argc == 7 && strcmp(argv[1], "bulk") == 0)
        return bulk(argv[2], (size_t)atoi(argv[3]), atoi(argv[4]), atof(argv[5]), argv[6]);
    fprintf(stderr,
            "udpload echo PORT | load PORT CLIENTS BYTES SECONDS PID | bulk PORT BYTES WINDOW SECONDS PID\n");
    return 2;
}
