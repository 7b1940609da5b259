/* SPDX-License-Identifier: Apache-2.0 */
/* The server against bytes of a client that are made here, and frames of its own that are looked at. */
#include "http2/server.h"
#include "http2/walk.h"

#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8 };

static const struct h1_limits limits = {.head_bytes = 8192, .uri_bytes = 4096, .fields = 100};
static struct buf_pool bufs;
static struct http_message msg, trailers;
static struct http2_server *server;
static uint64_t now_ns = NS_PER_S;
static struct slice body; /* what the answer still has */

static struct {
    int32_t id;
    int requests, refused, ends, closes, floods;
    int refusals[2];
    bool by_client, ended;
    uint32_t code;
    size_t data_bytes;
} saw;

static void *on_request(void *owner, int32_t id, struct http_message *m, size_t head_bytes, bool ends,
                        struct slice protocol)
{
    assert_ptr_equal(owner, &saw);
    assert_true(slice_eq(m->path, SLICE("/")) && slice_eq(m->authority, SLICE("a")));
    saw.id = id;
    saw.requests++;
    saw.ended = ends;
    return &saw;
}

static void *on_refused(void *owner, int32_t id, enum http_reject why, bool ends)
{
    saw.refused++;
    return NULL;
}

static void on_data(void *owner, void *stream, char *data, size_t len)
{
    saw.data_bytes += len;
}

static void on_ended(void *owner, void *stream, const struct http_message *m)
{
    saw.ends++;
}

static void on_closed(void *owner, void *stream, bool by_client, uint32_t code)
{
    saw.closes++;
    saw.by_client = by_client;
    saw.code = code;
}

static struct slice on_peek(void *owner, void *stream, bool *is_last, bool *stays)
{
    *is_last = *stays = true;
    return body;
}

static void on_took(void *owner, void *stream, size_t n)
{
    body = slice_of(body.ptr + n, body.len - n);
}

static void on_answered(void *owner, void *stream) {}

static const struct http_message *on_trailers(void *owner, void *stream)
{
    return NULL;
}

static void on_refusal(void *owner, enum http2_refusal what)
{
    saw.refusals[what]++;
}

static void on_flood(void *owner, enum http2_flood what)
{
    saw.floods++;
}

static void on_pong(void *owner) {}

static const struct http2_server_handler handler = {
    .request = on_request,
    .refused = on_refused,
    .data = on_data,
    .ended = on_ended,
    .closed = on_closed,
    .peek = on_peek,
    .took = on_took,
    .answered = on_answered,
    .trailers = on_trailers,
    .refusal = on_refusal,
    .flood = on_flood,
    .pong = on_pong,
};

static void receive(const char *bytes, size_t len)
{
    char *copy = malloc(len);
    memcpy(copy, bytes, len);
    http2_server_receive(server, copy, len, now_ns);
    free(copy);
}

static void receive_frame(uint8_t type, uint8_t flags, int32_t stream, const char *payload, size_t len)
{
    char frame[512] = {0, (char)(len >> 8), (char)len, (char)type, (char)flags, 0, 0, 0, (char)stream};
    memcpy(frame + 9, payload, len);
    receive(frame, 9 + len);
}

/* GET or POST / of host "a", by the static table. */
static void receive_request(int32_t stream, bool post, bool ends)
{
    const char block[] = {post ? '\x83' : '\x82', '\x86', '\x84', '\x41', '\x01', 'a'};
    receive_frame(HEADERS, ends ? 5 : 4, stream, block, sizeof(block));
}

static char out[256 * 1024];
static size_t out_len;

static size_t gather(void)
{
    struct iovec piece;
    struct http2_output output = {out + out_len, sizeof(out) - out_len, &piece, 0, 1};
    http2_server_gather(server, &output);
    size_t got = output.n ? piece.iov_len : 0;
    out_len += got;
    return got;
}

/* How many frames of a type the server sends now; *first is where the payload of the first of them is. */
static int sends(uint8_t type, const char **first)
{
    struct http2_walk walk = {0};
    size_t at = 0;
    int n = 0;
    while (gather() > 0)
        ;
    while (http2_walk_next(&walk, out, out_len, &at))
        if (http2_walk_type(&walk) == type && n++ == 0 && first)
            *first = out + at;
    return n;
}

static int set_up(void **state)
{
    memset(&saw, 0, sizeof(saw));
    out_len = 0;
    body = (struct slice){0};
    buf_pool_init(&bufs);
    const struct http2_server_options options = {.handler = &handler,
                                                 .owner = &saw,
                                                 .limits = &limits,
                                                 .bufs = &bufs,
                                                 .msg = &msg,
                                                 .trailers = &trailers,
                                                 .max_streams = 3,
                                                 .now_ns = NS_PER_S};
    server = http2_server_new(&options);
    assert_non_null(server);
    receive(HTTP2_PREFACE, sizeof(HTTP2_PREFACE) - 1);
    receive_frame(SETTINGS, 0, 0, "", 0);
    return 0;
}

static int tear_down(void **state)
{
    http2_server_free(&server);
    assert_int_equal(bufs.n_lent, 0);
    buf_pool_fini(&bufs);
    return 0;
}

static void answer(int32_t id, bool ends)
{
    char room[64];
    struct scratch scratch = {room, room + sizeof(room)};
    http_message_init(&msg, true);
    msg.status = 200;
    msg.framing = ends ? HTTP_BODY_NONE : HTTP_BODY_CHUNKED;
    assert_true(http2_server_answer(server, id, &msg, ends, &scratch) > 0);
}

static void settings_come_first_and_name_the_limit_of_streams(void **state)
{
    const char *payload = NULL;
    assert_int_equal(sends(SETTINGS, &payload), 2); /* and the acknowledgement of the client's */
    assert_memory_equal(payload, "\0\3\0\0\0\3", 6);
}

static void a_request_is_told_and_its_answer_sent(void **state)
{
    receive_request(1, false, true);
    assert_int_equal(saw.requests, 1);
    assert_true(saw.ended);
    body = SLICE("hello");
    answer(1, false);
    const char *payload = NULL;
    assert_int_equal(sends(DATA, &payload), 1);
    assert_memory_equal(payload, "hello", 5);
    assert_int_equal(saw.closes, 1);
    assert_int_equal(saw.code, HTTP2_NO_ERROR);
}

static void streams_beyond_the_limit_are_refused_C_067(void **state)
{
    const char *code = NULL;
    for (int32_t id = 1; id <= 7; id += 2)
        receive_request(id, false, true);
    assert_int_equal(saw.requests, 3);
    assert_int_equal(sends(RST_STREAM, &code), 1);
    assert_int_equal(code[3], HTTP2_REFUSED_STREAM);
    assert_int_equal(saw.refusals[HTTP2_REFUSAL_TOO_MANY], 1);
    assert_int_equal(sends(GOAWAY, NULL), 0);
}

static void a_window_opens_only_when_bytes_were_taken(void **state)
{
    static const char bytes[400];
    receive_request(1, true, false);
    sends(SETTINGS, NULL);
    out_len = 0;
    for (int i = 0; i < 150; i++)
        receive_frame(DATA, 0, 1, bytes, sizeof(bytes));
    assert_int_equal(saw.data_bytes, 60000);
    assert_int_equal(sends(WINDOW_UPDATE, NULL), 0);
    struct http2_window window;
    http2_server_window_init(&window);
    http2_server_consume(server, 1, &window, 60000, false);
    const char *increment = NULL;
    assert_int_equal(sends(WINDOW_UPDATE, &increment), 1);
    assert_memory_equal(increment, "\0\0\xea\x60", 4);
}

/* A body of 60,000 bytes that its target takes `at_once` or not; returns what more the client may send. */
static uint64_t credit_for_body(struct http2_window *window, bool at_once)
{
    static const char bytes[400];
    uint64_t given = 0;
    struct http2_walk walk = {0};
    out_len = 0;
    for (int i = 0; i < 150; i++) {
        receive_frame(DATA, 0, 1, bytes, sizeof(bytes));
        http2_server_consume(server, 1, window, sizeof(bytes), at_once);
    }
    sends(WINDOW_UPDATE, NULL);
    for (size_t at = 0; http2_walk_next(&walk, out, out_len, &at);)
        if (http2_walk_type(&walk) == WINDOW_UPDATE && http2_walk_stream(&walk) == 1)
            given += (uint64_t)(unsigned char)out[at + 1] << 16 | (uint64_t)(unsigned char)out[at + 2] << 8 |
                     (unsigned char)out[at + 3];
    return given;
}

static void a_window_grows_by_what_came_until_a_ping_was_answered(void **state)
{
    struct http2_window window;
    const char *ping = NULL;
    http2_server_window_init(&window);
    receive_request(1, true, false);
    sends(SETTINGS, NULL);
    assert_true(credit_for_body(&window, true) <= 60000); /* the half that is left was asked about */
    assert_int_equal(sends(PING, &ping), 1);
    char ack[8];
    memcpy(ack, ping, sizeof(ack));
    credit_for_body(&window, true);
    now_ns += 100 * NS_PER_MS;
    receive_frame(PING, 1, 0, ack, sizeof(ack));
    now_ns += 100 * NS_PER_MS;
    assert_true(credit_for_body(&window, true) > 90000); /* more than was taken */
    assert_in_range(window.size, 90 * 1000, 300 * 1000);
    credit_for_body(&window, false);
    assert_int_equal(window.size, HTTP2_STREAM_WINDOW);
}

static void a_long_body_is_sent_from_where_it_is(void **state)
{
    static char answer[40000];
    struct iovec pieces[17];
    struct http2_output output = {out, sizeof(out), pieces, 0, 17};
    receive_request(1, false, true);
    sends(SETTINGS, NULL);
    struct scratch scratch = {out, out + 4096};
    http_message_init(&msg, true);
    msg.status = 200;
    msg.framing = HTTP_BODY_CHUNKED;
    assert_true(http2_server_answer(server, 1, &msg, false, &scratch) > 0);
    body = slice_of(answer, sizeof(answer));
    assert_int_equal(http2_server_room(server, 1), 0); /* the head goes first */
    http2_server_gather(server, &output);
    assert_int_equal(output.n, 6); /* heads and bytes of three frames */
    assert_ptr_equal(pieces[1].iov_base, answer);
    assert_ptr_equal(pieces[3].iov_base, answer + 16384);
    assert_int_equal(pieces[5].iov_len, sizeof(answer) - 2 * 16384);
    assert_int_equal(body.len, 0);
}

static void a_reset_of_the_client_is_told(void **state)
{
    receive_request(1, true, false);
    receive_frame(RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    assert_int_equal(saw.closes, 1);
    assert_true(saw.by_client);
    assert_int_equal(saw.code, HTTP2_CANCEL);
}

static void a_length_that_its_data_contradicts_is_an_error_of_the_stream(void **state)
{
    static const char block[] = "\x83\x86\x84\x41\x01"
                                "a\x0f\x0d\x01"
                                "3";
    receive_frame(HEADERS, 4, 1, block, sizeof(block) - 1);
    receive_frame(DATA, 1, 1, "hello", 5);
    const char *code = NULL;
    assert_int_equal(sends(RST_STREAM, &code), 1);
    assert_int_equal(code[3], HTTP2_PROTOCOL_ERROR);
    assert_int_equal(saw.ends, 0);
    assert_int_equal(saw.refusals[HTTP2_REFUSAL_MALFORMED], 1);
}

static void leaving_is_a_notice_and_then_the_last_stream_C_057(void **state)
{
    receive_request(1, false, true);
    http2_server_give_notice(server);
    const char *last = NULL;
    assert_int_equal(sends(GOAWAY, &last), 1);
    assert_memory_equal(last, "\x7f\xff\xff\xff\0\0\0\0", 8);
    assert_int_equal(sends(PING, NULL), 1);
    receive_request(3, false, true);
    assert_int_equal(saw.requests, 2);
    out_len = 0;
    http2_server_go_away(server);
    assert_int_equal(sends(GOAWAY, &last), 1);
    assert_memory_equal(last, "\0\0\0\3\0\0\0\0", 8);
    receive_request(5, false, true);
    assert_int_equal(saw.requests, 2);
    assert_false(http2_server_is_over(server));
    answer(1, true);
    answer(3, true);
    sends(HEADERS, NULL);
    assert_true(http2_server_is_over(server));
}

static void rejects_what_is_no_preface(void **state)
{
    http2_server_free(&server);
    buf_pool_fini(&bufs);
    buf_pool_init(&bufs);
    const struct http2_server_options options = {.handler = &handler,
                                                 .owner = &saw,
                                                 .limits = &limits,
                                                 .bufs = &bufs,
                                                 .msg = &msg,
                                                 .trailers = &trailers};
    server = http2_server_new(&options);
    receive("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    const char *last = NULL;
    out_len = 0;
    assert_int_equal(sends(GOAWAY, &last), 1);
    assert_int_equal(last[7], HTTP2_PROTOCOL_ERROR);
    assert_true(http2_server_is_over(server));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(settings_come_first_and_name_the_limit_of_streams),
        T(a_request_is_told_and_its_answer_sent),
        T(streams_beyond_the_limit_are_refused_C_067),
        T(a_window_opens_only_when_bytes_were_taken),
        T(a_window_grows_by_what_came_until_a_ping_was_answered),
        T(a_long_body_is_sent_from_where_it_is),
        T(a_reset_of_the_client_is_told),
        T(a_length_that_its_data_contradicts_is_an_error_of_the_stream),
        T(leaving_is_a_notice_and_then_the_last_stream_C_057),
        T(rejects_what_is_no_preface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
