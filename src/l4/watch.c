/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/watch.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct l4_watched {
    char *name; /* owns */
    struct ip_addr ip;
    bool down;
    uint32_t streak; /* results in a row that speak against the state */
    int fd;          /* a connection being made; -1: none */
    uint64_t due_ns; /* when it is given up, or when the next one begins */
};

static struct l4_watched *find(const struct l4_watch *watch, struct slice name, const struct ip_addr *ip)
{
    for (uint32_t i = 0; i < watch->n; i++)
        if (slice_eq(slice_str(watch->nodes[i].name), name) && ip_eq(&watch->nodes[i].ip, ip))
            return &watch->nodes[i];
    return NULL;
}

void l4_watch_set(struct l4_watch *watch, const struct l4_spec *spec, const struct config_l4_check *check)
{
    struct l4_watch fresh = {.n = check->port ? spec->n_reals : 0};
    fresh.nodes = calloc(fresh.n + 1, sizeof(*fresh.nodes));
    iso_assert(fresh.nodes != NULL);
    for (uint32_t i = 0; i < fresh.n; i++) {
        const struct l4_spec_real *real = &spec->reals[i];
        struct l4_watched *was = find(watch, real->name, &real->ip);
        fresh.nodes[i] = (struct l4_watched){.ip = real->ip, .fd = -1};
        if (was) {
            fresh.nodes[i] = *was;
            was->fd = -1; /* taken over */
        }
        fresh.nodes[i].name = strndup(real->name.ptr, real->name.len);
        iso_assert(fresh.nodes[i].name != NULL);
    }
    l4_watch_fini(watch);
    *watch = fresh;
}

void l4_watch_fini(struct l4_watch *watch)
{
    for (uint32_t i = 0; i < watch->n; i++) {
        if (watch->nodes[i].fd >= 0)
            close(watch->nodes[i].fd);
        free(watch->nodes[i].name);
    }
    free(watch->nodes);
    *watch = (struct l4_watch){0};
}

/* 0: connected at once; otherwise errno, EINPROGRESS while it is being made. */
static int begin(struct l4_watched *node, uint16_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool v6 = node->ip.family == 6;
    memcpy(&four.sin_addr, node->ip.bytes, 4);
    memcpy(&six.sin6_addr, node->ip.bytes, 16);
    node->fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (node->fd < 0)
        return errno;
    const struct sockaddr *to = v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    return connect(node->fd, to, v6 ? sizeof(six) : sizeof(four)) ? errno : 0;
}

/* The result of the connection being made: 0, an errno, or EINPROGRESS. */
static int progress(const struct l4_watched *node)
{
    struct pollfd wait = {.fd = node->fd, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof(error);
    if (poll(&wait, 1, 0) <= 0)
        return EINPROGRESS;
    return getsockopt(node->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? errno : error;
}

/* Takes one result in; true when the state changes. */
static bool judge(struct l4_watched *node, const struct config_l4_check *check, int error, uint64_t now_ns)
{
    if (node->fd >= 0)
        close(node->fd);
    node->fd = -1;
    node->due_ns = now_ns + check->interval_ms * NS_PER_MS;
    if ((error != 0) == node->down) {
        node->streak = 0;
        return false;
    }
    if (++node->streak < (node->down ? check->healthy_threshold : check->unhealthy_threshold))
        return false;
    node->streak = 0;
    node->down = !node->down;
    if (node->down)
        log_warning("l4: node %s is down: %s", node->name, strerror(error));
    else
        log_notice("l4: node %s is up", node->name);
    return true;
}

bool l4_watch_step(struct l4_watch *watch, const struct config_l4_check *check, uint64_t now_ns)
{
    bool changed = false;
    for (uint32_t i = 0; i < watch->n; i++) {
        struct l4_watched *node = &watch->nodes[i];
        int error = EINPROGRESS;
        if (node->fd >= 0) {
            error = progress(node);
            if (error == EINPROGRESS && now_ns >= node->due_ns)
                error = ETIMEDOUT;
        } else if (now_ns >= node->due_ns) {
            error = begin(node, check->port);
            node->due_ns = now_ns + check->timeout_ms * NS_PER_MS;
        }
        if (error != EINPROGRESS)
            changed = judge(node, check, error, now_ns) || changed;
    }
    return changed;
}

void l4_watch_apply(const struct l4_watch *watch, struct l4_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_reals; i++) {
        const struct l4_watched *node = find(watch, spec->reals[i].name, &spec->reals[i].ip);
        if (node && node->down)
            spec->reals[i].usable = false;
    }
}
