/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/doc_edit.h"

#include "doc/json.h"
#include "doc/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct iso_diag diag;
    struct doc doc;
    struct doc_edit edit;
};

static struct fixture open_doc(const char *json)
{
    struct fixture f;
    diag_init(&f.diag);
    doc_init(&f.doc, "t", &f.diag);
    assert_int_equal(json_read(slice_str(json), &f.doc), ISO_OK);
    return f;
}

static void expect(struct fixture *f, const char *json)
{
    struct text text;
    text_init(&text);
    json_write(f->doc.root, NULL, &text);
    assert_string_equal(text.data, json);
    text_fini(&text);
}

static void close_doc(struct fixture *f)
{
    doc_fini(&f->doc);
    diag_fini(&f->diag);
}

/* Everywhere in the tree: children know their parent, their place and their depth. */
static void check_tree(const struct doc_node *node)
{
    uint32_t n = 0;
    const struct doc_node *last = NULL;
    for (const struct doc_node *child = node->first; child; child = child->next) {
        assert_ptr_equal(child->parent, node);
        assert_int_equal(child->index, n++);
        assert_int_equal(child->depth, node->depth + 1);
        check_tree(child);
        last = child;
    }
    assert_ptr_equal(node->last, last);
    assert_int_equal(node->n, n);
}

static struct doc_node *at(struct fixture *f, const char *key)
{
    return (struct doc_node *)doc_get(f->doc.root, key);
}

static void steps_can_be_taken_back_and_again(void **state)
{
    static const char before[] = "{\"a\":1,\"l\":[{\"x\":1},{\"x\":2},{\"x\":3}],\"m\":{\"k\":true}}",
                      after[] = "{\"a\":{\"k\":true},\"l\":[{\"x\":2},{\"k\":true}],\"n\":{\"k\":true}}";
    struct fixture f = open_doc(before);
    doc_edit_begin(&f.edit, &f.doc);
    struct doc_node *list = at(&f, "l"), *map = at(&f, "m");
    doc_edit_remove(&f.edit, list->first);
    doc_edit_replace(&f.edit, list->last, doc_copy(&f.doc, map));
    doc_edit_set(&f.edit, f.doc.root, "a", doc_copy(&f.doc, map));
    doc_edit_set(&f.edit, f.doc.root, "n", doc_copy(&f.doc, map));
    doc_edit_set(&f.edit, f.doc.root, "m", NULL);
    expect(&f, after);
    check_tree(f.doc.root);
    for (int i = 0; i < 3; i++) {
        doc_edit_undo(&f.edit);
        expect(&f, before);
        check_tree(f.doc.root);
        doc_edit_redo(&f.edit);
        expect(&f, after);
        check_tree(f.doc.root);
    }
    close_doc(&f);
}

static void a_merge_patch_is_that_of_RFC_7396(void **state)
{
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct fixture f = open_doc(cases[i].target), patch = open_doc(cases[i].patch);
        doc_edit_begin(&f.edit, &f.doc);
        assert_true(doc_edit_merge(&f.edit, f.doc.root, patch.doc.root));
        expect(&f, cases[i].result);
        check_tree(f.doc.root);
        doc_edit_undo(&f.edit);
        expect(&f, cases[i].target);
        close_doc(&patch);
        close_doc(&f);
    }
}

static void too_deep_a_tree_is_noticed(void **state)
{
    struct fixture f = open_doc("{\"a\":{\"b\":{\"c\":[]}}}");
    struct text deep;
    text_init(&deep);
    for (int i = 0; i < DOC_DEPTH_MAX - 3; i++)
        text_add(&deep, SLICE("["));
    for (int i = 0; i < DOC_DEPTH_MAX - 3; i++)
        text_add(&deep, SLICE("]"));
    struct fixture value = open_doc(deep.data);
    doc_edit_begin(&f.edit, &f.doc);
    struct doc_node *b = (struct doc_node *)doc_get(at(&f, "a"), "b");
    doc_edit_set(&f.edit, b, "c", doc_copy(&f.doc, value.doc.root));
    assert_false(f.edit.is_too_deep);
    doc_edit_append(&f.edit, (struct doc_node *)doc_get(b, "c"), doc_copy(&f.doc, value.doc.root));
    assert_true(f.edit.is_too_deep);
    doc_edit_undo(&f.edit);
    check_tree(f.doc.root);
    text_fini(&deep);
    close_doc(&value);
    close_doc(&f);
}

static void values_are_equal_whatever_the_order_of_keys(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } cases[] = {{"{\"a\":1,\"b\":[true,null]}", "{\"b\":[true,null],\"a\":1}", true},
                 {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
                 {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
                 {"[1,2]", "[2,1]", false},
                 {"{\"a\":\"1\"}", "{\"a\":1}", false}};
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct fixture a = open_doc(cases[i].a), b = open_doc(cases[i].b);
        assert_int_equal(doc_eq(a.doc.root, b.doc.root), cases[i].is_equal);
        assert_int_equal(doc_eq(b.doc.root, a.doc.root), cases[i].is_equal);
        close_doc(&a);
        close_doc(&b);
    }
}

static void compacting_keeps_the_tree_and_drops_the_rest(void **state)
{
    struct fixture f = open_doc("{\"a\":{\"b\":[1,\"x\",2.50,false]}}");
    doc_edit_begin(&f.edit, &f.doc);
    for (int i = 0; i < 1000; i++)
        doc_edit_set(&f.edit, f.doc.root, "a", doc_copy(&f.doc, at(&f, "a")));
    size_t before = f.doc.arena.total_bytes;
    doc_compact(&f.doc);
    expect(&f, "{\"a\":{\"b\":[1,\"x\",2.50,false]}}");
    check_tree(f.doc.root);
    assert_int_equal(f.doc.n_nodes, 7);
    assert_true(f.doc.arena.total_bytes < before / 100);
    close_doc(&f);
}

struct stamps {
    uint64_t root, list, first, second, map;
};

static struct stamps stamps_of(struct fixture *f)
{
    const struct doc_node *list = at(f, "l");
    return (struct stamps){f->doc.root->stamp, list->stamp, list->first->stamp, list->first->next->stamp,
                           at(f, "m")->stamp};
}

static void a_step_gives_new_stamps_to_its_way_up_and_to_nothing_else(void **state)
{
    struct fixture f = open_doc("{\"l\":[{\"x\":1},{\"x\":2}],\"m\":{\"k\":true}}");
    const struct stamps before = stamps_of(&f);
    doc_edit_begin(&f.edit, &f.doc);
    doc_edit_set(&f.edit, at(&f, "l")->first, "x", doc_copy(&f.doc, at(&f, "m")));
    const struct stamps after = stamps_of(&f);
    assert_int_not_equal(after.root, before.root);
    assert_int_not_equal(after.list, before.list);
    assert_int_not_equal(after.first, before.first);
    assert_int_equal(after.second, before.second);
    assert_int_equal(after.map, before.map);
    close_doc(&f);
}

static void stamps_go_back_and_come_again_with_the_steps(void **state)
{
    struct fixture f = open_doc("{\"l\":[{\"x\":1},{\"x\":2}],\"m\":{\"k\":true}}");
    const struct stamps before = stamps_of(&f);
    doc_edit_begin(&f.edit, &f.doc);
    doc_edit_set(&f.edit, at(&f, "l")->first, "x", NULL);
    doc_edit_set(&f.edit, at(&f, "l")->first, "y", doc_copy(&f.doc, at(&f, "m")));
    doc_edit_set(&f.edit, at(&f, "m"), "k", NULL);
    const struct stamps after = stamps_of(&f);
    for (int i = 0; i < 2; i++) {
        doc_edit_undo(&f.edit);
        struct stamps now = stamps_of(&f);
        assert_memory_equal(&now, &before, sizeof(now));
        doc_edit_redo(&f.edit);
        now = stamps_of(&f);
        assert_memory_equal(&now, &after, sizeof(now));
    }
    close_doc(&f);
}

static void compaction_keeps_stamps(void **state)
{
    struct fixture f = open_doc("{\"l\":[{\"x\":1},{\"x\":2}],\"m\":{\"k\":true}}");
    const struct stamps before = stamps_of(&f);
    doc_compact(&f.doc);
    const struct stamps after = stamps_of(&f);
    assert_memory_equal(&after, &before, sizeof(after));
    doc_edit_begin(&f.edit, &f.doc);
    doc_edit_set(&f.edit, at(&f, "m"), "k", NULL);
    assert_int_not_equal(at(&f, "m")->stamp, before.map);
    close_doc(&f);
}

static void no_two_documents_have_a_stamp_in_common(void **state)
{
    struct fixture f = open_doc("{\"l\":[{},{}],\"m\":{}}"), g = open_doc("{\"l\":[{},{}],\"m\":{}}");
    const struct stamps a = stamps_of(&f), b = stamps_of(&g);
    assert_true(a.root != b.root && a.list != b.list && a.first != b.first && a.map != b.map);
    close_doc(&f);
    close_doc(&g);
}

/* The stamps of a list's items that are also those of another list's, as a word: "x.x". */
static void expect_taken(const char *from_json, const char *to_json, const char *expected)
{
    struct fixture from = open_doc(from_json), to = open_doc(to_json);
    char taken[20];
    size_t n = 0;
    doc_take_stamps(to.doc.root, from.doc.root);
    for (const struct doc_node *item = doc_get(to.doc.root, "l")->first; item; item = item->next) {
        taken[n] = '.';
        for (const struct doc_node *old = doc_get(from.doc.root, "l")->first; old; old = old->next)
            if (old->stamp == item->stamp)
                taken[n] = 'x';
        n++;
    }
    taken[n] = 0;
    assert_string_equal(taken, expected);
    close_doc(&from);
    close_doc(&to);
}

static void a_document_takes_the_stamps_of_items_that_say_the_same_word_for_word(void **state)
{
    expect_taken("{\"l\":[{\"a\":1},{\"a\":[2,{\"b\":true}]},{\"a\":3}]}",
                 "{\"l\":[{\"a\":1},{\"a\":[2,{\"b\":false}]},{\"a\":3}]}", "x.x");
    expect_taken("{\"l\":[{\"a\":1},{\"a\":2},{\"a\":3}]}", "{\"l\":[{\"a\":2},{\"a\":3}]}", "xx");
    expect_taken("{\"l\":[{\"a\":1},{\"a\":3}]}", "{\"l\":[{\"a\":1},{\"a\":2},{\"a\":3}]}", "x.x");
    expect_taken("{\"l\":[{\"a\":1,\"b\":2}]}", "{\"l\":[{\"b\":2,\"a\":1}]}", ".");
    expect_taken("{\"l\":[{\"a\":1}]}", "{\"l\":[{\"a\":\"1\"}]}", ".");
    expect_taken("{\"l\":[{\"a\":[]}]}", "{\"l\":[{\"a\":{}}]}", ".");
    expect_taken("{\"l\":[{\"a\":1},{\"a\":1}]}", "{\"l\":[{\"a\":1}]}", "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_can_be_taken_back_and_again),
        cmocka_unit_test(a_merge_patch_is_that_of_RFC_7396),
        cmocka_unit_test(too_deep_a_tree_is_noticed),
        cmocka_unit_test(values_are_equal_whatever_the_order_of_keys),
        cmocka_unit_test(compacting_keeps_the_tree_and_drops_the_rest),
        cmocka_unit_test(a_step_gives_new_stamps_to_its_way_up_and_to_nothing_else),
        cmocka_unit_test(stamps_go_back_and_come_again_with_the_steps),
        cmocka_unit_test(compaction_keeps_stamps),
        cmocka_unit_test(no_two_documents_have_a_stamp_in_common),
        cmocka_unit_test(a_document_takes_the_stamps_of_items_that_say_the_same_word_for_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
