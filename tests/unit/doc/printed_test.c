/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/printed.h"

#include "doc/doc_edit.h"
#include "doc/json.h"
#include "doc/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char sample[] =
    "{\"workers\":2,\"admin\":{\"listen\":\"x\"},\"load_balancers\":[{\"name\":\"lb\"}],\"trusted\":["
    "\"a\",\"b\"],\"target_groups\":[{\"name\":\"g0\",\"targets\":[1,2]},{\"name\":\"g1\"},{"
    "\"name\":\"g2\"}],\"empty\":[],\"last\":true}";
static const char *const local[] = {"admin", NULL};

struct fixture {
    struct iso_diag diag;
    struct doc doc;
    struct doc_edit edit;
    struct printed *printed; /* of the sample */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    diag_init(&f->diag);
    doc_init(&f->doc, "t", &f->diag);
    assert_int_equal(json_read(slice_str(sample), &f->doc), ISO_OK);
    doc_edit_begin(&f->edit, &f->doc);
    f->printed = printed_new(f->doc.root, local, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    printed_unref(&f->printed);
    doc_fini(&f->doc);
    diag_fini(&f->diag);
    free(f);
    return 0;
}

static struct doc_node *groups(struct fixture *f)
{
    return (struct doc_node *)doc_get(f->doc.root, "target_groups");
}

/* Prints again and compares with a print of the whole. */
static struct printed *again(struct fixture *f)
{
    struct printed *now = printed_new(f->doc.root, local, f->printed);
    struct text whole, joined;
    text_init(&whole);
    text_init(&joined);
    json_write(f->doc.root, local, &whole);
    printed_write(now, &joined);
    assert_string_equal(joined.data, whole.data);
    assert_int_equal(now->bytes, whole.len);
    assert_true(printed_is(now, text_slice(&whole)));
    text_fini(&whole);
    text_fini(&joined);
    return now;
}

/* The middle of the difference; the whole is put together from it. */
static void expect_middle(struct fixture *f, const struct printed *now, const char *expected)
{
    struct printed_change change;
    struct text from, to, middle, joined;
    text_init(&from);
    text_init(&to);
    text_init(&middle);
    text_init(&joined);
    printed_compare(f->printed, now, &change);
    printed_write(f->printed, &from);
    printed_write(now, &to);
    printed_write_middle(now, &change, &middle);
    text_add(&joined, slice_of(from.data, change.head));
    text_add(&joined, text_slice(&middle));
    text_add(&joined, slice_of(from.data + from.len - change.tail, change.tail));
    assert_string_equal(joined.data, to.data);
    assert_int_equal(middle.len, change.middle_bytes);
    assert_string_equal(middle.len ? middle.data : "", expected);
    text_fini(&from);
    text_fini(&to);
    text_fini(&middle);
    text_fini(&joined);
}

static void what_did_not_change_is_printed_once(void **state)
{
    struct fixture *f = *state;
    doc_edit_set(&f->edit, groups(f)->first->next, "x", doc_new(&f->doc, DOC_NULL));
    struct printed *now = again(f);
    uint32_t n_new = 0;
    assert_int_equal(now->n, f->printed->n);
    for (uint32_t i = 0; i < now->n; i++)
        n_new += now->pieces[i] != f->printed->pieces[i];
    assert_int_equal(n_new, 1 + 3); /* and what stands between items, which is short */
    expect_middle(f, now, ",{\"name\":\"g1\",\"x\":null}");
    printed_unref(&now);
}

static void a_change_taken_back_leaves_no_difference(void **state)
{
    struct fixture *f = *state;
    doc_edit_remove(&f->edit, groups(f)->first);
    doc_edit_undo(&f->edit);
    struct printed *now = again(f);
    expect_middle(f, now, "");
    printed_unref(&now);
}

static void items_come_and_go_anywhere(void **state)
{
    struct fixture *f = *state;
    for (int turn = 0; turn < 4; turn++) {
        doc_edit_begin(&f->edit, &f->doc);
        if (turn < 3)
            doc_edit_remove(&f->edit, groups(f)->first);
        else
            doc_edit_append(&f->edit, groups(f), doc_copy(&f->doc, doc_get(f->doc.root, "workers")));
        struct printed *now = again(f);
        printed_unref(&f->printed);
        f->printed = now;
    }
}

static void other_keys_are_part_of_the_text(void **state)
{
    struct fixture *f = *state;
    doc_edit_set(&f->edit, f->doc.root, "workers", NULL);
    doc_edit_set(&f->edit, f->doc.root, "new", doc_copy(&f->doc, groups(f)));
    printed_unref(&f->printed);
    f->printed = again(f);
    doc_edit_set(&f->edit, f->doc.root, "target_groups", NULL);
    struct printed *now = again(f);
    printed_unref(&now);
}

static void a_text_that_is_shorter_longer_or_other_is_another(void **state)
{
    struct fixture *f = *state;
    struct text text;
    text_init(&text);
    printed_write(f->printed, &text);
    assert_true(printed_is(f->printed, text_slice(&text)));
    assert_false(printed_is(f->printed, slice_of(text.data, text.len - 1)));
    text.data[text.len - 2]++;
    assert_false(printed_is(f->printed, text_slice(&text)));
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(what_did_not_change_is_printed_once),
        T(a_change_taken_back_leaves_no_difference),
        T(items_come_and_go_anywhere),
        T(other_keys_are_part_of_the_text),
        T(a_text_that_is_shorter_longer_or_other_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
