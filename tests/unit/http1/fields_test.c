/* SPDX-License-Identifier: Apache-2.0 */
#include "../http/heads.h"

static void white_space_around_a_value_is_not_part_of_it(void **state)
{
    struct http_message *m = accepted(get("A: \t x\ty \t\r\nB:\t\r\nC: \r\n"));
    is(http_field_value(&m->fields[1]), "x\ty");
    is(http_field_value(&m->fields[2]), "");
    is(http_field_value(&m->fields[3]), "");
}

static void names_keep_their_case_and_are_known_in_any(void **state)
{
    struct http_message *m = accepted(get("USER-agent: x\r\nX-Odd!#$%&'*+-.^_`|~: y\r\n"));
    is(http_field_name(&m->fields[1]), "USER-agent");
    assert_int_equal(m->fields[1].id, HTTP_FIELD_USER_AGENT);
    is(http_field_name(&m->fields[2]), "X-Odd!#$%&'*+-.^_`|~");
}

static void values_of_every_length_end_where_they_should(void **state)
{
    char text[700];
    for (size_t n = 0; n < 300; n++) {
        char value[301];
        memset(value, 'v', n);
        value[n] = '\0';
        snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nX:%s\r\nY: z\r\n\r\n", value);
        struct http_message *m = accepted(request_bytes(text, strlen(text)));
        is(http_field_value(&m->fields[1]), value);
        is(http_field_value(&m->fields[2]), "z");
    }
}

static void rejects_white_space_before_the_colon_C_004(void **state)
{
    rejected(get("Content-Length : 3\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("X-A\t: 1\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("X D: 1\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(response("HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_FIELD);
}

static void rejects_white_space_before_the_first_field_C_004(void **state)
{
    rejected(request("GET / HTTP/1.1\r\n Host: a.example\r\n\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(request("GET / HTTP/1.1\r\n \r\nHost: a.example\r\n\r\n"), HTTP_REJECT_BAD_FIELD);
}

static void rejects_folded_lines_C_004(void **state)
{
    rejected(get("X-C: 1\r\n 2\r\n"), HTTP_REJECT_OBS_FOLD);
    rejected(get("X-C: 1\r\n\t2\r\n"), HTTP_REJECT_OBS_FOLD);
    rejected(get("Transfer-Encoding:\r\n chunked\r\n"), HTTP_REJECT_OBS_FOLD);
}

static void rejects_names_that_are_no_tokens_C_004(void **state)
{
    rejected(get(": x\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("X\x85: 1\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("X[]: 1\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("X\0: 1\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("no colon\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("NoColon\r\n"), HTTP_REJECT_BAD_FIELD);
}

/* All 256 bytes, within the first block of a scan and behind it. */
static void rejects_control_bytes_in_values_C_004(void **state)
{
    for (size_t pad = 0; pad < 80; pad += 13)
        for (int c = 0; c < 256; c++) {
            char text[200];
            int len =
                snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nX: %.*s", (int)pad,
                         "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv");
            text[len++] = (char)c;
            memcpy(text + len, "x\r\n\r\n", 5);
            struct head *h = request_bytes(text, (size_t)len + 5);
            if (c == '\n')
                rejected(h, HTTP_REJECT_BARE_LF);
            else if ((c < 0x20 && c != '\t') || c == 0x7f)
                rejected(h, HTTP_REJECT_BAD_FIELD);
            else
                accepted(h);
        }
}

static void rejects_line_ends_other_than_crlf(void **state)
{
    rejected(get("X: 1\nY: 2\r\n"), HTTP_REJECT_BARE_LF);
    rejected(get("X\n"), HTTP_REJECT_BARE_LF);
    rejected(get("X-B: 1\rY: 2\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(get("\rX: 2\r\n"), HTTP_REJECT_BAD_FIELD);
    rejected(request("GET / HTTP/1.1\r\nHost: a\r\n\n"), HTTP_REJECT_BARE_LF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_around_a_value_is_not_part_of_it),
        cmocka_unit_test(names_keep_their_case_and_are_known_in_any),
        cmocka_unit_test(values_of_every_length_end_where_they_should),
        cmocka_unit_test(rejects_white_space_before_the_colon_C_004),
        cmocka_unit_test(rejects_white_space_before_the_first_field_C_004),
        cmocka_unit_test(rejects_folded_lines_C_004),
        cmocka_unit_test(rejects_names_that_are_no_tokens_C_004),
        cmocka_unit_test(rejects_control_bytes_in_values_C_004),
        cmocka_unit_test(rejects_line_ends_other_than_crlf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
