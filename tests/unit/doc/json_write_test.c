/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/json_write.h"

#include "doc/json.h"
#include "doc/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_of(iso_err (*read)(struct slice text, struct doc *doc), const char *text,
                      const char *const *without, const char *expected)
{
    struct iso_diag diag;
    struct doc doc;
    struct text out;
    diag_init(&diag);
    doc_init(&doc, "test", &diag);
    text_init(&out);
    assert_int_equal(read(slice_str(text), &doc), ISO_OK);
    json_write(doc.root, without, &out);
    assert_string_equal(out.data, expected);
    text_fini(&out);
    doc_fini(&doc);
    diag_fini(&diag);
}

static void what_json_says_comes_out_again(void **state)
{
    static const char *const texts[] = {("{\"a\":[1,-2.5,\"x\\\"\",true,false,null],\"b\":{},\"c\":[],"
                                         "\"d\":{\"e\":{\"f\":[[],[{}]]}},\"g\":0}"),
                                        "1", "\"\"", "[]", "{\"weights\":[9223372036854775807,0.25]}"};
    for (size_t i = 0; i < iso_countof(texts); i++)
        expect_of(json_read, texts[i], NULL, texts[i]);
}

static void yaml_becomes_json(void **state)
{
    expect_of(
        yaml_read, "a: 16\nb: -1\nc: 1e3\nd: .inf\ne: '1'\nf: ~\ng: [x, {h: yes}]\n", NULL,
        "{\"a\":16,\"b\":-1,\"c\":1e3,\"d\":\".inf\",\"e\":\"1\",\"f\":null,\"g\":[\"x\",{\"h\":\"yes\"}]}");
}

static void keys_of_the_root_may_stay_behind(void **state)
{
    static const char *const without[] = {"admin", "store", NULL};
    expect_of(json_read, "{\"admin\":{},\"a\":{\"admin\":1},\"store\":{\"url\":\"x\"}}", without,
              "{\"a\":{\"admin\":1}}");
    expect_of(json_read, "{\"admin\":{}}", without, "{}");
    expect_of(json_read, "{\"a\":1,\"store\":2}", without, "{\"a\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_json_says_comes_out_again),
        cmocka_unit_test(yaml_becomes_json),
        cmocka_unit_test(keys_of_the_root_may_stay_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
