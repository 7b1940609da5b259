/* SPDX-License-Identifier: Apache-2.0 */
#include "net/datagram.h"

#include "core/check.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Places are not a power of two apart: their first bytes would all fall into the same set of the cache. */
enum { STRIDE = DATAGRAM_BYTES + 192, LISTEN_BUFFER_BYTES = 4 * 1024 * 1024 };

iso_err datagram_batch_init(struct datagram_batch *batch)
{
    batch->room = mmap(NULL, (size_t)STRIDE * DATAGRAM_BATCH, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (batch->room == MAP_FAILED) {
        batch->room = NULL;
        return ISO_ERR_SYSTEM;
    }
    batch->n = 0;
    return ISO_OK;
}

void datagram_batch_fini(struct datagram_batch *batch)
{
    if (batch->room)
        munmap(batch->room, (size_t)STRIDE * DATAGRAM_BATCH);
    batch->room = NULL;
}

static struct ip_addr ip4_of(const struct in_addr *addr)
{
    struct ip_addr ip = {.family = 4};
    memcpy(ip.bytes, addr, 4);
    return ip;
}

static struct ip_addr ip6_of(const struct in6_addr *addr)
{
    struct ip_addr ip = {.family = 6};
    if (IN6_IS_ADDR_V4MAPPED(addr))
        return ip4_of((const struct in_addr *)(addr->s6_addr + 12));
    memcpy(ip.bytes, addr, 16);
    return ip;
}

static void read_control(struct msghdr *msg, struct datagram *datagram)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        int segment;
        struct in_pktinfo info4;
        struct in6_pktinfo info6;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            memcpy(&segment, CMSG_DATA(c), sizeof(segment));
            if (segment > 0 && (uint32_t)segment < datagram->len)
                datagram->segment = (uint16_t)segment;
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            memcpy(&info4, CMSG_DATA(c), sizeof(info4));
            datagram->local = ip4_of(&info4.ipi_spec_dst);
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            memcpy(&info6, CMSG_DATA(c), sizeof(info6));
            datagram->local = ip6_of(&info6.ipi6_addr);
        }
    }
}

static void prepare_receive(struct datagram_batch *batch, uint32_t i)
{
    struct datagram *item = &batch->items[i];
    item->data = batch->room + (size_t)i * STRIDE;
    batch->pieces[i] = (struct iovec){item->data, DATAGRAM_BYTES};
    batch->headers[i].msg_hdr = (struct msghdr){.msg_name = &item->peer.sa,
                                                .msg_namelen = sizeof(item->peer.in6),
                                                .msg_iov = &batch->pieces[i],
                                                .msg_iovlen = 1,
                                                .msg_control = batch->control[i],
                                                .msg_controllen = DATAGRAM_CONTROL_BYTES};
}

static void note_received(struct datagram_batch *batch, uint32_t i, size_t len)
{
    struct datagram *item = &batch->items[i];
    struct msghdr *msg = &batch->headers[i].msg_hdr;
    item->len = (uint32_t)len;
    item->segment = 0;
    item->local.family = 0;
    item->peer.len = msg->msg_namelen;
    if (msg->msg_controllen)
        read_control(msg, item);
}

uint32_t datagram_receive(struct datagram_batch *batch, int fd, uint32_t most, int *err)
{
    uint32_t first = batch->n, room = DATAGRAM_BATCH - first, n = most < room ? most : room;
    int got;
    for (uint32_t i = 0; i < n; i++)
        prepare_receive(batch, first + i);
    if (n == 1) {
        ssize_t len = recvmsg(fd, &batch->headers[first].msg_hdr, MSG_DONTWAIT);
        got = len < 0 ? -1 : 1;
        batch->headers[first].msg_len = (unsigned)len;
    } else {
        got = recvmmsg(fd, &batch->headers[first], n, MSG_DONTWAIT, NULL);
    }
    *err = got >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : errno;
    for (int i = 0; i < got; i++)
        note_received(batch, first + (uint32_t)i, batch->headers[first + (uint32_t)i].msg_len);
    batch->n += got > 0 ? (uint32_t)got : 0;
    return got > 0 ? (uint32_t)got : 0;
}

/* Room for the next piece of control data, behind what is there. */
static void *add_control(struct msghdr *msg, char *room, int level, int type, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(room + msg->msg_controllen);
    iso_assert(msg->msg_controllen + CMSG_SPACE(len) <= DATAGRAM_CONTROL_BYTES);
    msg->msg_control = room;
    msg->msg_controllen += CMSG_SPACE(len);
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(len), .cmsg_level = level, .cmsg_type = type};
    return CMSG_DATA(c);
}

static void add_segment(struct msghdr *msg, char *room, uint16_t segment)
{
    memcpy(add_control(msg, room, IPPROTO_UDP, UDP_SEGMENT, sizeof(segment)), &segment, sizeof(segment));
}

static void add_local(struct msghdr *msg, char *room, const struct datagram *datagram)
{
    const struct ip_addr *local = &datagram->local;
    if (datagram->peer.sa.sa_family == AF_INET && local->family == 4) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, local->bytes, 4);
        memcpy(add_control(msg, room, IPPROTO_IP, IP_PKTINFO, sizeof(info)), &info, sizeof(info));
    } else if (datagram->peer.sa.sa_family == AF_INET6) {
        struct in6_pktinfo info = {0};
        if (local->family == 4)
            info.ipi6_addr.s6_addr[10] = info.ipi6_addr.s6_addr[11] = 0xff;
        memcpy(info.ipi6_addr.s6_addr + (local->family == 4 ? 12 : 0), local->bytes,
               local->family == 4 ? 4 : 16);
        memcpy(add_control(msg, room, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info)), &info, sizeof(info));
    }
}

/* Cuts it here, where the kernel would not: on the way out segments must fit the MTU. */
static int send_pieces(int fd, const struct msghdr *msg, const struct datagram *datagram)
{
    for (uint32_t at = 0; at < datagram->len; at += datagram->segment) {
        uint32_t left = datagram->len - at;
        struct iovec piece = {datagram->data + at, left < datagram->segment ? left : datagram->segment};
        struct msghdr one = {
            .msg_name = msg->msg_name, .msg_namelen = msg->msg_namelen, .msg_iov = &piece, .msg_iovlen = 1};
        char control[DATAGRAM_CONTROL_BYTES] __attribute__((aligned(8)));
        if (msg->msg_name && datagram->local.family)
            add_local(&one, control, datagram);
        if (sendmsg(fd, &one, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return errno;
    }
    return 0;
}

int datagram_send(int fd, const struct datagram *datagram)
{
    if (!datagram->segment)
        return send(fd, datagram->data, datagram->len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
    char control[DATAGRAM_CONTROL_BYTES] __attribute__((aligned(8)));
    struct iovec piece = {datagram->data, datagram->len};
    struct msghdr msg = {.msg_iov = &piece, .msg_iovlen = 1};
    add_segment(&msg, control, datagram->segment);
    if (sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 0;
    return errno == EINVAL || errno == EMSGSIZE || errno == EIO ? send_pieces(fd, &msg, datagram) : errno;
}

static void prepare_send(struct datagram_batch *batch, uint32_t i)
{
    struct datagram *item = &batch->items[i];
    struct msghdr *msg = &batch->headers[i].msg_hdr;
    batch->pieces[i] = (struct iovec){item->data, item->len};
    *msg = (struct msghdr){.msg_name = &item->peer.sa,
                           .msg_namelen = item->peer.len,
                           .msg_iov = &batch->pieces[i],
                           .msg_iovlen = 1};
    if (item->local.family)
        add_local(msg, batch->control[i], item);
    if (item->segment)
        add_segment(msg, batch->control[i], item->segment);
}

uint32_t datagram_flush(struct datagram_batch *batch, int fd)
{
    uint32_t at = 0, failed = 0;
    for (uint32_t i = 0; i < batch->n; i++)
        prepare_send(batch, i);
    while (at < batch->n) {
        int sent = sendmmsg(fd, &batch->headers[at], batch->n - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += (uint32_t)sent;
            continue;
        }
        if (errno == EINTR)
            continue;
        /* The first of them cannot be sent; the others may go to somewhere else. */
        const struct datagram *item = &batch->items[at];
        bool was_cut = item->segment && (errno == EINVAL || errno == EMSGSIZE || errno == EIO) &&
                       send_pieces(fd, &batch->headers[at].msg_hdr, item) == 0;
        failed += was_cut ? 0 : datagram_count(item);
        at++;
    }
    batch->n = 0;
    return failed;
}

/* Reading several at once is a gain where the kernel can; where it cannot, nothing is lost. */
static void accept_glued(int fd)
{
    static const int on = 1;
    (void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
}

static int open_socket(const struct sockaddr *addr)
{
    return socket(addr->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool is_any(const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET
               ? ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY)
               : IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static int set_listen_options(int fd, const struct sockaddr *addr, bool reuse_port)
{
    static const int on = 1, off = 0, room = LISTEN_BUFFER_BYTES;
    if (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
        return errno;
    if (addr->sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
        return errno;
    if (is_any(addr) && addr->sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0)
        return errno;
    if (is_any(addr) && addr->sa_family == AF_INET &&
        setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0)
        return errno;
    /* What comes while a turn lasts must wait somewhere; the kernel gives as much as net.core allows. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    accept_glued(fd);
    return 0;
}

int datagram_listen(const struct sockaddr *addr, socklen_t len, bool reuse_port, int *out)
{
    int fd = open_socket(addr);
    if (fd < 0)
        return errno;
    int err = set_listen_options(fd, addr, reuse_port);
    if (!err && bind(fd, addr, len) < 0)
        err = errno;
    if (err) {
        close(fd);
        return err;
    }
    *out = fd;
    return 0;
}

int datagram_connect(const struct sockaddr *addr, socklen_t len)
{
    int fd = open_socket(addr);
    if (fd < 0)
        return -1;
    if (connect(fd, addr, len) < 0) {
        int err = errno;
        close(fd);
        errno = err;
        return -1;
    }
    accept_glued(fd);
    return fd;
}
