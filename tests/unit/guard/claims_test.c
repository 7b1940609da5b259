/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/claims.h"

#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char room[256];

static struct scratch fresh(void)
{
    return (struct scratch){room, room + sizeof(room)};
}

static void valid_objects_are_told_from_others(void **state)
{
    static const char *const good[] = {"{}", " { } ", "{\"a\":1}",
                                       "{\"a\":[1,2,{\"b\":null}],\"c\":true , \"d\":-1.5e+3}",
                                       "{\"\\u00e9\\\"\":\"\\n\"}"};
    static const char *const bad[] = {"",
                                      "[]",
                                      "1",
                                      "{",
                                      "{}x",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":01}",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "{\"a\":\"}",
                                      "{\"a\":tru}",
                                      "{\"a\":1.}",
                                      "{\"a\":+1}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":[1,]}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"a\":1e}",
                                      "{\"a\":\"\n\"}"};
    for (size_t i = 0; i < iso_countof(good); i++)
        if (!claims_are_valid(slice_str(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < iso_countof(bad); i++)
        if (claims_are_valid(slice_str(bad[i])))
            fail_msg("accepted: %s", bad[i]);
}

static void deep_nesting_is_refused(void **state)
{
    char deep[128] = "{\"a\":";
    size_t n = strlen(deep);
    memset(deep + n, '[', 40);
    memset(deep + n + 40, ']', 40);
    deep[n + 80] = '}';
    assert_false(claims_are_valid(slice_of(deep, n + 81)));
}

static void the_last_member_of_a_name_counts(void **state)
{
    struct slice json = SLICE("{\"a\":{\"b\":1},\"b\":2,\"c\":\"x\",\"b\":3}");
    struct claim claim;
    uint64_t n;
    assert_true(claims_find(json, SLICE("b"), &claim));
    assert_true(claim_seconds(&claim, &n));
    assert_int_equal(n, 3);
    assert_false(claims_find(json, SLICE("d"), &claim));
}

static void texts_come_out_of_their_escapes(void **state)
{
    struct slice json = SLICE("{\"a\":\"https:\\/\\/x\\u0041\\u00e9\\ud83d\\ude00\\ud83d!\\n\"}"), text;
    struct scratch scratch = fresh();
    struct claim claim;
    assert_true(claims_find(json, SLICE("a"), &claim));
    assert_true(claim_text(&claim, &scratch, &text));
    assert_true(slice_eq(text, SLICE("https://xA\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd!\n")));
}

static void seconds_are_whole_and_not_negative(void **state)
{
    static const struct {
        const char *json;
        bool ok;
        uint64_t wanted;
    } all[] = {{"{\"a\":0}", true, 0},
               {"{\"a\":1700000000.9}", true, 1700000000},
               {"{\"a\":-1}", false, 0},
               {"{\"a\":1e9}", false, 0},
               {"{\"a\":99999999999999999999}", false, 0}};
    for (size_t i = 0; i < iso_countof(all); i++) {
        struct claim claim;
        uint64_t n = 0;
        assert_true(claims_find(slice_str(all[i].json), SLICE("a"), &claim));
        assert_int_equal(claim_seconds(&claim, &n), all[i].ok);
        assert_int_equal(n, all[i].wanted);
    }
}

static void an_audience_is_a_text_or_a_list(void **state)
{
    struct claim claim;
    assert_true(claims_find(SLICE("{\"aud\":[1,\"a\",\"b\"],\"one\":\"b\",\"no\":[],\"n\":7}"), SLICE("aud"),
                            &claim));
    assert_true(claim_has_text(&claim, SLICE("b"), fresh()));
    assert_false(claim_has_text(&claim, SLICE("c"), fresh()));
    assert_true(claims_find(SLICE("{\"one\":\"b\"}"), SLICE("one"), &claim));
    assert_true(claim_has_text(&claim, SLICE("b"), fresh()));
    assert_true(claims_find(SLICE("{\"no\":[]}"), SLICE("no"), &claim));
    assert_false(claim_has_text(&claim, SLICE("b"), fresh()));
    assert_true(claims_find(SLICE("{\"n\":7}"), SLICE("n"), &claim));
    assert_false(claim_has_text(&claim, SLICE("7"), fresh()));
}

static void base64_is_read_strictly(void **state)
{
    struct scratch scratch = fresh();
    struct slice out;
    assert_true(claims_decode64(SLICE("aGk_-w"), &scratch, &out));
    assert_true(slice_eq(out, SLICE("hi?\xfb")));
    static const char *const bad[] = {"a", "aGk=", "aG k", "aGl", "aG+/", "aGk\xc3"};
    for (size_t i = 0; i < iso_countof(bad); i++) {
        scratch = fresh();
        if (claims_decode64(slice_str(bad[i]), &scratch, &out))
            fail_msg("accepted: %s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_objects_are_told_from_others),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(the_last_member_of_a_name_counts),
        cmocka_unit_test(texts_come_out_of_their_escapes),
        cmocka_unit_test(seconds_are_whole_and_not_negative),
        cmocka_unit_test(an_audience_is_a_text_or_a_list),
        cmocka_unit_test(base64_is_read_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
