/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"

#include "net/syscall.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { PIECES_MAX = 32 };

void conn_init(struct conn *conn, int fd, loop_io_fn *on_ready, loop_timer_fn *on_due)
{
    *conn = (struct conn){.io = {.fd = fd, .on_ready = on_ready}, .can_read = true};
    loop_timer_init(&conn->timer, on_due);
}

void conn_forget_unsent(struct conn *conn)
{
    setsockopt(conn->io.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
}

void conn_close(struct conn *conn, struct loop *loop, struct buf_pool *bufs)
{
    loop_timer_remove(loop, &conn->timer);
    if (conn->layer)
        conn->layer->close(conn);
    loop_close(loop, &conn->io);
    buf_give(bufs, &conn->out);
}

void conn_note_events(struct conn *conn, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        conn->can_read = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        conn->saw_hangup = true;
}

enum conn_result conn_recv(struct conn *conn, char *data, size_t cap, size_t *n)
{
    ssize_t got;
    do
        got = sys_recv(conn->io.fd, data, cap);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        if ((size_t)got < cap && !conn->saw_hangup)
            conn->can_read = false;
        *n = (size_t)got;
        return CONN_OK;
    }
    conn->can_read = false;
    if (got == 0) {
        conn->saw_eof = true;
        return CONN_EOF;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK ? CONN_BLOCKED : CONN_FAILED;
}

bool conn_has_unread(const struct conn *conn)
{
    int n = 0;
    return ioctl(conn->io.fd, FIONREAD, &n) == 0 && n > 0;
}

enum conn_result conn_read(struct conn *conn, char *data, size_t cap, size_t *n)
{
    return iso_unlikely(conn->layer != NULL) ? conn->layer->read(conn, data, cap, n)
                                             : conn_recv(conn, data, cap, n);
}

static bool queue(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n, size_t skip)
{
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += pieces[i].iov_len;
    if (!conn->out && !(conn->out = buf_try_take(bufs, total - skip)))
        return false;
    for (int i = 0; i < n; i++) {
        size_t len = pieces[i].iov_len, from = skip < len ? skip : len;
        skip -= from;
        if (from < len &&
            !buf_append(bufs, &conn->out, slice_of((char *)pieces[i].iov_base + from, len - from)))
            return false;
    }
    return true;
}

enum conn_result conn_send(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n)
{
    size_t total = 0;
    ssize_t sent = 0;
    iso_assert(n > 0 && n <= PIECES_MAX);
    for (int i = 0; i < n; i++)
        total += pieces[i].iov_len;
    if (total == 0)
        return conn->out ? CONN_BLOCKED : CONN_OK;
    if (!conn->out && !conn->is_connecting) {
        do {
            if (n == 1) {
                sent = sys_send(conn->io.fd, pieces[0].iov_base, pieces[0].iov_len);
            } else {
                struct msghdr msg = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)n};
                sent = sys_sendmsg(conn->io.fd, &msg);
            }
        } while (sent < 0 && errno == EINTR);
        if ((size_t)sent == total)
            return CONN_OK;
        if (sent < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                return CONN_FAILED;
            sent = 0;
        }
    }
    return queue(conn, bufs, pieces, n, (size_t)sent) ? CONN_BLOCKED : CONN_FAILED;
}

enum conn_result conn_write(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces, int n)
{
    return iso_unlikely(conn->layer != NULL) ? conn->layer->write(conn, bufs, pieces, n)
                                             : conn_send(conn, bufs, pieces, n);
}

static void shut_socket(struct conn *conn)
{
    conn->is_shut = true;
    shutdown(conn->io.fd, SHUT_WR);
}

enum conn_result conn_flush(struct conn *conn, struct buf_pool *bufs)
{
    struct buf *out = conn->out;
    if (!out)
        return CONN_OK;
    if (conn->is_connecting)
        return CONN_BLOCKED;
    ssize_t sent;
    do
        sent = sys_send(conn->io.fd, out->data + out->start, buf_len(out));
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? CONN_BLOCKED : CONN_FAILED;
    out->start += (uint32_t)sent;
    if (buf_len(out) > 0)
        return CONN_BLOCKED;
    buf_give(bufs, &conn->out);
    if (conn->shut_when_sent)
        shut_socket(conn);
    return CONN_OK;
}

enum conn_result conn_handshake(struct conn *conn, struct buf_pool *bufs)
{
    iso_assert(conn->layer && conn->is_connecting);
    return conn->layer->handshake(conn, bufs);
}

void conn_shut(struct conn *conn)
{
    if (conn->is_shut || conn->shut_when_sent)
        return;
    if (conn->layer)
        conn->layer->shut(conn);
    if (conn->out)
        conn->shut_when_sent = true;
    else
        shut_socket(conn);
}
