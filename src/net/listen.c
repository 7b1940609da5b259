/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listen.h"

#include "net/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <dirent.h>
#include <stdlib.h>
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

enum { DEFER_ACCEPT_S = 1 };

void listen_defer_accept(int fd, bool yes)
{
    int seconds = yes ? DEFER_ACCEPT_S : 0, domain = 0;
    socklen_t len = sizeof(domain);
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
}

static int set_options(int fd, const struct net_addr *addr, const struct listen_options *options)
{
    static const int on = 1, off = 0;
    if (addr->sa.sa_family == AF_UNIX)
        return 0;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return errno;
    if (options->reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
        return errno;
    if (options->defer_accept)
        listen_defer_accept(fd, true);
    if (addr->sa.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
        return errno;
    return 0;
}

/* Left by an earlier process; fd -1: taken. Threads: main and control, which are one. */
static struct {
    struct net_addr addr;
    bool datagrams;
    int fd;
} inherited[LISTEN_HANDOVER_MAX];
static uint32_t n_inherited;
static bool is_handed_over;

static bool same_addr(const struct net_addr *a, const struct net_addr *b)
{
    if (a->sa.sa_family != b->sa.sa_family)
        return false;
    if (a->sa.sa_family == AF_UNIX)
        return strcmp(a->un.sun_path, b->un.sun_path) == 0;
    struct ip_addr ip_a = net_addr_to_ip(a), ip_b = net_addr_to_ip(b);
    return net_addr_port(a) == net_addr_port(b) && ip_eq(&ip_a, &ip_b);
}

static int get_option(int fd, int option)
{
    int value = 0;
    socklen_t len = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : 0;
}

void listen_inherit(void)
{
    const char *list = getenv(LISTEN_HANDOVER_ENV);
    struct slice rest = slice_str(list), part;
    uint64_t fd;
    while (slice_next(&rest, ',', &part) && n_inherited < LISTEN_HANDOVER_MAX) {
        struct net_addr addr = {.len = sizeof(addr.un)};
        if (!slice_u64(part, &fd) || fd > INT32_MAX || getsockname((int)fd, &addr.sa, &addr.len) < 0)
            continue;
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
        inherited[n_inherited].addr = addr;
        inherited[n_inherited].datagrams = get_option((int)fd, SO_TYPE) == SOCK_DGRAM;
        inherited[n_inherited++].fd = (int)fd;
    }
    unsetenv(LISTEN_HANDOVER_ENV);
}

static uint32_t find_inherited(const struct net_addr *addr, bool datagrams)
{
    uint32_t i = 0;
    while (i < n_inherited && (inherited[i].fd < 0 || inherited[i].datagrams != datagrams ||
                               !same_addr(&inherited[i].addr, addr)))
        i++;
    return i;
}

bool listen_is_inherited(const struct net_addr *addr, bool datagrams)
{
    return find_inherited(addr, datagrams) < n_inherited;
}

uint32_t listen_inherited_workers(void)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n_inherited; i++) {
        uint32_t n = 0;
        for (uint32_t j = 0; j < n_inherited; j++)
            n += inherited[i].datagrams == inherited[j].datagrams &&
                 same_addr(&inherited[i].addr, &inherited[j].addr);
        most = n > most ? n : most;
    }
    return most;
}

void listen_close_unused(void)
{
    for (uint32_t i = 0; i < n_inherited; i++)
        if (inherited[i].fd >= 0)
            close(inherited[i].fd);
    n_inherited = 0;
}

/* One that waits for datagrams of anybody, as no socket of a client does. */
static bool takes_datagrams(int fd)
{
    struct net_addr peer = {.len = sizeof(peer.un)};
    return get_option(fd, SO_TYPE) == SOCK_DGRAM && get_option(fd, SO_REUSEPORT) &&
           getpeername(fd, &peer.sa, &peer.len) < 0;
}

uint32_t listen_list(int *fds)
{
    uint32_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && n < LISTEN_HANDOVER_MAX && (entry = readdir(dir));) {
        int fd = atoi(entry->d_name);
        if (get_option(fd, SO_ACCEPTCONN) || takes_datagrams(fd))
            fds[n++] = fd;
    }
    if (dir)
        closedir(dir);
    return n;
}

void listen_handed_over(bool yes)
{
    is_handed_over = yes;
}

void listen_remove_file(const struct net_addr *addr)
{
    if (addr->sa.sa_family == AF_UNIX && !is_handed_over)
        unlink(addr->un.sun_path);
}

int listen_open(const struct net_addr *addr, const struct listen_options *options, int *out)
{
    uint32_t kept = find_inherited(addr, options->datagrams);
    if (kept < n_inherited) {
        *out = inherited[kept].fd;
        inherited[kept].fd = -1;
        return 0;
    }
    if (options->datagrams)
        return datagram_listen(&addr->sa, addr->len, options->reuse_port, out);
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
