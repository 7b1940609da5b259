/* SPDX-License-Identifier: Apache-2.0 */
/* One byte stream on a worker: a TCP or unix socket with its deadline and its queue of output that the socket
 * did not take. Reading goes into the caller's buffer, writing straight to the socket; a buffer is attached
 * only when the socket is full, and whoever feeds a connection stops feeding it while `out` is set
 * (back-pressure), so that what is queued is bounded by one read.
 *
 * A layer (TLS) may stand between the caller and the socket: then reading, writing and ending go through its
 * table, `out` holds what the layer made, and a connection without one pays a predictable branch a call. */
#ifndef ISOBAR_NET_CONN_H
#define ISOBAR_NET_CONN_H

#include "core/buf.h"
#include "net/loop.h"

#include <sys/uio.h>

enum conn_result {
    CONN_OK,      /* bytes were read; or all were written */
    CONN_BLOCKED, /* nothing to read now; or some bytes are queued */
    CONN_EOF,     /* the peer has sent all it will */
    CONN_FAILED,  /* reset or another error: the connection is of no more use */
};

struct conn;

/* What a layer does with a connection. It reads and writes the socket by conn_recv() and conn_send(), and may
 * not free or close anything but its own state. */
struct conn_layer {
    /* As conn_read(). `can_read` stays true while the layer itself holds bytes. */
    enum conn_result (*read)(struct conn *conn, char *data, size_t cap, size_t *n);
    /* As conn_write(). While is_connecting the pieces are queued as they are. */
    enum conn_result (*write)(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n);
    /* As conn_handshake(). */
    enum conn_result (*handshake)(struct conn *conn, struct buf_pool *bufs);
    /* Sends or queues the layer's mark of the end, if it has one. */
    void (*shut)(struct conn *conn);
    /* Ends the layer; the socket is closed behind it. */
    void (*close)(struct conn *conn);
};

struct conn {
    struct loop_io io;
    struct loop_timer timer;        /* one deadline; who owns the connection says what it means */
    const struct conn_layer *layer; /* NULL: none */
    void *layer_state;              /* owns: the layer */
    struct buf *out;                /* owns; queued output, NULL when there is none */
    bool is_full;                   /* set by the layer: it holds output itself */
    bool can_read;                  /* bytes, an end or an error may be waiting */
    bool saw_hangup;                /* the kernel told of FIN or RST: read until it shows */
    bool saw_eof;                   /* read returned the end */
    bool is_connecting;             /* output is queued until the handshakes of socket and layer are done */
    bool is_handshaking;            /* accepted, and the layer's handshake is not done yet */
    bool is_misspoken;   /* the peer speaks without the layer, which is gone: a plain answer can be sent */
    bool is_last_write;  /* set by the owner: nothing follows the next write, the end may go with it */
    bool is_cut;         /* set by the owner: ends within a message, so no layer may mark the end as good */
    bool shut_when_sent; /* send FIN once the queue is empty */
    bool is_shut;        /* FIN was sent */
};

/* `fd` is non-blocking and becomes the connection's. */
void conn_init(struct conn *conn, int fd, loop_io_fn *on_ready, loop_timer_fn *on_due);
/* What the kernel still holds of the output goes with the close, and the peer sees a reset: otherwise a peer
 * that does not read keeps all of it in the kernel long after the close. */
void conn_forget_unsent(struct conn *conn);
/* Closes the socket, drops queued output and the timer. The memory is the caller's to defer. */
void conn_close(struct conn *conn, struct loop *loop, struct buf_pool *bufs);

/* Notes what epoll said. To be called first by every on_ready. */
void conn_note_events(struct conn *conn, uint32_t events);

/* Reads at most `cap` bytes. A short read counts as drained, so that no read ends in EAGAIN: a later byte
 * makes a new edge. `*n` is written with CONN_OK only. */
enum conn_result conn_read(struct conn *conn, char *data, size_t cap, size_t *n);
/* Does the kernel hold bytes that were not read? Closing then resets the connection. */
bool conn_has_unread(const struct conn *conn);
/* Writes all pieces or queues the rest. CONN_FAILED also when no buffer could be had. */
enum conn_result conn_write(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n);
/* Writes what is queued; CONN_OK when nothing is left. */
enum conn_result conn_flush(struct conn *conn, struct buf_pool *bufs);
/* The socket of a connection with a layer has opened: goes on with the layer's handshake, to be called at
 * each event while is_connecting. CONN_OK: done, is_connecting is false, and what was queued is sent or
 * queued in the layer's form. CONN_FAILED: nothing that was queued has been sent. */
enum conn_result conn_handshake(struct conn *conn, struct buf_pool *bufs);
/* Is output waiting for the peer? Then nothing more is to be written. */
static inline bool conn_is_full(const struct conn *conn)
{
    return conn->out || conn->is_full;
}
/* Ends our sending side, after what is queued. */
void conn_shut(struct conn *conn);

/* Reading and writing past the layer: for layers, and where there is none. */
enum conn_result conn_recv(struct conn *conn, char *data, size_t cap, size_t *n);
enum conn_result conn_send(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n);

#endif
