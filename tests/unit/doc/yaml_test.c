/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/yaml.h"

#include "readers.h"

static void expect(const char *text, const char *expected)
{
    expect_read_of(yaml_read, slice_str(text), false, expected);
}

static void block_and_flow_style_are_one_tree(void **state)
{
    const char *tree = "{a=[int'1' {b='x'}] c=null'' d='1'}";
    expect("a:\n  - 1\n  - b: x\nc:\nd: '1'\n", tree);
    expect("{a: [1, {b: x}], c: , d: \"1\"}", tree);
    expect("---\n# note\na: [1, {\"b\": x}]\nc:\nd: \"1\"\n...\n", tree);
}

static void json_is_read_too(void **state)
{
    expect("{\"a\":[1,-2.5e3,\"x\\u00e9\\n\",true,null],\n\t\"b\":{}}",
           "{a=[int'1' real'-2.5e3' 'x\xc3\xa9\n' bool'true' null'null'] b={}}");
}

static void nodes_know_line_and_character(void **state)
{
    expect_read_of(yaml_read, SLICE("\xc3\xa9: 1\nb:\n  - 'x'\n"), true,
                   "{\xc3\xa9=int'1'@1:4 b=['x'@3:5]@3:3}@1:1");
}

static void an_empty_text_has_no_root(void **state)
{
    expect("", "");
    expect("# only a note\n", "");
}

static void syntax_errors_have_a_place_and_a_hint(void **state)
{
    expect("a: [1\nb: 2\n", "2:2: is not valid YAML: did not find expected ',' or ']' (while parsing a flow "
                            "sequence that begins on line "
                            "1)");
    expect("a: b: c\n",
           "1:5: is not valid YAML: mapping values are not allowed in this context; a text that contains "
           "\": \" must stand in quotes, and a key is indented as its neighbours are");
    expect("a:\n\tb: c\n", "2:1: is not valid YAML: found character that cannot start any token (while "
                           "scanning for the next token); a "
                           "value that begins with @, `, % or a tab must stand in quotes");
    expect("{ listen: :80 }\n",
           "1:11: is not valid YAML: did not find expected node content (while parsing a flow node); a "
           "value that begins with : or , must stand in quotes");
    expect("a:\n  b: 1\n c: 2\n",
           "3:2: is not valid YAML: did not find expected key (while parsing a block mapping that "
           "begins on line 1); the keys of one map begin in the same column");
    expect("host: *.example\n", "1:8: is not valid YAML: did not find expected alphabetic or numeric "
                                "character (while scanning an alias); a "
                                "value that begins with * or & must stand in quotes");
}

static void rejects_anchors_aliases_tags_and_second_documents(void **state)
{
    const char *hint =
        "1:4: anchors and aliases are not read; a value that begins with * or & must stand in quotes";
    expect("a: &x 1\nb: *x\n", hint);
    expect("a: *x\n", hint);
    expect("a: &x [1]\n", hint);
    expect("a: !!str 1\n", "1:4: tags are not read; a value that begins with ! must stand in quotes");
    expect("a: !include x\n", "1:4: tags are not read; a value that begins with ! must stand in quotes");
    expect("a: 1\n---\nb: 2\n", "2:1: a second document begins here; expected one document");
}

/* A few lines that describe more values than memory has. */
static void rejects_a_billion_laughs_at_the_first(void **state)
{
    expect("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
           "1:4: anchors and aliases are not read; a value that begins with * or & must stand in quotes");
}

static void rejects_keys_that_are_no_texts_or_occur_twice(void **state)
{
    const char *hint =
        "1:3: a key must be a plain text, not a list or a map; a value that begins with { or [ must stand "
        "in quotes";
    expect("? [a]\n: 1\n", hint);
    expect("? {a: 1}\n: 1\n", hint);
    expect("a: 1\nb: 2\n\"a\": 3\n", "3:1: /a: is given twice; the first is on line 1");
}

static void rejects_bytes_that_are_no_text(void **state)
{
    expect("a: \"\\0\"\n", "1:4: a text must not contain the character \\0");
    expect("a: \xff\n", "1:4: the byte 0xff is not UTF-8");
    expect_read_of(yaml_read, SLICE("\xff\xfe{\0}\0"), false, "1:1: the byte 0xff is not UTF-8"); /* UTF-16 */
}

static void rejects_deep_nesting_without_recursion(void **state)
{
    static char text[200000];
    memset(text, '[', sizeof(text));
    expect_read_of(yaml_read, slice_of(text, sizeof(text)), false, "1:33: is nested deeper than 32 levels");
    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "- ", 2);
    expect_read_of(yaml_read, slice_of(text, sizeof(text)), false, "1:65: is nested deeper than 32 levels");
}

static void rejects_a_text_beyond_the_limit(void **state)
{
    static char text[DOC_BYTES_MAX + 1];
    memset(text, ' ', sizeof(text));
    expect_read_of(yaml_read, slice_of(text, sizeof(text)), false, "is longer than 16777216 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_and_flow_style_are_one_tree),
        cmocka_unit_test(json_is_read_too),
        cmocka_unit_test(nodes_know_line_and_character),
        cmocka_unit_test(an_empty_text_has_no_root),
        cmocka_unit_test(syntax_errors_have_a_place_and_a_hint),
        cmocka_unit_test(rejects_anchors_aliases_tags_and_second_documents),
        cmocka_unit_test(rejects_a_billion_laughs_at_the_first),
        cmocka_unit_test(rejects_keys_that_are_no_texts_or_occur_twice),
        cmocka_unit_test(rejects_bytes_that_are_no_text),
        cmocka_unit_test(rejects_deep_nesting_without_recursion),
        cmocka_unit_test(rejects_a_text_beyond_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
