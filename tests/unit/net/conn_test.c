/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

struct pair {
    struct loop loop;
    struct buf_pool bufs;
    struct conn conn;
    int peer;
};

static void nothing_ready(struct loop *loop, struct loop_io *io, uint32_t events) {}

static void nothing_due(struct loop *loop, struct loop_timer *timer) {}

static void start(struct pair *pair)
{
    int fds[2];
    assert_int_equal(loop_init(&pair->loop), ISO_OK);
    buf_pool_init(&pair->bufs);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    conn_init(&pair->conn, fds[0], nothing_ready, nothing_due);
    pair->peer = fds[1];
}

static void end(struct pair *pair)
{
    conn_close(&pair->conn, &pair->loop, &pair->bufs);
    close(pair->peer);
    assert_int_equal(pair->bufs.n_lent, 0);
    buf_pool_fini(&pair->bufs);
    loop_fini(&pair->loop);
}

static void a_short_read_counts_as_drained(void **state)
{
    struct pair pair;
    char data[16];
    size_t n;
    start(&pair);
    assert_int_equal(write(pair.peer, "abc", 3), 3);
    assert_int_equal(conn_read(&pair.conn, data, sizeof(data), &n), CONN_OK);
    assert_int_equal(n, 3);
    assert_false(pair.conn.can_read);
    end(&pair);
}

static void after_a_hangup_reading_goes_on_to_the_end(void **state)
{
    struct pair pair;
    char data[16];
    size_t n;
    start(&pair);
    assert_int_equal(write(pair.peer, "abc", 3), 3);
    assert_int_equal(shutdown(pair.peer, SHUT_WR), 0);
    conn_note_events(&pair.conn, EPOLLIN | EPOLLRDHUP);
    assert_int_equal(conn_read(&pair.conn, data, sizeof(data), &n), CONN_OK);
    assert_true(pair.conn.can_read);
    assert_int_equal(conn_read(&pair.conn, data, sizeof(data), &n), CONN_EOF);
    assert_true(pair.conn.saw_eof);
    end(&pair);
}

/* Writes more than the socket takes; the peer reads until all has come. */
static void what_a_full_socket_refuses_is_queued_and_arrives_whole(void **state)
{
    enum { BYTES = 400 * 1024 };
    struct pair pair;
    char *sent = malloc(BYTES), *got = malloc(BYTES);
    size_t len = 0;
    start(&pair);
    int small = 4096;
    assert_int_equal(setsockopt(pair.conn.io.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 31 + i / 251);
    struct iovec pieces[] = {{sent, 100}, {sent + 100, 200000}, {sent + 200100, BYTES - 200100}};
    assert_int_equal(conn_write(&pair.conn, &pair.bufs, pieces, 3), CONN_BLOCKED);
    assert_non_null(pair.conn.out);
    conn_shut(&pair.conn);
    assert_false(pair.conn.is_shut);
    for (;;) {
        ssize_t n = read(pair.peer, got + len, BYTES - len);
        if (n > 0) {
            len += (size_t)n;
            continue;
        }
        if (len == BYTES)
            break;
        assert_int_not_equal(conn_flush(&pair.conn, &pair.bufs), CONN_FAILED);
    }
    assert_memory_equal(sent, got, BYTES);
    assert_null(pair.conn.out);
    assert_int_equal(read(pair.peer, got, 1), 0); /* the end came after the last byte */
    free(sent);
    free(got);
    end(&pair);
}

static void output_waits_for_the_handshake(void **state)
{
    struct pair pair;
    char data[8];
    start(&pair);
    pair.conn.is_connecting = true;
    assert_int_equal(conn_write(&pair.conn, &pair.bufs, &(struct iovec){(char *)"abc", 3}, 1), CONN_BLOCKED);
    assert_int_equal(conn_flush(&pair.conn, &pair.bufs), CONN_BLOCKED);
    assert_int_equal(read(pair.peer, data, sizeof(data)), -1);
    pair.conn.is_connecting = false;
    assert_int_equal(conn_flush(&pair.conn, &pair.bufs), CONN_OK);
    assert_int_equal(read(pair.peer, data, sizeof(data)), 3);
    end(&pair);
}

static void a_broken_connection_fails_the_write(void **state)
{
    struct pair pair;
    start(&pair);
    close(pair.peer);
    pair.peer = dup(0);
    assert_int_equal(conn_write(&pair.conn, &pair.bufs, &(struct iovec){(char *)"abc", 3}, 1), CONN_FAILED);
    end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_read_counts_as_drained),
        cmocka_unit_test(after_a_hangup_reading_goes_on_to_the_end),
        cmocka_unit_test(what_a_full_socket_refuses_is_queued_and_arrives_whole),
        cmocka_unit_test(output_waits_for_the_handshake),
        cmocka_unit_test(a_broken_connection_fails_the_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
