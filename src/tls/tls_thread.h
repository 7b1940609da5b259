/* SPDX-License-Identifier: Apache-2.0 */
/* What the TLS connections of one thread share: the buffers that OpenSSL reads from and writes to, since only
 * one connection is worked on at a time; the steps of handshakes that a turn may make, and who waits for the
 * next turn; the keys of tickets. Private to tls_layer.c and tls_thread.c. */
#ifndef ISOBAR_TLS_TLS_THREAD_H
#define ISOBAR_TLS_TLS_THREAD_H

#include "core/slab.h"
#include "tls/tls_conn.h"

enum {
    TLS_IN_BYTES = 64 * 1024,
    TLS_OUT_BYTES = 192 * 1024, /* a read of 128 KiB as records, and a head */
    TLS_RECORD_BYTES = 16 * 1024,
};

struct tls_thread {
    struct loop *loop;     /* borrows */
    struct buf_pool *bufs; /* borrows */
    struct slab slab;      /* of struct tls_conn */
    BIO_METHOD *method;    /* owns */
    BIO *bio;              /* owns; one for all: only one connection is worked on at a time */
    size_t in_at, in_end;  /* the window in `in` that OpenSSL has not taken */
    size_t out_len;
    struct conn *sending; /* whose output `out` is; for when it does not fit */
    bool out_failed;
    struct list waiting; /* of struct tls_conn, oldest first */
    struct loop_later later;
    uint64_t turn; /* that `steps` counts in */
    uint32_t steps;
    struct ticket_chain tickets;
    char stage[TLS_RECORD_BYTES]; /* small pieces become one record here */
    char in[TLS_IN_BYTES];
    char out[TLS_OUT_BYTES];
};

/* Sends or queues what was gathered. A socket that is only connected (we are the client, in the handshake)
 * has nothing before it: what it does not take at once means that something is wrong with it. */
enum conn_result tls_thread_push(struct tls_thread *thread);
/* May a step of a handshake be made in this turn? If not, it is made in a later one. */
bool tls_thread_take_step(struct tls_conn *tls);

#endif
