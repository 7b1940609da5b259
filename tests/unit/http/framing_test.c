/* SPDX-License-Identifier: Apache-2.0 */
#include "heads.h"

#define framed(m, want)                                                                                      \
    do {                                                                                                     \
        assert_int_equal((m)->framing, want);                                                                \
        assert_false(kept(m, "Content-Length"));                                                             \
        assert_false(kept(m, "Transfer-Encoding"));                                                          \
    } while (0)

static void a_request_without_framing_fields_has_no_body(void **state)
{
    framed(accepted(get("")), HTTP_BODY_NONE);
    framed(accepted(post("")), HTTP_BODY_NONE);
}

static void content_length_frames_a_request_C_009(void **state)
{
    struct http_message *m = accepted(get("Content-Length: 27\r\n"));
    framed(m, HTTP_BODY_LENGTH);
    assert_true(m->has_length);
    assert_true(m->content_length == 27);
    m = accepted(post("Content-Length: 0\r\n"));
    framed(m, HTTP_BODY_LENGTH);
    assert_true(m->has_length);
    assert_true(accepted(post("Content-Length: 9223372036854775807\r\n"))->content_length == INT64_MAX);
}

static void leading_zeros_are_decimal(void **state)
{
    assert_true(accepted(post("Content-Length: 0200\r\n"))->content_length == 200);
}

static void chunked_frames_a_request(void **state)
{
    struct http_message *m =
        accepted(request("DELETE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tChunked \r\n\r\n"));
    framed(m, HTTP_BODY_CHUNKED);
    assert_false(m->has_length);
}

static void rejects_malformed_content_length_C_001(void **state)
{
    rejected(post("Content-Length:\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 0x4\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 4a\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: -1\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: -0\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 1_0\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 1 0\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 4.0\r\n"), HTTP_REJECT_BAD_LENGTH);
}

static void rejects_content_length_with_plus_sign_C_001(void **state)
{
    rejected(post("Content-Length: +4\r\n"), HTTP_REJECT_BAD_LENGTH);
}

static void rejects_content_length_that_overflows_C_001(void **state)
{
    rejected(post("Content-Length: 9223372036854775808\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 18446744073709551620\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 99999999999999999999999\r\n"), HTTP_REJECT_BAD_LENGTH);
}

static void rejects_repeated_content_length_C_001(void **state)
{
    rejected(post("Content-Length: 4,\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 4, 5\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 4, 4\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 4\r\nContent-Length: 5\r\n"), HTTP_REJECT_BAD_LENGTH);
    rejected(post("Content-Length: 4\r\nContent-length: 4\r\n"), HTTP_REJECT_BAD_LENGTH);
}

static void rejects_length_together_with_coding_C_002(void **state)
{
    rejected(post("Content-Length: 45\r\nTransfer-Encoding: chunked\r\n"), HTTP_REJECT_LENGTH_AND_CODING);
    rejected(post("Transfer-Encoding: chunked\r\nContent-Length: 45\r\n"), HTTP_REJECT_LENGTH_AND_CODING);
    rejected(post("Transfer-Encoding:\r\nContent-Length: 0\r\n"), HTTP_REJECT_LENGTH_AND_CODING);
    rejected(response("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_GET),
             HTTP_REJECT_LENGTH_AND_CODING);
}

static void rejects_transfer_codings_that_are_not_one_chunked(void **state)
{
    static const char *const bad[] = {
        "",
        "chunked, chunked",
        "chunked, gzip",
        "gzip",
        ", chunked",
        "chunked,",
        "xchunked",
        "chunked;ext=val",
        "identity",
        "\"chunked\"",
        "chunked chunked",
        "chunked, identity",
        "gzip;q=1, chunked",
        "gzip,, chunked",
        "(chunked)",
    };
    for (size_t i = 0; i < iso_countof(bad); i++) {
        char text[200];
        snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: %s\r\n\r\n", bad[i]);
        rejected(request_bytes(text, strlen(text)), HTTP_REJECT_BAD_CODING);
    }
    rejected(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), HTTP_REJECT_BAD_CODING);
    rejected(post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), HTTP_REJECT_BAD_CODING);
    rejected(request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), HTTP_REJECT_BAD_CODING);
}

static void rejects_unknown_codings_before_chunked_as_not_implemented(void **state)
{
    rejected(post("Transfer-Encoding: gzip, chunked\r\n"), HTTP_REJECT_CODING_UNKNOWN);
    assert_int_equal(http_reject_status(HTTP_REJECT_CODING_UNKNOWN), 501);
}

static void look_alikes_of_framing_fields_are_dropped(void **state)
{
    struct http_message *m =
        accepted(post("Content_Length: 99\r\nTRANSFER_ENCODING: chunked\r\nTransfer.Encoding: x\r\n"
                      "X_Forwarded-For: 1.2.3.4\r\nX_Request_ID: 1\r\nMy_Length: 1\r\nUser_Agent: u\r\n"));
    framed(m, HTTP_BODY_NONE);
    assert_false(kept(m, "content_length"));
    assert_false(kept(m, "transfer_encoding"));
    assert_false(kept(m, "transfer.encoding"));
    assert_false(kept(m, "x_forwarded-for"));
    assert_false(kept(m, "x_request_id"));
    assert_true(kept(m, "my_length"));
    assert_true(kept(m, "user_agent"));
}

static void hop_by_hop_fields_are_dropped_C_037(void **state)
{
    struct http_message *m =
        accepted(post("Connection: close, X-Drop-Me, X-Forwarded-For, Host, Content-Length\r\n"
                      "X-Drop-Me: 1\r\nx-drop-me: 2\r\nX-Forwarded-For: 1.2.3.4\r\n"
                      "Content-Length: 3\r\nKeep-Alive: timeout=5\r\n"
                      "Proxy-Connection: keep-alive\r\nTE: gzip\r\nProxy-Authorization: x\r\n"));
    assert_true(m->content_length == 3);
    assert_false(m->keep_alive);
    assert_false(m->te_trailers);
    assert_false(kept(m, "Connection"));
    assert_false(kept(m, "X-Drop-Me"));
    assert_false(kept(m, "Keep-Alive"));
    assert_false(kept(m, "Proxy-Connection"));
    assert_false(kept(m, "TE"));
    assert_true(kept(m, "Host"));
    assert_true(kept(m, "X-Forwarded-For"));
    assert_true(kept(m, "Proxy-Authorization"));
}

static void connection_may_name_known_fields_and_stand_behind_them(void **state)
{
    struct http_message *m =
        accepted(get("Accept: x\r\nConnection: keep-alive\r\nX-A: 1\r\nConnection: , accept ,, x-a\r\n"));
    assert_false(kept(m, "Accept"));
    assert_false(kept(m, "X-A"));
    assert_true(m->keep_alive);
}

static void rejects_endless_connection_options(void **state)
{
    char text[400] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close";
    for (int i = 0; i < 32; i++)
        strcat(text, ", a");
    char one_more[sizeof(text) + 10];
    snprintf(one_more, sizeof(one_more), "%s, a\r\n\r\n", text);
    strcat(text, "\r\n\r\n");
    accepted(request_bytes(text, strlen(text)));
    rejected(request_bytes(one_more, strlen(one_more)), HTTP_REJECT_BAD_FIELD);
}

static void persistence_follows_version_and_connection(void **state)
{
    assert_true(accepted(get(""))->keep_alive);
    assert_false(accepted(get("Connection: Close\r\n"))->keep_alive);
    assert_false(accepted(get("Connection: keep-alive, close\r\n"))->keep_alive);
    assert_false(accepted(request("GET / HTTP/1.0\r\n\r\n"))->keep_alive);
    assert_true(accepted(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"))->keep_alive);
    assert_false(accepted(request("GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n"))->keep_alive);
    assert_true(accepted(response("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP_GET))->keep_alive);
    assert_false(accepted(response("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP_GET))->keep_alive);
    assert_false(accepted(response("HTTP/1.1 200 OK\r\n\r\n", HTTP_GET))->keep_alive);
}

static void te_is_remembered_for_trailers(void **state)
{
    struct http_message *m = accepted(get("TE: gzip;q=0.5, Trailers\r\nConnection: TE\r\n"));
    assert_true(m->te_trailers);
    assert_false(kept(m, "TE"));
}

static void expect_counts_before_a_body_in_http_1_1_C_021(void **state)
{
    struct http_message *m = accepted(post("Content-Length: 5\r\nExpect: 100-Continue\r\n"));
    assert_true(m->expect_continue);
    assert_true(kept(m, "Expect"));
    m = accepted(post("Content-Length: 5\r\nConnection: expect\r\nExpect: 100-continue\r\n"));
    assert_true(m->expect_continue && kept(m, "Expect"));
    m = accepted(post("Expect: 100-continue\r\n"));
    assert_false(m->expect_continue);
    assert_false(kept(m, "Expect"));
    m = accepted(request("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 200-ok\r\n\r\n"));
    assert_false(m->expect_continue);
    assert_false(kept(m, "Expect"));
}

static void rejects_other_expectations(void **state)
{
    rejected(get("Expect: 200-ok\r\n"), HTTP_REJECT_BAD_EXPECT);
    rejected(get("Expect:\r\n"), HTTP_REJECT_BAD_EXPECT);
    rejected(post("Content-Length: 1\r\nExpect: 100-continue\r\nExpect: x\r\n"), HTTP_REJECT_BAD_EXPECT);
    assert_int_equal(http_reject_status(HTTP_REJECT_BAD_EXPECT), 417);
}

static void upgrades_pass_without_a_body_C_030(void **state)
{
    struct http_message *m = accepted(post("Connection: Upgrade\r\nUpgrade: tcp\r\n"));
    assert_true(m->upgrade);
    assert_true(kept(m, "Upgrade"));
    assert_true(
        accepted(get("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n"))
            ->upgrade);
}

static void upgrades_that_cannot_be_meant_are_dropped(void **state)
{
    static const char *const heads[] = {
        "1\r\nUpgrade: websocket\r\n",
        "0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n",
        "1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n",
        "1\r\nConnection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n",
    };
    for (size_t i = 0; i < iso_countof(heads); i++) {
        char text[200];
        snprintf(text, sizeof(text), "GET / HTTP/1.%sHost: a\r\n\r\n", heads[i]);
        struct http_message *m = accepted(request_bytes(text, strlen(text)));
        assert_false(m->upgrade);
        assert_false(kept(m, "Upgrade"));
    }
    assert_false(accepted(get("Connection: upgrade\r\n"))->upgrade);
}

static void h2c_offers_never_pass_C_028(void **state)
{
    struct http_message *m = accepted(get(
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: websocket, H2C\r\nHTTP2-Settings: AAMAAABk\r\n"));
    assert_false(m->upgrade);
    assert_false(kept(m, "Upgrade"));
    assert_false(kept(m, "HTTP2-Settings"));
    m = accepted(response("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", HTTP_GET));
    assert_false(m->upgrade);
}

static void a_101_switches_and_a_426_only_names_C_027(void **state)
{
    struct http_message *m =
        accepted(response("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", HTTP_GET));
    assert_true(m->upgrade);
    assert_true(kept(m, "Upgrade"));
    framed(m, HTTP_BODY_NONE);
    m = accepted(
        response("HTTP/1.1 426 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
                 HTTP_GET));
    assert_true(m->upgrade);
    assert_true(kept(m, "Upgrade"));
    framed(m, HTTP_BODY_LENGTH);
    m = accepted(response("HTTP/1.1 103 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", HTTP_GET));
    assert_false(kept(m, "Upgrade"));
    m = accepted(response("HTTP/1.1 200 x\r\nUpgrade: h2\r\nContent-Length: 0\r\n\r\n", HTTP_GET));
    assert_false(kept(m, "Upgrade"));
    assert_false(accepted(response("HTTP/1.1 101 x\r\n\r\n", HTTP_GET))->upgrade);
}

static void responses_are_framed_by_length_chunks_or_the_end(void **state)
{
    struct http_message *m = accepted(response("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", HTTP_GET));
    framed(m, HTTP_BODY_LENGTH);
    assert_true(m->content_length == 7);
    framed(accepted(response("HTTP/1.1 500 x\r\nTransfer-Encoding: CHUNKED\r\n\r\n", HTTP_GET)),
           HTTP_BODY_CHUNKED);
    framed(accepted(response("HTTP/1.0 200 x\r\nConnection: keep-alive\r\n\r\n", HTTP_POST)),
           HTTP_BODY_UNTIL_CLOSE);
}

static void a_response_may_repeat_one_length(void **state)
{
    struct http_message *m = accepted(response("HTTP/1.1 200 OK\r\nContent-Length: 7 , 7\r\n\r\n", HTTP_GET));
    assert_true(m->content_length == 7);
    m = accepted(response("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n", HTTP_GET));
    assert_true(m->content_length == 7);
}

static void interim_and_empty_answers_have_no_body_C_022(void **state)
{
    static const char *const heads[] = {
        "HTTP/1.1 100 x\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 103 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 204 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    };
    for (size_t i = 0; i < iso_countof(heads); i++) {
        struct http_message *m = accepted(response_bytes(heads[i], strlen(heads[i]), HTTP_GET));
        framed(m, HTTP_BODY_NONE);
        assert_false(m->has_length);
        assert_true(m->keep_alive);
    }
}

static void head_and_304_keep_the_length_as_metadata_C_024_C_025(void **state)
{
    struct http_message *m = accepted(response("HTTP/1.1 304 x\r\nContent-Length: 512\r\n\r\n", HTTP_GET));
    framed(m, HTTP_BODY_NONE);
    assert_true(m->has_length && m->content_length == 512);
    m = accepted(response("HTTP/1.1 200 x\r\nContent-Length: 512\r\n\r\n", HTTP_HEAD));
    framed(m, HTTP_BODY_NONE);
    assert_true(m->has_length && m->content_length == 512);
    m = accepted(response("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_HEAD));
    framed(m, HTTP_BODY_NONE);
    assert_false(m->has_length);
    assert_true(m->keep_alive);
    assert_false(accepted(response("HTTP/1.1 304 x\r\n\r\n", HTTP_GET))->has_length);
}

static void rejects_responses_whose_end_is_unclear(void **state)
{
    rejected(response("HTTP/1.1 200 x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", HTTP_GET),
             HTTP_REJECT_BAD_LENGTH);
    rejected(response("HTTP/1.1 200 x\r\nContent-Length: 4, 5\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_LENGTH);
    rejected(response("HTTP/1.1 200 x\r\nContent-Length: abc\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_LENGTH);
    rejected(response("HTTP/1.1 200 x\r\nContent-Length:\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_LENGTH);
    rejected(response("HTTP/1.1 304 x\r\nContent-Length: -1\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_LENGTH);
    rejected(response("HTTP/1.1 200 x\r\nTransfer-Encoding: gzip\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_CODING);
    rejected(response("HTTP/1.1 200 x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", HTTP_GET),
             HTTP_REJECT_CODING_UNKNOWN);
    rejected(response("HTTP/1.0 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_GET),
             HTTP_REJECT_BAD_CODING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_framing_fields_has_no_body),
        cmocka_unit_test(content_length_frames_a_request_C_009),
        cmocka_unit_test(leading_zeros_are_decimal),
        cmocka_unit_test(chunked_frames_a_request),
        cmocka_unit_test(rejects_malformed_content_length_C_001),
        cmocka_unit_test(rejects_content_length_with_plus_sign_C_001),
        cmocka_unit_test(rejects_content_length_that_overflows_C_001),
        cmocka_unit_test(rejects_repeated_content_length_C_001),
        cmocka_unit_test(rejects_length_together_with_coding_C_002),
        cmocka_unit_test(rejects_transfer_codings_that_are_not_one_chunked),
        cmocka_unit_test(rejects_unknown_codings_before_chunked_as_not_implemented),
        cmocka_unit_test(look_alikes_of_framing_fields_are_dropped),
        cmocka_unit_test(hop_by_hop_fields_are_dropped_C_037),
        cmocka_unit_test(connection_may_name_known_fields_and_stand_behind_them),
        cmocka_unit_test(rejects_endless_connection_options),
        cmocka_unit_test(persistence_follows_version_and_connection),
        cmocka_unit_test(te_is_remembered_for_trailers),
        cmocka_unit_test(expect_counts_before_a_body_in_http_1_1_C_021),
        cmocka_unit_test(rejects_other_expectations),
        cmocka_unit_test(upgrades_pass_without_a_body_C_030),
        cmocka_unit_test(upgrades_that_cannot_be_meant_are_dropped),
        cmocka_unit_test(h2c_offers_never_pass_C_028),
        cmocka_unit_test(a_101_switches_and_a_426_only_names_C_027),
        cmocka_unit_test(responses_are_framed_by_length_chunks_or_the_end),
        cmocka_unit_test(a_response_may_repeat_one_length),
        cmocka_unit_test(interim_and_empty_answers_have_no_body_C_022),
        cmocka_unit_test(head_and_304_keep_the_length_as_metadata_C_024_C_025),
        cmocka_unit_test(rejects_responses_whose_end_is_unclear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
