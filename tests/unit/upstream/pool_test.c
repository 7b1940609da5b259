/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/pool.h"

#include "core/clock.h"
#include "net/listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cmocka.h>

/* A pool beside a listening socket that plays the backend. */
struct stage {
    struct loop loop;
    struct buf_pool bufs;
    struct pool pool;
    struct registry *registry;
    struct group_runtime *group;
    struct backend *backend;
    int listen_fd;
    struct loop_timer stop;
};

static void on_stop(struct loop *loop, struct loop_timer *timer)
{
    loop_stop(loop);
}

/* Lets the loop see what happened meanwhile. */
static void turn(struct stage *stage)
{
    stage->loop.stopping = false;
    loop_timer_init(&stage->stop, on_stop);
    loop_timer_set(&stage->loop, &stage->stop, stage->loop.now_ns + 30 * NS_PER_MS);
    loop_run(&stage->loop);
}

static void start(struct stage *stage)
{
    struct net_addr addr;
    struct ip_addr loopback = {.family = 4, .bytes = {127, 0, 0, 1}};
    assert_int_equal(loop_init(&stage->loop), ISO_OK);
    buf_pool_init(&stage->bufs);
    pool_init(&stage->pool, &stage->loop, &stage->bufs, NULL, 0);
    net_addr_ip(&addr, &loopback, 0);
    assert_int_equal(listen_open(&addr, &(struct listen_options){.backlog = 16}, &stage->listen_fd), 0);
    addr.in4.sin_port = htons(listen_port(stage->listen_fd));
    stage->registry = registry_new(1);
    stage->group = registry_group(stage->registry, SLICE("g"));
    stage->backend = registry_backend(stage->registry, SLICE("g"), SLICE("t"), &addr, stage->group);
}

static void end(struct stage *stage)
{
    pool_retire(&stage->pool, stage->backend);
    assert_int_equal(atomic_load(&stage->backend->connections), 0);
    assert_int_equal(counter_read(&stage->backend->workers[0].counters.open_connections), 0);
    assert_int_equal(counter_read(&stage->backend->workers[0].counters.idle_connections), 0);
    close(stage->listen_fd);
    loop_fini(&stage->loop);
    assert_int_equal(stage->pool.slab.live, 0);
    pool_fini(&stage->pool);
    buf_pool_fini(&stage->bufs);
    registry_backend_unref(stage->registry, &stage->backend);
    registry_group_unref(stage->registry, &stage->group);
    registry_free(stage->registry);
}

static struct upstream *open_one(struct stage *stage, int *peer)
{
    struct upstream *upstream = NULL;
    assert_int_equal(pool_open(&stage->pool, stage->backend, NULL, 0, &upstream), POOL_OPEN_STARTED);
    do
        *peer = accept(stage->listen_fd, NULL, NULL);
    while (*peer < 0);
    upstream->conn.is_connecting = false;
    return upstream;
}

static void the_most_recently_used_is_lent_first(void **state)
{
    struct stage stage;
    int peers[2];
    start(&stage);
    struct upstream *a = open_one(&stage, &peers[0]), *b = open_one(&stage, &peers[1]), *last = a;
    pool_give(&stage.pool, &b, 60000);
    pool_give(&stage.pool, &a, 60000);
    assert_ptr_equal(pool_take(&stage.pool, stage.backend, NULL, false), last);
    pool_give(&stage.pool, &last, 60000);
    close(peers[0]);
    close(peers[1]);
    end(&stage);
}

static void a_peer_that_closes_an_idle_connection_takes_it_out(void **state)
{
    struct stage stage;
    int peer;
    start(&stage);
    struct upstream *a = open_one(&stage, &peer);
    pool_give(&stage.pool, &a, 60000);
    close(peer);
    turn(&stage);
    assert_null(pool_take(&stage.pool, stage.backend, NULL, false));
    end(&stage);
}

static void bytes_that_nobody_asked_for_end_an_idle_connection_C_011(void **state)
{
    struct stage stage;
    int peer;
    start(&stage);
    struct upstream *a = open_one(&stage, &peer);
    pool_give(&stage.pool, &a, 60000);
    assert_int_equal(write(peer, "\r\n", 2), 2);
    turn(&stage);
    assert_null(pool_take(&stage.pool, stage.backend, NULL, false));
    close(peer);
    end(&stage);
}

static void a_connection_with_unread_bytes_is_not_pooled(void **state)
{
    struct stage stage;
    int peer;
    start(&stage);
    struct upstream *a = open_one(&stage, &peer);
    assert_int_equal(write(peer, "HTTP", 4), 4);
    a->conn.can_read = true;
    pool_give(&stage.pool, &a, 60000);
    assert_null(pool_take(&stage.pool, stage.backend, NULL, false));
    close(peer);
    end(&stage);
}

static void a_kept_connection_is_found_at_its_place_only(void **state)
{
    struct stage stage;
    struct upstream *place = NULL;
    int peer;
    start(&stage);
    struct upstream *upstream = open_one(&stage, &peer), *first = upstream;
    pool_keep(&stage.pool, &upstream, 60000, &place);
    assert_ptr_equal(place, first);
    assert_null(pool_take(&stage.pool, stage.backend, NULL, false));
    assert_ptr_equal(pool_take_kept(&stage.pool, &place, stage.backend, NULL, false), first);
    assert_null(place);
    pool_keep(&stage.pool, &first, 60000, &place);
    close(peer);
    turn(&stage);
    assert_null(place);
    end(&stage);
}

static void a_second_kept_connection_takes_the_place(void **state)
{
    struct stage stage;
    struct upstream *place = NULL;
    int peers[2];
    start(&stage);
    struct upstream *first = open_one(&stage, &peers[0]), *second = open_one(&stage, &peers[1]),
                    *wanted = second;
    pool_keep(&stage.pool, &first, 60000, &place);
    pool_keep(&stage.pool, &second, 60000, &place);
    assert_ptr_equal(place, wanted);
    assert_int_equal(stage.backend->workers[0].n_idle, 1);
    pool_retire(&stage.pool, stage.backend);
    assert_null(place);
    close(peers[0]);
    close(peers[1]);
    end(&stage);
}

static void a_preface_goes_out_when_the_connection_stands(void **state)
{
    struct stage stage;
    struct upstream *upstream = NULL;
    char got[8];
    int peer, err = 0;
    start(&stage);
    assert_int_equal(pool_open(&stage.pool, stage.backend, NULL, 0, &upstream), POOL_OPEN_STARTED);
    assert_true(pool_preface(upstream, SLICE("hello")));
    do
        peer = accept(stage.listen_fd, NULL, NULL);
    while (peer < 0);
    assert_int_equal(pool_connect_check(upstream, EPOLLOUT, &err), POOL_CONNECT_OPEN);
    assert_int_equal(pool_connect_check(upstream, EPOLLOUT, &err), POOL_CONNECT_OPEN);
    assert_int_equal(read(peer, got, sizeof(got)), 5);
    pool_close(&stage.pool, &upstream);
    close(peer);
    end(&stage);
}

static void an_idle_connection_ends_after_its_time(void **state)
{
    struct stage stage;
    int peer;
    start(&stage);
    struct upstream *a = open_one(&stage, &peer);
    pool_give(&stage.pool, &a, 1);
    turn(&stage);
    turn(&stage);
    assert_null(pool_take(&stage.pool, stage.backend, NULL, false));
    close(peer);
    end(&stage);
}

static void the_limit_counts_idle_and_lent_ones(void **state)
{
    struct stage stage;
    int peer;
    struct upstream *b;
    start(&stage);
    struct upstream *a = open_one(&stage, &peer);
    assert_int_equal(pool_open(&stage.pool, stage.backend, NULL, 1, &b), POOL_OPEN_FULL);
    pool_give(&stage.pool, &a, 60000);
    assert_int_equal(pool_open(&stage.pool, stage.backend, NULL, 1, &b), POOL_OPEN_FULL);
    assert_int_equal(atomic_load(&stage.backend->connections), 1);
    close(peer);
    end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_recently_used_is_lent_first),
        cmocka_unit_test(a_peer_that_closes_an_idle_connection_takes_it_out),
        cmocka_unit_test(bytes_that_nobody_asked_for_end_an_idle_connection_C_011),
        cmocka_unit_test(a_connection_with_unread_bytes_is_not_pooled),
        cmocka_unit_test(a_kept_connection_is_found_at_its_place_only),
        cmocka_unit_test(a_second_kept_connection_takes_the_place),
        cmocka_unit_test(a_preface_goes_out_when_the_connection_stands),
        cmocka_unit_test(an_idle_connection_ends_after_its_time),
        cmocka_unit_test(the_limit_counts_idle_and_lent_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
