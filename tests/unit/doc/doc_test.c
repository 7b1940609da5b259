/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/doc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct fixture {
    struct iso_diag diag;
    struct doc doc;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    diag_init(&fixture.diag);
    doc_init(&fixture.doc, "f", &fixture.diag);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    doc_fini(&f->doc);
    diag_fini(&f->diag);
    return 0;
}

static enum doc_kind kind_of(struct fixture *f, const char *text)
{
    struct doc_node node = {0};
    doc_set_scalar(&f->doc, &node, slice_str(text), true);
    return node.kind;
}

static void plain_words_are_what_they_look_like(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        enum doc_kind kind;
    } cases[] = {
        {"", DOC_NULL},
        {"~", DOC_NULL},
        {"null", DOC_NULL},
        {"true", DOC_BOOL},
        {"false", DOC_BOOL},
        {"yes", DOC_STRING},
        {"off", DOC_STRING},
        {"0", DOC_INTEGER},
        {"-4", DOC_INTEGER},
        {"8080", DOC_INTEGER},
        {"0.2", DOC_REAL},
        {"1e3", DOC_REAL},
        {"-1.5E-2", DOC_REAL},
        {"007", DOC_STRING},
        {"0x1f", DOC_STRING},
        {"+1", DOC_STRING},
        {"1.", DOC_STRING},
        {".5", DOC_STRING},
        {"1e", DOC_STRING},
        {"1e+", DOC_STRING},
        {"5x", DOC_STRING},
        {"1.2.3", DOC_STRING},
        {"10.0.0.1", DOC_STRING},
        {"-", DOC_STRING},
        {".nan", DOC_STRING},
        {".inf", DOC_STRING},
        {"1_000", DOC_STRING},
        {"12:30", DOC_STRING},
        {"9223372036854775807", DOC_INTEGER},
        {"9223372036854775808", DOC_REAL},
        {"99999999999999999999999999", DOC_REAL},
        {"1e999", DOC_REAL},
    };
    for (size_t i = 0; i < iso_countof(cases); i++)
        if (kind_of(f, cases[i].text) != cases[i].kind)
            fail_msg("\"%s\" is %d", cases[i].text, kind_of(f, cases[i].text));
}

static void quoted_words_are_texts(void **state)
{
    struct fixture *f = *state;
    struct doc_node node = {0};
    doc_set_scalar(&f->doc, &node, SLICE("8080"), false);
    assert_int_equal(node.kind, DOC_STRING);
}

static struct doc_node *add(struct fixture *f, struct doc_node *parent, const char *key, enum doc_kind kind)
{
    struct doc_node *node = doc_add(&f->doc, parent, slice_str(key), kind, 1, 1);
    assert_non_null(node);
    return node;
}

static void paths_are_json_pointers(void **state)
{
    struct fixture *f = *state;
    struct doc_node *root = add(f, NULL, NULL, DOC_MAP), *list = add(f, root, "a/b~c", DOC_LIST);
    add(f, list, NULL, DOC_STRING);
    struct doc_node *second = add(f, add(f, list, NULL, DOC_MAP), "x", DOC_STRING);
    assert_string_equal(doc_path(root, &f->doc.arena), "");
    assert_string_equal(doc_path(second, &f->doc.arena), "/a~1b~0c/1/x");
}

static void a_label_stands_for_the_path(void **state)
{
    struct fixture *f = *state;
    struct doc_node *root = add(f, NULL, NULL, DOC_MAP), *target = add(f, root, "target", DOC_MAP);
    struct doc_node *port = add(f, target, "port", DOC_STRING);
    target->label = "--to a:1";
    assert_string_equal(doc_path(target, &f->doc.arena), "--to a:1");
    assert_string_equal(doc_path(port, &f->doc.arena), "--to a:1 (port)");
    assert_string_equal(doc_path(root, &f->doc.arena), "");
}

static void descriptions_are_short_and_printable(void **state)
{
    struct fixture *f = *state;
    char text[200];
    memset(text, 'x', sizeof(text));
    text[0] = '\n';
    struct doc_node node = {0};
    doc_set_scalar(&f->doc, &node, slice_of(text, sizeof(text)), false);
    const char *said = doc_describe(&node, &f->doc.arena);
    assert_true(strlen(said) < 90);
    assert_null(strchr(said, '\n'));
}

static void keys_that_occur_twice_are_reported_each(void **state)
{
    struct fixture *f = *state;
    struct doc_node *root = add(f, NULL, NULL, DOC_MAP);
    static const char *const keys[] = {"b", "a", "b", "c", "b"};
    for (size_t i = 0; i < iso_countof(keys); i++)
        add(f, root, keys[i], DOC_STRING);
    doc_check_keys(&f->doc, root);
    assert_int_equal(f->diag.errors, 2);
    assert_string_equal(f->diag.first->path, "/b");
}

static void rejects_what_is_nested_too_deeply(void **state)
{
    struct fixture *f = *state;
    struct doc_node *node = NULL;
    for (int depth = 0; depth < DOC_DEPTH_MAX; depth++)
        node = add(f, node, NULL, DOC_LIST);
    assert_null(doc_add(&f->doc, node, (struct slice){0}, DOC_LIST, 1, 1));
    assert_true(f->doc.failed);
    assert_int_equal(f->diag.errors, 1);
}

static void rejects_more_values_than_the_limit(void **state)
{
    struct fixture *f = *state;
    struct doc_node *list = add(f, NULL, NULL, DOC_LIST);
    for (uint32_t i = 1; i < DOC_NODES_MAX; i++)
        if (!doc_add(&f->doc, list, (struct slice){0}, DOC_NULL, 1, 1))
            fail();
    assert_null(doc_add(&f->doc, list, (struct slice){0}, DOC_NULL, 1, 1));
    assert_true(f->doc.failed);
}

static void rejects_what_is_not_utf8_at_its_place(void **state)
{
    struct fixture *f = *state;
    assert_true(doc_check_text(&f->doc, SLICE("gr\xc3\xbc\xc3\x9f\x65\n\xf0\x9f\x98\x80")));
    assert_false(doc_check_text(&f->doc, SLICE("ok\nab\xff")));
    assert_int_equal(f->diag.first->line, 2);
    assert_int_equal(f->diag.first->column, 3);
    assert_false(doc_check_text(&f->doc, SLICE("\xed\xa0\x80")));     /* a surrogate */
    assert_false(doc_check_text(&f->doc, SLICE("\xc0\xaf")));         /* longer than needed */
    assert_false(doc_check_text(&f->doc, SLICE("\xf4\x90\x80\x80"))); /* beyond U+10FFFF */
    assert_false(doc_check_text(&f->doc, SLICE("a\xc3")));            /* cut off */
    assert_false(doc_check_text(&f->doc, slice_of("a\0b", 3)));
    assert_int_equal(f->diag.errors, 6);
}

static void counts_faults_beyond_the_limit_instead_of_keeping_them(void **state)
{
    struct fixture *f = *state;
    struct doc_node *root = add(f, NULL, NULL, DOC_MAP);
    for (int i = 0; i < 1000; i++) {
        doc_fault(&f->doc, DIAG_ERROR, root, "is wrong");
        doc_fault(&f->doc, DIAG_WARNING, root, "is odd");
    }
    assert_int_equal(f->diag.errors, DOC_FAULTS_MAX);
    assert_int_equal(f->diag.warnings, DOC_FAULTS_MAX);
    doc_close_faults(&f->doc);
    assert_int_equal(f->diag.errors, DOC_FAULTS_MAX + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_words_are_what_they_look_like),
        TEST(quoted_words_are_texts),
        TEST(paths_are_json_pointers),
        TEST(a_label_stands_for_the_path),
        TEST(descriptions_are_short_and_printable),
        TEST(keys_that_occur_twice_are_reported_each),
        TEST(rejects_what_is_nested_too_deeply),
        TEST(rejects_more_values_than_the_limit),
        TEST(rejects_what_is_not_utf8_at_its_place),
        TEST(counts_faults_beyond_the_limit_instead_of_keeping_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
