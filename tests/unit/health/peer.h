/* SPDX-License-Identifier: Apache-2.0 */
/* A target for tests: a listening socket on 127.0.0.1 and a thread that takes one connection after the other
 * and lets a function play the server on it. Connections that the function keeps open are closed at the end.
 */
#ifndef ISOBAR_TESTS_HEALTH_PEER_H
#define ISOBAR_TESTS_HEALTH_PEER_H

#include "net/addr.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct peer;
/* True: the connection stays open. */
typedef bool peer_fn(struct peer *peer, int fd, const char *request);

struct peer {
    int fd;
    struct net_addr addr;
    peer_fn *play;
    const char *text;
    pthread_t thread;
    int kept[64];
    int n_kept;
    char last_request[1024]; /* to be read after peer_stop() */
    _Atomic unsigned accepted;
    _Atomic bool is_bad; /* for peer_by_mood */
    _Atomic bool stopping;
};

static inline void peer_send(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n, len -= (size_t)n;
    }
}

static inline bool peer_says(struct peer *peer, int fd, const char *request)
{
    peer_send(fd, peer->text, strlen(peer->text));
    return false;
}

static inline bool peer_by_mood(struct peer *peer, int fd, const char *request)
{
    static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    static const char bad[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    const char *text = atomic_load(&peer->is_bad) ? bad : good;
    peer_send(fd, text, strlen(text));
    return false;
}

static inline bool peer_is_silent(struct peer *peer, int fd, const char *request)
{
    return true;
}

static inline void *peer_run(void *arg)
{
    struct peer *peer = arg;
    while (!atomic_load(&peer->stopping)) {
        struct pollfd poller = {.fd = peer->fd, .events = POLLIN};
        if (poll(&poller, 1, 10) <= 0)
            continue;
        int fd = accept(peer->fd, NULL, NULL);
        if (fd < 0)
            continue;
        atomic_fetch_add(&peer->accepted, 1);
        struct pollfd reader = {.fd = fd, .events = POLLIN};
        char request[1024] = "";
        if (peer->play != peer_is_silent && poll(&reader, 1, 1000) == 1) {
            ssize_t n = recv(fd, request, sizeof(request) - 1, 0);
            request[n > 0 ? n : 0] = '\0';
            if (n > 0)
                strcpy(peer->last_request, request);
        }
        if (peer->play(peer, fd, request) && peer->n_kept < 64)
            peer->kept[peer->n_kept++] = fd;
        else
            close(fd);
    }
    return NULL;
}

static inline void peer_start(struct peer *peer, peer_fn *play, const char *text)
{
    *peer = (struct peer){.play = play, .text = text};
    struct ip_addr ip;
    socklen_t len = sizeof(peer->addr.in4);
    ip_parse(SLICE("127.0.0.1"), &ip);
    net_addr_ip(&peer->addr, &ip, 0);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(peer->fd, &peer->addr.sa, peer->addr.len) || listen(peer->fd, 512) ||
        getsockname(peer->fd, &peer->addr.sa, &len))
        abort();
    pthread_create(&peer->thread, NULL, peer_run, peer);
}

static inline void peer_stop(struct peer *peer)
{
    atomic_store(&peer->stopping, true);
    pthread_join(peer->thread, NULL);
    while (peer->n_kept)
        close(peer->kept[--peer->n_kept]);
    close(peer->fd);
}

#endif
