/* SPDX-License-Identifier: Apache-2.0 */
#include "config/part.h"

#include "config/load.h"
#include "doc/doc_edit.h"
#include "doc/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { GROUPS = 100 };

/* A document of many groups of two targets; what was decoded from it last. */
struct fixture {
    struct iso_diag diag;
    struct doc doc;
    struct doc_edit edit;
    struct config *config;
};

static struct config *load(struct fixture *f, const struct config *before)
{
    struct config *config = NULL;
    f->doc.errors_before = f->diag.errors;
    iso_err err = config_load_again(&f->doc, "/etc", before, &config);
    for (const struct diag_entry *entry = f->diag.first; err && entry; entry = entry->next)
        print_error("%s: %s\n", entry->path, entry->message);
    assert_int_equal(err, ISO_OK);
    return config;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct text text;
    text_init(&text);
    text_printf(&text, "{\"load_balancers\":[{\"name\":\"lb\",\"listeners\":[{\"port\":80,\"rules\":[");
    for (int i = 0; i < GROUPS; i++)
        text_printf(&text, "%s{\"match\":{\"path_prefix\":\"/%d\"},\"forward\":[{\"target_group\":\"g%d\"}]}",
                    i ? "," : "", i, i);
    text_printf(&text, "]}]}],\"target_groups\":[");
    for (int i = 0; i < GROUPS; i++)
        text_printf(
            &text,
            "%s{\"name\":\"g%d\",\"protocol\":\"HTTPS\",\"tls\":{\"ca_file\":\"ca.pem\"},\"targets\":[{"
            "\"ip\":\"10.0.0.1\",\"port\":443},{\"ip\":\"10.0.0.2\",\"port\":443,\"weight\":7}]}",
            i ? "," : "", i);
    text_printf(&text, "]}");
    diag_init(&f->diag);
    doc_init(&f->doc, "t", &f->diag);
    assert_int_equal(json_read(text_slice(&text), &f->doc), ISO_OK);
    text_fini(&text);
    f->config = load(f, NULL);
    assert_int_equal(f->diag.warnings, 0);
    doc_edit_begin(&f->edit, &f->doc);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    config_free(f->config);
    doc_fini(&f->doc);
    diag_fini(&f->diag);
    free(f);
    return 0;
}

static struct doc_node *group_node(struct fixture *f, uint32_t index)
{
    struct doc_node *node = doc_get(f->doc.root, "target_groups")->first;
    while (index--)
        node = node->next;
    return node;
}

static struct doc_node *target_node(struct fixture *f, uint32_t group, uint32_t target)
{
    struct doc_node *node = doc_get(group_node(f, group), "targets")->first;
    return target ? node->next : node;
}

static void set_weight(struct fixture *f, uint32_t group, const char *weight)
{
    struct doc_node *value = doc_new(&f->doc, DOC_STRING);
    doc_set_scalar(&f->doc, value, slice_str(weight), true);
    doc_edit_set(&f->edit, target_node(f, group, 1), "weight", value);
}

/* Groups of `now` that were made anew. */
static uint32_t count_built(const struct config *now, const struct config *before)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < now->n_target_groups; i++) {
        bool is_old = false;
        for (uint32_t k = 0; k < before->n_target_groups; k++)
            is_old |= now->target_groups[i].part == before->target_groups[k].part;
        n += !is_old;
    }
    return n;
}

static void a_change_of_one_target_builds_one_group(void **state)
{
    struct fixture *f = *state;
    set_weight(f, 40, "9");
    struct config *now = load(f, f->config);
    assert_int_equal(count_built(now, f->config), 1);
    assert_int_equal(now->target_groups[40].targets[1].weight, 9);
    assert_int_equal(f->config->target_groups[40].targets[1].weight, 7);
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_true((now->target_groups[i].targets == f->config->target_groups[i].targets) == (i != 40));
    config_free(now);
}

static void a_change_taken_back_builds_nothing(void **state)
{
    struct fixture *f = *state;
    set_weight(f, 40, "9");
    struct config *tried = load(f, f->config);
    doc_edit_undo(&f->edit);
    struct config *now = load(f, f->config);
    assert_int_equal(count_built(now, f->config), 0);
    doc_edit_redo(&f->edit);
    struct config *again = load(f, tried);
    assert_int_equal(count_built(again, tried), 0);
    config_free(again);
    config_free(now);
    config_free(tried);
}

static void compaction_of_the_document_builds_nothing(void **state)
{
    struct fixture *f = *state;
    doc_compact(&f->doc);
    struct config *now = load(f, f->config);
    assert_int_equal(count_built(now, f->config), 0);
    config_free(now);
}

static void groups_behind_one_that_goes_are_taken_over_with_their_new_places(void **state)
{
    struct fixture *f = *state;
    doc_edit_remove(
        &f->edit,
        doc_get(doc_get(doc_get(f->doc.root, "load_balancers")->first, "listeners")->first, "rules")->first);
    doc_edit_remove(&f->edit, group_node(f, 0));
    struct config *now = load(f, f->config);
    assert_int_equal(now->n_target_groups, GROUPS - 1);
    assert_int_equal(count_built(now, f->config), 0);
    assert_string_equal(f->config->target_groups[1].tls.place.path, "/target_groups/1/tls");
    assert_string_equal(now->target_groups[0].tls.place.path, "/target_groups/0/tls");
    assert_int_equal(now->load_balancers[0].listeners[0].rules[0].forward[0].target_group, 0);
    assert_string_equal(now->target_groups[0].tls.ca_file.ptr, "/etc/ca.pem");
    config_free(now);
}

static void what_is_shared_outlives_the_configuration_that_made_it(void **state)
{
    struct fixture *f = *state;
    set_weight(f, 3, "9");
    struct config *now = load(f, f->config);
    config_free(f->config);
    f->config = now;
    assert_string_equal(now->target_groups[2].name.ptr, "g2");
    assert_string_equal(now->target_groups[2].targets[1].endpoint.text.ptr, "10.0.0.2:443");
}

static void faults_of_one_group_are_found_beside_others_that_are_taken_over(void **state)
{
    struct fixture *f = *state;
    struct config *now = NULL;
    set_weight(f, 40, "-1");
    f->doc.errors_before = f->diag.errors;
    assert_int_equal(config_load_again(&f->doc, "/etc", f->config, &now), ISO_ERR_INVALID);
    assert_null(now);
    assert_int_equal(f->diag.errors, 1);
    assert_string_equal(f->diag.first->path, "/target_groups/40/targets/1/weight");
}

static void a_name_that_another_group_has_is_found_among_those_taken_over(void **state)
{
    struct fixture *f = *state;
    struct config *now = NULL;
    struct doc_node *copy = doc_copy(&f->doc, group_node(f, 7));
    doc_edit_append(&f->edit, (struct doc_node *)doc_get(f->doc.root, "target_groups"), copy);
    assert_int_equal(config_load_again(&f->doc, "/etc", f->config, &now), ISO_ERR_INVALID);
    assert_int_equal(f->diag.errors, 1);
    assert_string_equal(f->diag.first->path, "/target_groups/100/name");
}

static void a_reference_to_a_group_that_goes_is_found(void **state)
{
    struct fixture *f = *state;
    struct config *now = NULL;
    doc_edit_remove(&f->edit, group_node(f, 7));
    assert_int_equal(config_load_again(&f->doc, "/etc", f->config, &now), ISO_ERR_INVALID);
    assert_int_equal(f->diag.errors, 1);
    assert_string_equal(f->diag.first->path, "/load_balancers/0/listeners/0/rules/7/forward/0/target_group");
}

static void a_group_with_a_warning_says_it_every_time(void **state)
{
    struct fixture *f = *state;
    set_weight(f, 40, "0");
    doc_edit_remove(&f->edit, target_node(f, 40, 0));
    struct config *now = load(f, f->config);
    assert_int_equal(f->diag.warnings, 1);
    struct config *again = load(f, now);
    assert_int_equal(f->diag.warnings, 2);
    assert_int_equal(count_built(again, now), 1);
    config_free(again);
    config_free(now);
}

static void another_folder_for_relative_paths_builds_all(void **state)
{
    struct fixture *f = *state;
    struct config *now = NULL;
    assert_int_equal(config_load_again(&f->doc, "/srv", f->config, &now), ISO_OK);
    assert_int_equal(count_built(now, f->config), GROUPS);
    assert_string_equal(now->target_groups[0].tls.ca_file.ptr, "/srv/ca.pem");
    config_free(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(a_change_of_one_target_builds_one_group),
        T(a_change_taken_back_builds_nothing),
        T(compaction_of_the_document_builds_nothing),
        T(groups_behind_one_that_goes_are_taken_over_with_their_new_places),
        T(what_is_shared_outlives_the_configuration_that_made_it),
        T(faults_of_one_group_are_found_beside_others_that_are_taken_over),
        T(a_name_that_another_group_has_is_found_among_those_taken_over),
        T(a_reference_to_a_group_that_goes_is_found),
        T(a_group_with_a_warning_says_it_every_time),
        T(another_folder_for_relative_paths_builds_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
