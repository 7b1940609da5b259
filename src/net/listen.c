/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

/* A unix socket that a dead process left behind refuses connections; a live one must not be taken away. */
static int remove_stale_unix(const struct net_addr *addr)
{
    struct stat st;
    if (lstat(addr->un.sun_path, &st) < 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISSOCK(st.st_mode))
        return EEXIST;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int err = connect(fd, &addr->sa, addr->len) == 0 ? EADDRINUSE : errno;
    close(fd);
    if (err != ECONNREFUSED)
        return err;
    return unlink(addr->un.sun_path) < 0 ? errno : 0;
}

static int set_options(int fd, const struct net_addr *addr, const struct listen_options *options)
{
    static const int on = 1, off = 0, defer_s = 1;
    if (addr->sa.sa_family == AF_UNIX)
        return 0;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return errno;
    if (options->reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
        return errno;
    if (options->defer_accept && setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s)) < 0)
        return errno;
    if (addr->sa.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
        return errno;
    return 0;
}

int listen_open(const struct net_addr *addr, const struct listen_options *options, int *out)
{
    int fd = -1, err = addr->sa.sa_family == AF_UNIX ? remove_stale_unix(addr) : 0;
    if (err)
        return err;
    fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    err = set_options(fd, addr, options);
    if (!err && (bind(fd, &addr->sa, addr->len) < 0 || listen(fd, options->backlog) < 0))
        err = errno;
    if (err) {
        close(fd);
        return err;
    }
    *out = fd;
    return 0;
}

uint16_t listen_port(int fd)
{
    struct net_addr addr = {.len = sizeof(struct sockaddr_in6)};
    return getsockname(fd, &addr.sa, &addr.len) < 0 ? 0 : net_addr_port(&addr);
}
