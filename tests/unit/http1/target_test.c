/* SPDX-License-Identifier: Apache-2.0 */
#include "../http/heads.h"

/* A request for `target` with Host: t.example. */
#define ask(target) request("GET " target " HTTP/1.1\r\nHost: t.example\r\n\r\n")

static void origin_form_splits_at_the_first_question_mark(void **state)
{
    struct http_message *m = accepted(ask("/a?b?c=/d"));
    is(m->path, "/a");
    is(m->query, "b?c=/d");
    assert_int_equal(m->scheme.len, 0);
    is(m->authority, "t.example");
}

static void no_query_differs_from_an_empty_one(void **state)
{
    assert_null(accepted(ask("/a"))->query.ptr);
    struct http_message *m = accepted(ask("/a?"));
    assert_non_null(m->query.ptr);
    is(m->query, "");
    is(m->path, "/a");
}

static void unusual_but_printable_bytes_pass(void **state)
{
    is(accepted(ask("/a|b{c}\"<>^`//..;%00?x=\\"))->path, "/a|b{c}\"<>^`//..;%00");
}

static void absolute_form_overrides_host(void **state)
{
    struct http_message *m = accepted(ask("http://other.example:81/p?q"));
    is(m->scheme, "http");
    is(m->authority, "other.example:81");
    is(m->path, "/p");
    is(m->query, "q");
    assert_false(kept(m, "Host"));
    m = accepted(ask("HTTPS://t.example/"));
    is(m->scheme, "HTTPS");
    assert_true(kept(m, "host"));
}

static void absolute_form_without_path_means_the_root(void **state)
{
    struct http_message *m = accepted(ask("http://t.example"));
    is(m->path, "/");
    assert_null(m->query.ptr);
    m = accepted(ask("http://t.example?q=/x"));
    is(m->path, "/");
    is(m->query, "q=/x");
}

static void options_may_ask_for_the_server_as_a_whole(void **state)
{
    is(accepted(request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"))->path, "*");
    is(accepted(request("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n"))->path, "*");
    is(accepted(request("OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"))->path, "/");
    rejected(ask("*"), HTTP_REJECT_BAD_TARGET);
}

static void long_targets_are_found_whole(void **state)
{
    char text[400];
    for (size_t n = 1; n < 100; n++) {
        char path[101] = "/";
        memset(path + 1, 'p', n);
        path[n + 1] = '\0';
        snprintf(text, sizeof(text), "GET %s?%s HTTP/1.0\r\n\r\n", path, path);
        struct http_message *m = accepted(request_bytes(text, strlen(text)));
        is(m->path, path);
        is(m->query, path);
    }
}

static void rejects_bytes_that_no_target_has(void **state)
{
    rejected(ask("/a#frag"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a?b#frag"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a\x01"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a\0"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a\tb"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a\x7f"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/caf\xc3\xa9"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a\\b"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("/a b"), HTTP_REJECT_BAD_VERSION);
}

static void rejects_forms_that_are_none_of_the_four(void **state)
{
    rejected(ask("a"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("?q"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("t.example:80"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("ftp://t.example/"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http:/t.example/"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http:///p"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http://?q"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http://user@t.example/"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http://u:p@t.example/"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http://t.example:0/"), HTTP_REJECT_BAD_TARGET);
    rejected(ask("http://t.example\\@evil.example/"), HTTP_REJECT_BAD_TARGET);
    rejected(ask(""), HTTP_REJECT_BAD_TARGET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(origin_form_splits_at_the_first_question_mark),
        cmocka_unit_test(no_query_differs_from_an_empty_one),
        cmocka_unit_test(unusual_but_printable_bytes_pass),
        cmocka_unit_test(absolute_form_overrides_host),
        cmocka_unit_test(absolute_form_without_path_means_the_root),
        cmocka_unit_test(options_may_ask_for_the_server_as_a_whole),
        cmocka_unit_test(long_targets_are_found_whole),
        cmocka_unit_test(rejects_bytes_that_no_target_has),
        cmocka_unit_test(rejects_forms_that_are_none_of_the_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
