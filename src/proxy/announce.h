/* SPDX-License-Identifier: Apache-2.0 */
/* Telling targets whom a connection is for, by a PROXY header (target group key proxy_protocol). The header
 * is made from what the client's connection is and from what a proxy in front told of it. A connection that
 * was announced speaks for one client connection and serves no other. Source: A12; case C-090. */
#ifndef ISOBAR_PROXY_ANNOUNCE_H
#define ISOBAR_PROXY_ANNOUNCE_H

#include "config/model.h"
#include "core/buf.h"
#include "net/proxyproto.h"

struct backend;
struct conn;
struct exchange;
struct upstream;

struct announce_facts {
    const struct ip_addr *peer;
    uint16_t peer_port;
    int fd;                    /* the client's socket: its local end is the destination */
    const struct buf *proxied; /* the PROXY header that the client came with; NULL: none */
    const struct conn *tls;    /* the client's connection when it speaks TLS with us; NULL: not */
    struct slice server_name;  /* that a TLS client asks for; ptr NULL: unknown */
    struct slice alpn;         /* the protocol that it speaks; ptr NULL: unknown */
};

/* The header for a version other than NONE, in out[PROXYPROTO_WRITE_BYTES]; returns its length. */
size_t announce_write(enum config_proxy_version version, const struct announce_facts *facts, char *out);

/* For requests. A new connection gets its header, where the group wants one. False: the connection is of no
 * use; errno is set. */
bool announce_client(struct exchange *x, struct upstream *upstream) ISO_MUST_USE;
/* As pool_take(), from what may serve this client. */
struct upstream *announce_take(struct exchange *x, struct backend *backend, bool must_be_fresh);
/* As pool_give(), of x->upstream. */
void announce_give(struct exchange *x);

#endif
