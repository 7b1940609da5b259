/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7floor - the least a proxy can do: bytes both ways between clients and an origin.
 *
 * One thread, edge-triggered epoll, two reads and two writes a small request, no
 * HTTP, no limits, no timers, one origin connection per client. What it costs, no
 * proxy over sockets can undercut on this machine: read ratios beside its ratio.
 * Meant for small messages: a full socket is waited for.
 *
 * usage: l7floor ADDR PORT ORIGIN_PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 128 * 1024, EVENTS = 512 };

struct side {
    int fd;
    struct side *other; /* NULL once the pair has ended; its memory is kept */
};

static int epoll_fd;
static struct sockaddr_in origin;

static void watch(struct side *side, int fd, struct side *other)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = side};
    int on = 1;
    *side = (struct side){fd, other};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void take_client(int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK), target = socket(AF_INET, SOCK_STREAM, 0);
    if (client < 0 || connect(target, (struct sockaddr *)&origin, sizeof(origin)) < 0) {
        close(client);
        close(target);
        return;
    }
    struct side *sides = malloc(2 * sizeof(*sides));
    if (!sides)
        exit(1);
    watch(&sides[0], client, &sides[1]);
    watch(&sides[1], target, &sides[0]);
}

static void end(struct side *side)
{
    close(side->fd);
    close(side->other->fd);
    side->other->other = NULL;
    side->other = NULL;
}

static int send_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd full = {.fd = fd, .events = POLLOUT};
        if (sent < 0 && poll(&full, 1, 1000) <= 0)
            return 0;
        data += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return 1;
}

static void relay(struct side *side)
{
    static char data[READ_BYTES];
    ssize_t n;
    do {
        n = recv(side->fd, data, sizeof(data), MSG_DONTWAIT);
        if (n == 0 || (n > 0 && !send_all(side->other->fd, data, (size_t)n))) {
            end(side);
            return;
        }
    } while (n == sizeof(data));
}

int main(int argc, char **argv)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (argc != 4 || inet_pton(AF_INET, argv[1], &own.sin_addr) != 1) {
        fprintf(stderr, "usage: l7floor ADDR PORT ORIGIN_PORT\n");
        return 2;
    }
    origin = own;
    own.sin_port = htons((uint16_t)atoi(argv[2]));
    origin.sin_port = htons((uint16_t)atoi(argv[3]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&own, sizeof(own)) < 0 || listen(listener, 4096) < 0) {
        perror("l7floor");
        return 1;
    }
    epoll_fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            struct side *side = events[i].data.ptr;
            if (!side)
                take_client(listener);
            else if (side->other)
                relay(side);
        }
    }
}
