/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/grpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void calls_are_known_by_their_content_type(void **state)
{
    assert_true(grpc_is_content_type(SLICE("application/grpc")));
    assert_true(grpc_is_content_type(SLICE("application/grpc+proto")));
    assert_true(grpc_is_content_type(SLICE("Application/GRPC; charset=utf-8")));
    assert_false(grpc_is_content_type(SLICE("application/grpc-web")));
    assert_false(grpc_is_content_type(SLICE("application/grpcx")));
    assert_false(grpc_is_content_type(SLICE("application/grp")));
    assert_false(grpc_is_content_type(SLICE("")));
}

static void timeouts_have_up_to_eight_digits_and_a_unit(void **state)
{
    uint64_t ns = 0;
    assert_true(grpc_timeout_ns(SLICE("200m"), &ns) && ns == 200000000);
    assert_true(grpc_timeout_ns(SLICE("1H"), &ns) && ns == 3600000000000);
    assert_true(grpc_timeout_ns(SLICE("5S"), &ns) && ns == 5000000000);
    assert_true(grpc_timeout_ns(SLICE("2M"), &ns) && ns == 120000000000);
    assert_true(grpc_timeout_ns(SLICE("99999999u"), &ns) && ns == 99999999000);
    assert_true(grpc_timeout_ns(SLICE("0n"), &ns) && ns == 0);
}

static void rejects_timeouts_that_are_malformed_or_endless(void **state)
{
    static const struct slice bad[] = {SLICE(""),    SLICE("5"),   SLICE("m"),
                                       SLICE("5 m"), SLICE("-5m"), SLICE("123456789m"),
                                       SLICE("5x"),  SLICE("5s"),  SLICE("99999999H")};
    uint64_t ns = 7;
    for (size_t i = 0; i < iso_countof(bad); i++)
        assert_false(grpc_timeout_ns(bad[i], &ns));
    assert_int_equal(ns, 7);
}

static void statuses_map_as_the_protocol_says_C071(void **state)
{
    assert_int_equal(grpc_status_of(400), GRPC_INTERNAL);
    assert_int_equal(grpc_status_of(401), GRPC_UNAUTHENTICATED);
    assert_int_equal(grpc_status_of(403), GRPC_PERMISSION_DENIED);
    assert_int_equal(grpc_status_of(404), GRPC_UNIMPLEMENTED);
    assert_int_equal(grpc_status_of(413), GRPC_RESOURCE_EXHAUSTED);
    for (unsigned status = 502; status <= 504; status++)
        assert_int_equal(grpc_status_of(status), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_status_of(429), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_status_of(500), GRPC_UNKNOWN);
}

static void messages_are_percent_encoded_and_cut_where_they_do_not_fit(void **state)
{
    char bytes[64];
    struct scratch scratch = {bytes, bytes + sizeof(bytes)};
    struct slice out = grpc_message(SLICE("100% \n\xc3\xa9!"), &scratch);
    assert_true(slice_eq(out, SLICE("100%25 %0A%C3%A9!")));
    struct scratch small = {bytes, bytes + 4};
    assert_true(slice_eq(grpc_message(SLICE("abcdef"), &small), SLICE("ab")));
}

static void a_status_is_read_from_a_head_or_from_trailers_C068(void **state)
{
    struct http_message *msg = calloc(1, sizeof(*msg));
    http_message_init(msg, true);
    assert_int_equal(grpc_status_in(msg), GRPC_STATUS_UNKNOWN);
    assert_int_equal(grpc_status_in(NULL), GRPC_STATUS_UNKNOWN);
    http_message_add(msg, SLICE("grpc-status"), SLICE("14"));
    assert_int_equal(grpc_status_in(msg), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_sign_of(GRPC_UNAVAILABLE), PASSIVE_GATEWAY);
    assert_int_equal(grpc_sign_of(GRPC_INTERNAL), PASSIVE_5XX);
    assert_int_equal(grpc_sign_of(GRPC_UNIMPLEMENTED), PASSIVE_GOOD);
    http_message_init(msg, true);
    http_message_add(msg, SLICE("grpc-status"), SLICE("77"));
    assert_int_equal(grpc_status_in(msg), GRPC_UNKNOWN);
    assert_true(slice_eq(grpc_status_text(GRPC_OK), SLICE("0")));
    assert_true(slice_eq(grpc_status_text(GRPC_RESOURCE_EXHAUSTED), SLICE("8")));
    assert_true(slice_eq(grpc_status_text(GRPC_UNAVAILABLE), SLICE("14")));
    assert_int_equal(grpc_status_text(GRPC_STATUS_UNKNOWN).len, 0);
    free(msg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_known_by_their_content_type),
        cmocka_unit_test(timeouts_have_up_to_eight_digits_and_a_unit),
        cmocka_unit_test(rejects_timeouts_that_are_malformed_or_endless),
        cmocka_unit_test(statuses_map_as_the_protocol_says_C071),
        cmocka_unit_test(messages_are_percent_encoded_and_cut_where_they_do_not_fit),
        cmocka_unit_test(a_status_is_read_from_a_head_or_from_trailers_C068),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
