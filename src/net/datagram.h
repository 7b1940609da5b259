/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams in batches: many are received and many are sent with one call. One that the kernel glued together
 * from several of the same flow and size (GRO) travels as one and is cut again when it is sent (GSO). A batch
 * belongs to one thread. Source: A9; udp(7), recvmmsg(2). */
#ifndef ISOBAR_NET_DATAGRAM_H
#define ISOBAR_NET_DATAGRAM_H

#include "core/err.h"
#include "core/ip.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    DATAGRAM_BATCH = 32,
    DATAGRAM_BYTES = 65536, /* the longest, also of those that are glued together */
    DATAGRAM_CONTROL_BYTES = 96,
};

struct datagram_addr {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    };
};

struct datagram {
    char *data; /* borrows from the batch */
    uint32_t len;
    uint16_t segment; /* of several that are glued together: the length of each but the last; 0: one */
    struct datagram_addr peer; /* received: from whom; to send: to whom */
    struct ip_addr local;      /* our address it came to, or is to come from; family 0: unknown, any */
};

struct datagram_batch {
    uint32_t n; /* datagrams in it */
    struct datagram items[DATAGRAM_BATCH];
    char *room; /* owns; DATAGRAM_BATCH places, of which only pages that were used cost memory */
    struct mmsghdr headers[DATAGRAM_BATCH];
    struct iovec pieces[DATAGRAM_BATCH];
    _Alignas(struct cmsghdr) char control[DATAGRAM_BATCH][DATAGRAM_CONTROL_BYTES];
};

/* Zeroed memory becomes an empty batch. */
iso_err datagram_batch_init(struct datagram_batch *batch) ISO_MUST_USE;
void datagram_batch_fini(struct datagram_batch *batch);

/* Appends what waits on a socket, at most `most` and what there is room for. Returns how many; with 0 *err is
 * 0 when nothing waits, else an errno value. */
uint32_t datagram_receive(struct datagram_batch *batch, int fd, uint32_t most, int *err);
/* Sends all to their peers on an unconnected socket and empties the batch. Returns how many could not be
 * sent. */
uint32_t datagram_flush(struct datagram_batch *batch, int fd);
/* Sends one on a connected socket. Returns 0 or an errno value: then it was not sent, or not all of it. */
int datagram_send(int fd, const struct datagram *datagram);

/* How many datagrams it stands for. */
static inline uint32_t datagram_count(const struct datagram *datagram)
{
    return datagram->segment ? (datagram->len + datagram->segment - 1) / datagram->segment : 1;
}

/* A bound, non-blocking socket in *fd, or an errno value; on all addresses it tells to which each datagram
 * came. With `reuse_port` several may be bound to the address. Threads: any. */
int datagram_listen(const struct sockaddr *addr, socklen_t len, bool reuse_port, int *fd);
/* A non-blocking socket that exchanges datagrams with one peer and learns when it refuses them; -1: errno
 * says why. */
int datagram_connect(const struct sockaddr *addr, socklen_t len);

#endif
