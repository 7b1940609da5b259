/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/accesslog_line.h"

#include "core/random.h"
#include "golden.h"

#include <jansson.h>

static struct ip_addr address(const char *text)
{
    struct ip_addr out = {0};
    assert_true(ip_parse(slice_str(text), &out));
    return out;
}

static struct accesslog_entry sample(void)
{
    return (struct accesslog_entry){
        .wall_ns = 1769860800250999999ull, /* 2026-01-31T12:00:00.250999999Z */
        .duration_us = 12345,
        .upstream_us = 11000,
        .client = address("203.0.113.7"),
        .peer = address("2001:db8::1"),
        .peer_port = 54321,
        .listener = SLICE("shop/8080"),
        .group = SLICE("web"),
        .target = SLICE("10.0.0.1:8080"),
        .method = SLICE("GET"),
        .host = SLICE("shop.example"),
        .path = SLICE("/a/b"),
        .query = SLICE("q=1"),
        .request_id = SLICE("0190a5d4-8f2e-7c3a-9b1d-1234567890ab"),
        .user_agent = SLICE("curl/8.0"),
        .protocol = "HTTP/1.1",
        .status = 200,
        .received_bytes = 120,
        .sent_bytes = 10240,
        .attempts = 1,
        .reason = "-",
    };
}

/* The line of an entry in a format, as a string without its '\n'; checks the bound. */
static const char *line(const char *format_text, const struct accesslog_entry *entry)
{
    static char buffer[1 << 20]; /* whoever asks for a line uses it before the next one */
    struct accesslog_clock clock = {0};
    struct accesslog_format *format;
    struct slice what;
    assert_int_equal(accesslog_format_compile(slice_str(format_text), &format, &what), ISO_OK);
    size_t bound = accesslog_line_bound(format, entry);
    assert_true(bound < sizeof(buffer));
    buffer[bound] = (char)0xee;
    char *end = accesslog_line(buffer, &clock, format, entry);
    assert_true((size_t)(end - buffer) <= bound);
    assert_int_equal((unsigned char)buffer[bound], 0xee);
    assert_int_equal(end[-1], '\n');
    end[-1] = '\0';
    accesslog_format_free(format);
    return buffer;
}

static void a_json_line_has_every_field_in_the_tables_order(void **state)
{
    struct accesslog_entry entry = sample();
    assert_string_equal(
        line("json", &entry),
        "{\"time\":\"2026-01-31T12:00:00.250Z\",\"client\":\"203.0.113.7\",\"peer\":\"2001:db8::"
        "1\",\"peer_port\":54321,\"listener\":\"shop/8080\",\"target_group\":\"web\",\"target\":"
        "\"10.0.0.1:8080\",\"method\":\"GET\",\"host\":\"shop.example\",\"path\":\"/a/"
        "b\",\"query\":\"q=1\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"reason\":\"-\","
        "\"received_bytes\":120,\"sent_bytes\":10240,\"duration_us\":12345,\"upstream_us\":11000,"
        "\"attempts\":1,\"request_id\":\"0190a5d4-8f2e-7c3a-9b1d-1234567890ab\","
        "\"user_agent\":\"curl/8.0\"}");
}

static void the_peer_is_left_out_when_it_is_the_client(void **state)
{
    struct accesslog_entry entry = sample();
    entry.peer = entry.client;
    assert_null(strstr(line("json", &entry), "\"peer\":"));
    assert_string_equal(line("{peer}", &entry), "203.0.113.7");
}

static void a_json_line_escapes_what_a_client_sends(void **state)
{
    struct accesslog_entry entry = sample();
    entry.user_agent = SLICE("a \"quoted\" \\ agent\twith \xc3\xa9 and \xff");
    json_t *json = json_loads(line("json", &entry), 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "user_agent")),
                        "a \"quoted\" \\ agent\twith \xc3\xa9 and \xef\xbf\xbd");
    json_decref(json);
}

/* A path of `len` bytes with `c` at `at` is read back as it was, in a line that is valid JSON. */
static void check_byte(size_t len, size_t at, int c)
{
    char text[64];
    struct accesslog_entry entry = sample();
    memset(text, 'x', len);
    text[at] = (char)c;
    entry.path = slice_of(text, len);
    const char *out = line("json", &entry);
    json_t *json = json_loads(out, JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    json_t *path = json_object_get(json, "path");
    if (c < 0x80) {
        assert_int_equal(json_string_length(path), len);
        assert_memory_equal(json_string_value(path), text, len);
    }
    json_decref(json);
}

static void every_byte_at_every_place_gives_valid_json(void **state)
{
    static const int edges[] = {0, 0x1f, 0x20, '"', '\\', 0x7e, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < 9; at++)
        for (int c = 0; c < 256; c++)
            check_byte(9, at, c);
    for (size_t len = 1; len < 40; len++)
        for (size_t at = 0; at < len; at++)
            for (size_t i = 0; i < iso_countof(edges); i++)
                check_byte(len, at, edges[i]);
}

static void long_texts_are_cut_and_stay_below_the_bound(void **state)
{
    static char big[100000];
    struct accesslog_entry entry = sample();
    memset(big, '\x01', sizeof(big));
    entry.path = entry.query = entry.host = entry.user_agent = entry.referer = entry.request_id =
        entry.method = slice_of(big, sizeof(big));
    json_t *json = json_loads(line("json", &entry), 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_string_length(json_object_get(json, "path")), ACCESSLOG_TEXT_MAX);
    json_decref(json);
    assert_int_equal(strlen(line("{path}{path}", &entry)), 2 * 4 * ACCESSLOG_TEXT_MAX);
}

static void numbers_are_printed_whole(void **state)
{
    static const uint64_t numbers[] = {0, 9, 10, 99, 100, 101, 12345, 1000000, UINT64_MAX};
    struct accesslog_entry entry = sample();
    for (size_t i = 0; i < iso_countof(numbers); i++) {
        char want[32];
        entry.sent_bytes = numbers[i];
        snprintf(want, sizeof(want), "%llu", (unsigned long long)numbers[i]);
        assert_string_equal(line("{sent_bytes}", &entry), want);
    }
}

static void a_format_string_is_filled_in(void **state)
{
    struct accesslog_entry entry = sample();
    assert_string_equal(line("{client} {{{method}} {status} {duration_s}s {rule} {referer}", &entry),
                        "203.0.113.7 {GET} 200 0.012s - -");
    assert_string_equal(line("{request}", &entry), "GET /a/b?q=1 HTTP/1.1");
    assert_string_equal(line("", &entry), "");
}

static void combined_is_what_web_log_tools_read(void **state)
{
    struct accesslog_entry entry = sample();
    entry.query = SLICE("");
    assert_string_equal(line("combined", &entry), "203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] \"GET /a/b "
                                                  "HTTP/1.1\" 200 10240 \"-\" \"curl/8.0\"");
}

static void a_format_string_cannot_be_broken_by_a_client(void **state)
{
    struct accesslog_entry entry = sample();
    entry.user_agent = SLICE("x\" \n\\\x7f\xe9");
    assert_string_equal(line("\"{user_agent}\"", &entry), "\"x\\x22 \\x0A\\x5C\\x7F\\xE9\"");
}

static void the_date_follows_the_clock(void **state)
{
    struct accesslog_clock clock = {0};
    struct accesslog_entry entry = sample();
    struct accesslog_format *format;
    struct slice what;
    char out[128];
    assert_int_equal(accesslog_format_compile(SLICE("{time}"), &format, &what), ISO_OK);
    accesslog_line(out, &clock, format, &entry);
    entry.wall_ns += 28 * 86400 * 1000000000ull + 749000001;
    accesslog_line(out, &clock, format, &entry);
    assert_memory_equal(out, "2026-02-28T12:00:01.000Z\n", 25);
    accesslog_format_free(format);
}

static void rejects_unknown_fields_by_name(void **state)
{
    static const char *const formats[] = {"{client} {clent}", "{status} {", "{}", "{path"};
    static const char *const names[] = {"clent", "", "", "path"};
    for (size_t i = 0; i < iso_countof(formats); i++) {
        struct accesslog_format *format;
        struct slice what;
        assert_int_equal(accesslog_format_compile(slice_str(formats[i]), &format, &what), ISO_ERR_INVALID);
        assert_true(slice_eq(what, slice_str(names[i])));
        assert_true(what.ptr >= formats[i] && what.ptr <= formats[i] + strlen(formats[i]));
    }
}

static void the_documented_fields_are_the_table(void **state)
{
    struct text text;
    text_init(&text);
    text_printf(&text, "| field | in JSON | what it is |\n|---|---|---|\n");
#define JSON_TIME                       "string"
#define JSON_IP                         "string"
#define JSON_PEER                       "string, left out when it is `client`"
#define JSON_NUMBER                     "number"
#define JSON_TEXT                       "string, left out when empty"
#define JSON_WORD                       "string"
#define JSON_CLF                        "no"
#define JSON_SECONDS                    "no"
#define JSON_REQUEST                    "no"
#define LOG_FIELD(kind, id, name, what) text_printf(&text, "| `%s` | %s | %s |\n", name, JSON_##kind, what);
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    golden_check("docs/access-log.md", "fields", text_slice(&text));
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_line_has_every_field_in_the_tables_order),
        cmocka_unit_test(the_peer_is_left_out_when_it_is_the_client),
        cmocka_unit_test(a_json_line_escapes_what_a_client_sends),
        cmocka_unit_test(every_byte_at_every_place_gives_valid_json),
        cmocka_unit_test(long_texts_are_cut_and_stay_below_the_bound),
        cmocka_unit_test(numbers_are_printed_whole),
        cmocka_unit_test(a_format_string_is_filled_in),
        cmocka_unit_test(combined_is_what_web_log_tools_read),
        cmocka_unit_test(a_format_string_cannot_be_broken_by_a_client),
        cmocka_unit_test(the_date_follows_the_clock),
        cmocka_unit_test(rejects_unknown_fields_by_name),
        cmocka_unit_test(the_documented_fields_are_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
