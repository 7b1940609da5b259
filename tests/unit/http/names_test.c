/* SPDX-License-Identifier: Apache-2.0 */
#include "http/names.h"
#include "heads.h"

static void every_known_name_is_found_in_any_case(void **state)
{
    for (unsigned id = 1; id < HTTP_FIELD_COUNT; id++) {
        struct slice name = http_field_id_name((enum http_field_id)id);
        char upper[64];
        assert_int_equal(http_field_lookup(name), id);
        for (size_t i = 0; i < name.len; i++)
            upper[i] = name.ptr[i] >= 'a' && name.ptr[i] <= 'z' ? (char)(name.ptr[i] - 32) : name.ptr[i];
        assert_int_equal(http_field_lookup(slice_of(upper, name.len)), id);
    }
}

/* Each other byte at each place makes it another name: also those that differ in the case bit only. */
static void one_byte_off_is_another_name(void **state)
{
    for (unsigned id = 1; id < HTTP_FIELD_COUNT; id++) {
        struct slice name = http_field_id_name((enum http_field_id)id);
        for (size_t at = 0; at < name.len; at++)
            for (int c = 0; c < 256; c++) {
                char other[64];
                memcpy(other, name.ptr, name.len);
                other[at] = (char)c;
                if (ascii_lower((char)c) != name.ptr[at] &&
                    http_field_lookup(slice_of(other, name.len)) == (enum http_field_id)id)
                    fail_msg("%.*s with byte %d at %zu", SLICE_ARG(name), c, at);
            }
    }
}

static void unknown_names_have_no_id(void **state)
{
    static const char *const unknown[] = {"",
                                          "x",
                                          "ho",
                                          "hosts",
                                          "xhost",
                                          "x-hosting",
                                          "content-lengths",
                                          "a-name-that-is-longer-than-every-known-one"};
    for (size_t i = 0; i < iso_countof(unknown); i++)
        assert_int_equal(http_field_lookup(slice_str(unknown[i])), HTTP_FIELD_OTHER);
}

static void look_alikes_differ_at_hyphens_only(void **state)
{
    assert_int_equal(http_field_lookalike(SLICE("Content_Length")), HTTP_FIELD_CONTENT_LENGTH);
    assert_int_equal(http_field_lookalike(SLICE("x.forwarded_for")), HTTP_FIELD_X_FORWARDED_FOR);
    assert_int_equal(http_field_lookalike(SLICE("Content_Lengths")), HTTP_FIELD_OTHER);
    assert_int_equal(http_field_lookalike(SLICE("Kontent_Length")), HTTP_FIELD_OTHER);
    assert_int_equal(http_field_lookalike(SLICE("")), HTTP_FIELD_OTHER);
}

static void methods_know_case(void **state)
{
    static const struct {
        const char *name;
        enum http_method method;
        bool idempotent;
    } methods[] = {
        {"GET", HTTP_GET, true},           {"HEAD", HTTP_HEAD, true},      {"POST", HTTP_POST, false},
        {"PUT", HTTP_PUT, true},           {"DELETE", HTTP_DELETE, true},  {"CONNECT", HTTP_CONNECT, false},
        {"OPTIONS", HTTP_OPTIONS, true},   {"TRACE", HTTP_TRACE, true},    {"PATCH", HTTP_PATCH, false},
        {"get", HTTP_METHOD_OTHER, false}, {"", HTTP_METHOD_OTHER, false}, {"GETS", HTTP_METHOD_OTHER, false},
    };
    for (size_t i = 0; i < iso_countof(methods); i++) {
        assert_int_equal(http_method_lookup(slice_str(methods[i].name)), methods[i].method);
        assert_int_equal(http_method_is_idempotent(methods[i].method), methods[i].idempotent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_name_is_found_in_any_case),
        cmocka_unit_test(one_byte_off_is_another_name),
        cmocka_unit_test(unknown_names_have_no_id),
        cmocka_unit_test(look_alikes_differ_at_hyphens_only),
        cmocka_unit_test(methods_know_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
