/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_thread.h"

#include "core/clock.h"
#include "net/syscall.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    /* A step that signs takes 250 us, the one after it 30 us: others wait half a millisecond at most. */
    STEPS_PER_TURN = 2,
    RESUMED_PER_TURN = 16, /* of those that wait, looked at in a turn */
};

static int bio_read(BIO *bio, char *data, int cap)
{
    struct tls_thread *thread = BIO_get_data(bio);
    size_t left = thread->in_end - thread->in_at, n = (size_t)cap < left ? (size_t)cap : left;
    BIO_clear_retry_flags(bio);
    if (n == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(data, thread->in + thread->in_at, n);
    thread->in_at += n;
    return (int)n;
}

enum conn_result tls_thread_push(struct tls_thread *thread)
{
    struct conn *conn = thread->sending;
    struct iovec all = {thread->out, thread->out_len};
    thread->out_len = 0;
    if (thread->out_failed)
        return CONN_FAILED;
    if (all.iov_len == 0)
        return conn->out ? CONN_BLOCKED : CONN_OK;
    if (!conn->is_connecting)
        return conn_send(conn, thread->bufs, &all, 1);
    ssize_t n = sys_send(conn->io.fd, all.iov_base, all.iov_len);
    return n == (ssize_t)all.iov_len ? CONN_OK : CONN_FAILED;
}

static int bio_write(BIO *bio, const char *data, int len)
{
    struct tls_thread *thread = BIO_get_data(bio);
    size_t n = (size_t)len;
    BIO_clear_retry_flags(bio);
    iso_assert(n <= TLS_OUT_BYTES);
    if (n > TLS_OUT_BYTES - thread->out_len && tls_thread_push(thread) == CONN_FAILED)
        thread->out_failed = true;
    memcpy(thread->out + thread->out_len, data, n);
    thread->out_len += n;
    return len;
}

static long bio_ctrl(BIO *bio, int what, long number, void *pointer)
{
    return what == BIO_CTRL_FLUSH;
}

static void resume_waiting(struct loop *loop, struct loop_later *later)
{
    struct tls_thread *thread = container_of(later, struct tls_thread, later);
    struct list *mark = thread->waiting.prev; /* those that join meanwhile come next time */
    for (int i = 0; i < RESUMED_PER_TURN && !list_is_empty(&thread->waiting); i++) {
        struct list *node = thread->waiting.next;
        struct tls_conn *tls = container_of(node, struct tls_conn, waiting);
        struct loop_io *io = &tls->conn->io;
        bool is_last = node == mark;
        if (thread->turn == loop->turns && thread->steps >= STEPS_PER_TURN)
            break;
        list_remove(node);
        io->on_ready(loop, io, EPOLLIN | EPOLLOUT);
        if (is_last)
            break;
    }
    if (!list_is_empty(&thread->waiting))
        loop_later(loop, later);
}

struct tls_thread *tls_thread_new(struct loop *loop, struct buf_pool *bufs)
{
    struct tls_thread *thread = malloc(sizeof(*thread));
    iso_assert(thread != NULL);
    memset(thread, 0, offsetof(struct tls_thread, stage));
    thread->loop = loop;
    thread->bufs = bufs;
    slab_init(&thread->slab, sizeof(struct tls_conn));
    list_init(&thread->waiting);
    loop_later_init(&thread->later, resume_waiting);
    ticket_chain_init(&thread->tickets, loop->now_ns / NS_PER_S);
    thread->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "isobar");
    iso_assert(thread->method != NULL);
    BIO_meth_set_read(thread->method, bio_read);
    BIO_meth_set_write(thread->method, bio_write);
    BIO_meth_set_ctrl(thread->method, bio_ctrl);
    thread->bio = BIO_new(thread->method);
    iso_assert(thread->bio != NULL);
    BIO_set_data(thread->bio, thread);
    BIO_set_init(thread->bio, 1);
    return thread;
}

void tls_thread_free(struct tls_thread *thread)
{
    if (!thread)
        return;
    iso_assert(thread->slab.live == 0);
    loop_cancel_later(&thread->later);
    ticket_chain_fini(&thread->tickets);
    BIO_free(thread->bio);
    BIO_meth_free(thread->method);
    slab_fini(&thread->slab);
    free(thread);
}

const struct ticket_chain *tls_thread_tickets(struct tls_thread *thread)
{
    ticket_chain_turn(&thread->tickets, thread->loop->now_ns / NS_PER_S);
    return &thread->tickets;
}

bool tls_thread_take_step(struct tls_conn *tls)
{
    struct tls_thread *thread = tls->thread;
    if (thread->turn != thread->loop->turns) {
        thread->turn = thread->loop->turns;
        thread->steps = 0;
    }
    if (thread->steps < STEPS_PER_TURN) {
        thread->steps++;
        return true;
    }
    if (list_is_empty(&tls->waiting))
        list_push_back(&thread->waiting, &tls->waiting);
    loop_later(thread->loop, &thread->later);
    return false;
}
