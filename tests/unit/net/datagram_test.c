/* SPDX-License-Identifier: Apache-2.0 */
#include "net/datagram.h"

#include "net/addr.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

/* A listening socket, a client connected to it, and a batch. */
struct stage {
    int listener, client;
    struct net_addr addr;
    struct datagram_batch batch;
};

static void start(struct stage *stage, const char *address)
{
    struct ip_addr ip;
    assert_true(ip_parse(slice_str(address), &ip));
    net_addr_ip(&stage->addr, &ip, 0);
    assert_int_equal(datagram_listen(&stage->addr.sa, stage->addr.len, true, &stage->listener), 0);
    struct net_addr bound = {.len = sizeof(bound.in6)};
    assert_int_equal(getsockname(stage->listener, &bound.sa, &bound.len), 0);
    if (ip.family == 6 && ip.bytes[15] == 0) {
        assert_true(ip_parse(SLICE("::1"), &ip));
        net_addr_ip(&stage->addr, &ip, net_addr_port(&bound));
    } else {
        stage->addr = bound;
    }
    stage->client = datagram_connect(&stage->addr.sa, stage->addr.len);
    assert_true(stage->client >= 0);
    stage->batch = (struct datagram_batch){.n = 0};
    assert_int_equal(datagram_batch_init(&stage->batch), ISO_OK);
}

static void end(struct stage *stage)
{
    datagram_batch_fini(&stage->batch);
    close(stage->listener);
    close(stage->client);
}

static void wait_for(int fd)
{
    assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000), 1);
}

static void send_text(struct stage *stage, const char *text)
{
    const struct datagram one = {.data = (char *)text, .len = (uint32_t)strlen(text)};
    assert_int_equal(datagram_send(stage->client, &one), 0);
    wait_for(stage->listener);
}

static void several_are_received_and_sent_back_at_once(void **state)
{
    struct stage stage;
    char got[16];
    int err;
    start(&stage, "127.0.0.1");
    send_text(&stage, "one");
    send_text(&stage, "three");
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, DATAGRAM_BATCH, &err), 2);
    assert_int_equal(stage.batch.items[1].len, 5);
    assert_int_equal(datagram_flush(&stage.batch, stage.listener), 0);
    assert_int_equal(stage.batch.n, 0);
    wait_for(stage.client);
    assert_int_equal(recv(stage.client, got, sizeof(got), 0), 3);
    wait_for(stage.client);
    assert_int_equal(recv(stage.client, got, sizeof(got), 0), 5);
    end(&stage);
}

static void nothing_is_no_error(void **state)
{
    struct stage stage;
    int err = 1;
    start(&stage, "127.0.0.1");
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, 1, &err), 0);
    assert_int_equal(err, 0);
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, 8, &err), 0);
    assert_int_equal(err, 0);
    end(&stage);
}

static void a_second_receive_appends(void **state)
{
    struct stage stage;
    int err;
    start(&stage, "127.0.0.1");
    send_text(&stage, "one");
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, 1, &err), 1);
    send_text(&stage, "three");
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, 1, &err), 1);
    assert_int_equal(stage.batch.n, 2);
    assert_memory_equal(stage.batch.items[0].data, "one", 3);
    assert_memory_equal(stage.batch.items[1].data, "three", 5);
    end(&stage);
}

static void glued_ones_travel_as_one_and_are_cut_again(void **state)
{
    struct stage stage;
    static char data[2500];
    int err;
    start(&stage, "127.0.0.1");
    const struct datagram glued = {.data = data, .len = sizeof(data), .segment = 1000};
    assert_int_equal(datagram_count(&glued), 3);
    assert_int_equal(datagram_send(stage.client, &glued), 0);
    wait_for(stage.listener);
    uint32_t n = datagram_receive(&stage.batch, stage.listener, DATAGRAM_BATCH, &err), total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += datagram_count(&stage.batch.items[i]);
    assert_int_equal(total, 3);
    assert_int_equal(datagram_flush(&stage.batch, stage.listener), 0);
    wait_for(stage.client);
    struct datagram_batch *batch = &stage.batch;
    n = datagram_receive(batch, stage.client, DATAGRAM_BATCH, &err);
    total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += batch->items[i].len;
    assert_int_equal(total, sizeof(data));
    end(&stage);
}

static void a_wildcard_tells_which_address_was_asked(void **state)
{
    struct stage stage;
    struct ip_addr loopback;
    int err;
    start(&stage, "::");
    assert_true(ip_parse(SLICE("::1"), &loopback));
    send_text(&stage, "x");
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, 1, &err), 1);
    assert_true(ip_eq(&stage.batch.items[0].local, &loopback));
    assert_int_equal(datagram_flush(&stage.batch, stage.listener), 0);
    wait_for(stage.client);
    end(&stage);
}

static void one_that_cannot_be_sent_does_not_keep_the_others(void **state)
{
    struct stage stage;
    int err;
    start(&stage, "127.0.0.1");
    send_text(&stage, "bad");
    send_text(&stage, "good");
    assert_int_equal(datagram_receive(&stage.batch, stage.listener, DATAGRAM_BATCH, &err), 2);
    stage.batch.items[0].peer.in4.sin_port = 0; /* EINVAL */
    assert_int_equal(datagram_flush(&stage.batch, stage.listener), 1);
    wait_for(stage.client);
    end(&stage);
}

static void a_peer_that_refuses_is_told_of(void **state)
{
    struct stage stage;
    const struct datagram one = {.data = (char[]){"x"}, .len = 1};
    start(&stage, "127.0.0.1");
    close(stage.listener);
    assert_int_equal(datagram_send(stage.client, &one), 0);
    wait_for(stage.client);
    assert_int_equal(datagram_send(stage.client, &one), ECONNREFUSED);
    stage.listener = -1;
    end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_are_received_and_sent_back_at_once),
        cmocka_unit_test(nothing_is_no_error),
        cmocka_unit_test(a_second_receive_appends),
        cmocka_unit_test(glued_ones_travel_as_one_and_are_cut_again),
        cmocka_unit_test(a_wildcard_tells_which_address_was_asked),
        cmocka_unit_test(one_that_cannot_be_sent_does_not_keep_the_others),
        cmocka_unit_test(a_peer_that_refuses_is_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
