/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct http_message msg;
static struct http2_fields list;
static char room[4096];

static int set_up(void **state)
{
    http_message_init(&msg, true);
    msg.status = 200;
    return 0;
}

static struct scratch scratch(void)
{
    return (struct scratch){room, room + sizeof(room)};
}

/* The value of the only field of that name; an empty name counts them all. */
static struct slice value_of(const char *name)
{
    struct slice found = {0};
    for (size_t i = 0; i < list.n; i++) {
        const nghttp2_nv *nv = &list.nv[i];
        if (!slice_eq(slice_of((char *)nv->name, nv->namelen), slice_str(name)))
            continue;
        assert_null(found.ptr);
        found = slice_of((char *)nv->value, nv->valuelen);
    }
    return found;
}

#define assert_value(name, str) assert_true(slice_eq(value_of(name), slice_str(str)))

static void names_become_lower_case_and_the_connections_fields_stay_behind_C_062(void **state)
{
    struct scratch s = scratch();
    http_message_add(&msg, SLICE("X-MiXed"), SLICE("1"));
    http_message_add(&msg, SLICE("Set-Cookie"), SLICE("a=b"));
    http_message_add(&msg, SLICE("Connection"), SLICE("close"));
    http_message_add(&msg, SLICE("Upgrade"), SLICE("websocket"));
    http_message_add(&msg, SLICE("Content-Length"), SLICE("9"));
    msg.framing = HTTP_BODY_CHUNKED;
    assert_true(http2_fields_of_response(&list, &msg, &s));
    assert_int_equal(list.n, 3);
    assert_value(":status", "200");
    assert_value("x-mixed", "1");
    assert_value("set-cookie", "a=b");
}

static void the_length_is_that_of_the_decision(void **state)
{
    struct scratch s = scratch();
    msg.framing = HTTP_BODY_LENGTH;
    msg.content_length = 1234567890123;
    assert_true(http2_fields_of_response(&list, &msg, &s));
    assert_value("content-length", "1234567890123");
}

static void a_length_without_body_is_kept_C_025(void **state)
{
    struct scratch s = scratch();
    msg.status = 304;
    msg.framing = HTTP_BODY_NONE;
    msg.has_length = true;
    msg.content_length = 512;
    assert_true(http2_fields_of_response(&list, &msg, &s));
    assert_value("content-length", "512");
    msg.has_length = false;
    assert_true(http2_fields_of_response(&list, &msg, &s));
    assert_null(value_of("content-length").ptr);
}

static void a_request_has_one_authority(void **state)
{
    struct scratch s = scratch();
    http_message_init(&msg, false);
    msg.method_text = SLICE("GET");
    msg.authority = SLICE("a.example");
    msg.path = SLICE("/p");
    msg.query = SLICE("q=1");
    msg.te_trailers = true;
    http_message_add(&msg, SLICE("Host"), SLICE("a.example"));
    assert_true(http2_fields_of_request(&list, &msg, SLICE("http"), (struct slice){0}, &s));
    assert_value(":method", "GET");
    assert_value(":scheme", "http");
    assert_value(":authority", "a.example");
    assert_value(":path", "/p?q=1");
    assert_value("te", "trailers");
    assert_null(value_of("host").ptr);
}

static void without_room_there_is_no_list(void **state)
{
    struct scratch s = {room, room + 3};
    http_message_add(&msg, SLICE("X-MiXed"), SLICE("1"));
    assert_false(http2_fields_of_response(&list, &msg, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(names_become_lower_case_and_the_connections_fields_stay_behind_C_062, set_up),
        cmocka_unit_test_setup(the_length_is_that_of_the_decision, set_up),
        cmocka_unit_test_setup(a_length_without_body_is_kept_C_025, set_up),
        cmocka_unit_test_setup(a_request_has_one_authority, set_up),
        cmocka_unit_test_setup(without_room_there_is_no_list, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
