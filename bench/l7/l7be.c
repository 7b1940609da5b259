/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7be - tiny HTTP/1.1 origin server for benchmarks.
 *
 * One thread, level-triggered epoll, keep-alive and pipelining, Content-Length
 * request bodies are read and dropped.  GET|POST /<N>[k] answers 200 with an
 * N-byte body (k = KiB, up to 16 MiB).  A "Connection: close" request header is
 * honoured.
 *
 * usage: l7be [-a addr] [-p port]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define RBUF    65536
#define MAXBODY (16u << 20)

struct resp {
    size_t len;  /* head + body */
    size_t body; /* body length, the cache key */
    char *data;
    struct resp *next;
};

struct conn {
    int fd;
    int want_out;
    int close_after;
    size_t skip; /* request body bytes still to drop */
    size_t held; /* bytes of an incomplete request head */
    char *hold;
    /* pending output: a chain of whole responses is kept as (resp, offset) */
    const struct resp **q;
    unsigned qn, qcap;
    size_t qoff;
};

static struct resp *cache;
static int ep;
static char rb[RBUF + 1];

static const struct resp *get_resp(size_t body)
{
    struct resp *r;
    char head[160];
    int n;

    for (r = cache; r; r = r->next)
        if (r->body == body)
            return r;
    r = malloc(sizeof(*r));
    n = snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nServer: l7be\r\nContent-Type: text/plain\r\n"
                 "Content-Length: %zu\r\n\r\n",
                 body);
    r->data = malloc((size_t)n + body);
    memcpy(r->data, head, (size_t)n);
    memset(r->data + n, 'x', body);
    r->len = (size_t)n + body;
    r->body = body;
    r->next = cache;
    cache = r;
    return r;
}

static void cclose(struct conn *c)
{
    close(c->fd);
    free(c->hold);
    free(c->q);
    free(c);
}

static void want(struct conn *c, int out)
{
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = c};
    if (c->want_out == out)
        return;
    c->want_out = out;
    epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
}

/* returns -1 when the connection was closed */
static int flush(struct conn *c)
{
    unsigned i = 0;
    while (i < c->qn) {
        const struct resp *r = c->q[i];
        int more = i + 1 < c->qn;
        ssize_t n = send(c->fd, r->data + c->qoff, r->len - c->qoff,
                         MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
        if (n < 0) {
            if (errno == EAGAIN)
                break;
            cclose(c);
            return -1;
        }
        c->qoff += (size_t)n;
        if (c->qoff == r->len) {
            c->qoff = 0;
            i++;
        }
    }
    memmove(c->q, c->q + i, (c->qn - i) * sizeof(*c->q));
    c->qn -= i;
    if (!c->qn && c->close_after) {
        cclose(c);
        return -1;
    }
    want(c, c->qn != 0);
    return 0;
}

/* parse one request head in [p,e); returns its length, 0 when incomplete */
static size_t parse(struct conn *c, const char *p, const char *e)
{
    const char *s = p, *nl;
    size_t cl = 0, body = 0;
    int close_after = 0;

    nl = memchr(p, '\n', (size_t)(e - p));
    if (!nl)
        return 0;
    s = memchr(p, '/', (size_t)(nl - p));
    if (s) {
        body = strtoul(s + 1, (char **)&s, 10);
        if (*s == 'k')
            body <<= 10;
        if (body > MAXBODY)
            body = MAXBODY;
    }
    for (s = nl + 1;; s = nl + 1) {
        nl = memchr(s, '\n', (size_t)(e - s));
        if (!nl)
            return 0;
        if (nl - s <= 1)
            break;
        if ((*s | 32) == 'c') {
            if (nl - s > 15 && !strncasecmp(s, "content-length:", 15))
                cl = strtoul(s + 15, NULL, 10);
            else if (nl - s > 16 && !strncasecmp(s, "connection: close", 17))
                close_after = 1;
        }
    }
    c->skip = cl;
    c->close_after |= close_after;
    if (c->qn == c->qcap) {
        c->qcap = c->qcap ? c->qcap * 2 : 4;
        c->q = realloc(c->q, c->qcap * sizeof(*c->q));
    }
    c->q[c->qn++] = get_resp(body);
    return (size_t)(nl + 1 - p);
}

static void readable(struct conn *c)
{
    size_t have = c->held;
    const char *p = rb, *e;
    ssize_t n;

    if (have)
        memcpy(rb, c->hold, have);
    n = recv(c->fd, rb + have, RBUF - have, MSG_DONTWAIT);
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN)
            return;
        cclose(c);
        return;
    }
    e = rb + have + n;
    rb[have + (size_t)n] = 0;
    c->held = 0;
    while (p < e) {
        size_t k = (size_t)(e - p);
        if (c->skip) {
            if (k > c->skip)
                k = c->skip;
            c->skip -= k;
            p += k;
            continue;
        }
        k = parse(c, p, e);
        if (!k) {
            k = (size_t)(e - p);
            c->hold = realloc(c->hold, RBUF);
            memcpy(c->hold, p, k);
            c->held = k;
            break;
        }
        p += k;
    }
    /* answer only once the body has been read: keeps POST exchanges simple */
    if (c->qn && !c->skip)
        flush(c);
}

int main(int argc, char **argv)
{
    const char *addr = "127.0.0.1";
    int port = 9000, o, one = 1, ls;
    struct sockaddr_in sa = {.sin_family = AF_INET};
    struct epoll_event ev[256], e;
    struct rlimit rl;

    while ((o = getopt(argc, argv, "a:p:")) != -1) {
        if (o == 'a')
            addr = optarg;
        else if (o == 'p')
            port = atoi(optarg);
        else
            return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (!getrlimit(RLIMIT_NOFILE, &rl)) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    ls = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    sa.sin_port = htons((unsigned short)port);
    inet_pton(AF_INET, addr, &sa.sin_addr);
    if (bind(ls, (void *)&sa, sizeof(sa)) || listen(ls, 4096)) {
        perror("l7be: bind/listen");
        return 1;
    }
    setsockopt(ls, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* inherited */
    ep = epoll_create1(EPOLL_CLOEXEC);
    e.events = EPOLLIN;
    e.data.ptr = NULL;
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    for (;;) {
        int i, n = epoll_wait(ep, ev, 256, -1);
        for (i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (!c) {
                int fd;
                while ((fd = accept4(ls, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                    c = calloc(1, sizeof(*c));
                    c->fd = fd;
                    e.events = EPOLLIN;
                    e.data.ptr = c;
                    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
                }
                continue;
            }
            if (c->qn && (ev[i].events & EPOLLOUT)) {
                if (flush(c) < 0)
                    continue;
            }
            if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                readable(c);
        }
    }
}
