/* SPDX-License-Identifier: Apache-2.0 */
#include "v1/resource.h"

#include "doc/json.h"
#include "doc/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char sample[] =
    "{\"load_balancers\":[{\"name\":\"lb\",\"listeners\":[{\"port\":80,\"rules\":[{\"name\":\"r\"},{\"deny\":"
    "{}},"
    "{\"deny\":{\"status\":404}}]},{\"name\":\"tls\",\"port\":443},{\"unix\":\"/run/x\"}]}],"
    "\"target_groups\":[{\"name\":\"tg-2\",\"port\":81,\"targets\":[{\"ip\":\"10.0.0.1\",\"port\":80},"
    "{\"ip\":\"2001:DB8::1\"},{\"host\":\"app.internal\",\"port\":80},{\"unix\":\"/run/t\"},{\"port\":1}]},"
    "{\"name\":\"tg-x\"}]}";

struct fixture {
    struct iso_diag diag;
    struct doc doc;
    struct arena arena;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    diag_init(&f->diag);
    doc_init(&f->doc, "t", &f->diag);
    arena_init(&f->arena);
    assert_int_equal(json_read(slice_str(sample), &f->doc), ISO_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    doc_fini(&f->doc);
    diag_fini(&f->diag);
    free(f);
    return 0;
}

/* The list that the ids lead to. */
static const struct doc_node *list_of(struct fixture *f, const struct resource *resource, const char *a,
                                      const char *b)
{
    const struct slice ids[] = {slice_str(a), slice_str(b)};
    const struct doc_node *parent;
    bool exists;
    return resource_list(resource, f->doc.root, ids, &f->arena, &parent, &exists);
}

static void expect_ids(struct fixture *f, const struct resource *resource, const struct doc_node *list,
                       const char *expected)
{
    struct text out;
    text_init(&out);
    for (const struct doc_node *item = list->first; item; item = item->next) {
        struct slice id = resource_id(resource, item, &f->arena);
        text_printf(&out, "%s%.*s", out.len ? " " : "", id.ptr ? (int)id.len : 1, id.ptr ? id.ptr : "-");
        if (id.ptr)
            assert_ptr_equal(resource_find(resource, list, id, &f->arena), item);
    }
    assert_string_equal(out.data, expected);
    text_fini(&out);
}

static void items_are_called_as_metrics_and_logs_call_them(void **state)
{
    struct fixture *f = *state;
    expect_ids(f, &resource_target_groups, list_of(f, &resource_target_groups, "", ""), "tg-2 tg-x");
    expect_ids(f, &resource_targets, list_of(f, &resource_targets, "tg-2", ""),
               "10.0.0.1:80 [2001:db8::1]:81 app.internal:80 unix:/run/t -");
    expect_ids(f, &resource_listeners, list_of(f, &resource_listeners, "lb", ""), "80 tls unix:/run/x");
}

static void a_rule_without_a_name_is_called_by_what_it_says(void **state)
{
    struct fixture *f = *state;
    const struct doc_node *list = list_of(f, &resource_rules, "lb", "80");
    const struct doc_node *second = list->first->next, *third = second->next;
    struct slice a = resource_id(&resource_rules, second, &f->arena),
                 b = resource_id(&resource_rules, third, &f->arena);
    assert_true(slice_starts(a, SLICE("rule.")));
    assert_false(slice_eq(a, b));
    assert_ptr_equal(resource_find(&resource_rules, list, b, &f->arena), third);
}

static void what_has_no_parent_is_told_from_what_has_no_list(void **state)
{
    struct fixture *f = *state;
    const struct slice there[] = {SLICE("tg-x")}, nowhere[] = {SLICE("none")};
    const struct doc_node *parent;
    bool exists;
    assert_null(resource_list(&resource_targets, f->doc.root, there, &f->arena, &parent, &exists));
    assert_true(exists);
    assert_non_null(parent);
    assert_null(resource_list(&resource_targets, f->doc.root, nowhere, &f->arena, &parent, &exists));
    assert_false(exists);
}

static void new_names_are_behind_the_highest(void **state)
{
    struct fixture *f = *state;
    const struct doc_node *groups = list_of(f, &resource_target_groups, "", "");
    assert_string_equal(resource_new_name(&resource_target_groups, groups, &f->arena), "tg-3");
    assert_string_equal(resource_new_name(&resource_nodes, NULL, &f->arena), "node-1");
}

/* The item that an id alone makes. */
static void expect_named(struct fixture *f, const struct resource *resource, const char *id, const char *json)
{
    struct doc_edit edit;
    struct text out;
    text_init(&out);
    doc_edit_begin(&edit, &f->doc);
    struct doc_node *item = doc_new(&f->doc, DOC_MAP);
    if (resource->name_it(&edit, item, slice_str(id)))
        json_write(item, NULL, &out);
    assert_string_equal(out.data ? out.data : "", json);
    text_fini(&out);
}

static void an_id_says_what_the_item_is(void **state)
{
    struct fixture *f = *state;
    expect_named(f, &resource_target_groups, "web", "{\"name\":\"web\"}");
    expect_named(f, &resource_targets, "10.0.0.9:8080", "{\"ip\":\"10.0.0.9\",\"port\":8080}");
    expect_named(f, &resource_targets, "[::1]:80", "{\"ip\":\"::1\",\"port\":80}");
    expect_named(f, &resource_targets, "unix:/run/y", "{\"unix\":\"/run/y\"}");
    expect_named(f, &resource_targets, "app.internal:80", "{\"host\":\"app.internal\",\"port\":80}");
    expect_named(f, &resource_targets, "srv:_http._tcp.app", "{\"srv\":\"_http._tcp.app\"}");
    expect_named(f, &resource_targets, "nonsense", "");
    expect_named(f, &resource_listeners, "8080", "{\"port\":8080}");
    expect_named(f, &resource_listeners, "front", "{\"name\":\"front\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(items_are_called_as_metrics_and_logs_call_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rule_without_a_name_is_called_by_what_it_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_has_no_parent_is_told_from_what_has_no_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(new_names_are_behind_the_highest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_id_says_what_the_item_is, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
