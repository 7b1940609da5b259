/* SPDX-License-Identifier: Apache-2.0 */
/* ctl get and list: resources of /v1 by the path of their names, "target-groups/web/targets". */
#include "ctl/ctl.h"

#include "doc/json.h"
#include "doc/json_write.h"

#include <stdio.h>

enum { COLUMNS_MAX = 10 };

/* "target-groups/web" and further arguments into "/v1/target-groups/web/..."; a path that begins with '/' is
 * taken as it is. */
static void build_path(const struct ctl *ctl, struct text *path)
{
    if (ctl->argv[0][0] == '/') {
        text_add(path, slice_str(ctl->argv[0]));
        return;
    }
    text_printf(path, "/v1");
    struct slice rest = slice_str(ctl->argv[0]), part;
    while (slice_next(&rest, '/', &part)) {
        text_printf(path, "/");
        client_add_segment(path, part);
    }
    for (int i = 1; i < ctl->argc; i++) { /* each is one name, whatever is in it */
        text_printf(path, "/");
        client_add_segment(path, slice_str(ctl->argv[i]));
    }
}

int ctl_get(struct ctl *ctl)
{
    struct ctl_answer answer;
    struct text path;
    if (ctl->argc < 1)
        return ctl_usage("say what to get: target-groups/web, or a path such as /api/config");
    text_init(&path);
    build_path(ctl, &path);
    int status = ctl_ask(ctl, "GET", path.data, &answer);
    if (!status && !ctl->json && answer.doc.root)
        ctl_print_json(answer.doc.root);
    else if (!status)
        ctl_print_raw(&answer);
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

/* Keys of the items whose values are scalars, in the order of their first appearance. */
static uint32_t find_columns(const struct doc_node *items, const char **titles, struct arena *arena)
{
    uint32_t n = 0;
    for (const struct doc_node *item = items->first; item; item = item->next)
        for (const struct doc_node *field = item->first; field; field = field->next) {
            uint32_t at = 0;
            if (field->kind == DOC_LIST || field->kind == DOC_MAP)
                continue;
            while (at < n && !slice_eq(slice_str(titles[at]), field->key))
                at++;
            if (at == n && n < COLUMNS_MAX)
                titles[n++] = arena_slice(arena, field->key).ptr;
        }
    return n;
}

static void print_table(const struct doc_node *items, const char **titles, uint32_t n)
{
    struct ctl_table table;
    struct text out;
    ctl_table_init(&table, titles, n);
    for (const struct doc_node *item = items->first; item; item = item->next)
        for (uint32_t c = 0; c < n; c++)
            ctl_table_add(&table, ctl_text(item, titles[c]));
    text_init(&out);
    ctl_table_write(&table, &out);
    fwrite(out.data, 1, out.len, stdout);
    text_fini(&out);
    ctl_table_fini(&table);
}

static void print_items(const struct doc_node *items)
{
    static const char *of_servers[] = {
        "server_id",          "health",           "enabled",    "weight",
        "active_connections", "requests_per_sec", "error_rate", "average_latency_ms",
        "last_health_check"};
    const char *titles[COLUMNS_MAX];
    struct arena arena;
    arena_init(&arena);
    uint32_t n = find_columns(items, titles, &arena);
    if (items->first && doc_get(items->first, "server_id"))
        print_table(items, of_servers, iso_countof(of_servers));
    else if (n)
        print_table(items, titles, n);
    arena_fini(&arena);
}

/* The list of a page: source 001's lists are named by what they hold. */
static const struct doc_node *items_of(const struct doc_node *root)
{
    static const char *const names[] = {"items", "servers"};
    if (root->kind == DOC_LIST)
        return root;
    for (size_t i = 0; i < iso_countof(names); i++) {
        const struct doc_node *items = doc_get(root, names[i]);
        if (items && items->kind == DOC_LIST)
            return items;
    }
    return NULL;
}

/* Appends the items of a page to `all`, a JSON list without its end. */
static void add_items(const struct doc_node *items, struct text *all)
{
    for (const struct doc_node *item = items->first; item; item = item->next) {
        if (all->len > 1)
            text_add(all, SLICE(","));
        json_write(item, NULL, all);
    }
}

/* Every page, as one JSON list. */
static int collect(const struct ctl *ctl, const struct text *path, struct text *all)
{
    struct text at;
    int status = CTL_OK;
    bool more = true;
    text_init(&at);
    text_add(&at, text_slice(path));
    text_add(all, SLICE("["));
    while (more && !status) {
        struct ctl_answer page;
        status = ctl_ask(ctl, "GET", at.data, &page);
        const struct doc_node *items = !status && page.doc.root ? items_of(page.doc.root) : NULL;
        struct slice cursor = items ? ctl_text(page.doc.root, "next_cursor") : SLICE("-");
        more = !slice_eq(cursor, SLICE("-"));
        if (items)
            add_items(items, all);
        else if (!status)
            status = ctl_usage("%s is no list", path->data);
        at.len = 0;
        text_printf(&at, "%s%ccursor=%.*s", path->data, strchr(path->data, '?') ? '&' : '?',
                    SLICE_ARG(cursor));
        ctl_answer_fini(&page);
    }
    text_add(all, SLICE("]"));
    text_fini(&at);
    return status;
}

/* "servers" is the pool of --group; "KEY=VALUE" behind the path filters. */
static void build_list_path(struct ctl *ctl, struct text *path)
{
    int n = 1;
    while (n < ctl->argc && !strchr(ctl->argv[n], '='))
        n++;
    struct ctl named = *ctl;
    named.argc = n;
    if (strcmp(ctl->argv[0], "servers") == 0)
        text_printf(path, "/api/servers");
    else
        build_path(&named, path);
    char joint = strchr(path->data, '?') ? '&' : '?';
    if (ctl->group) {
        text_printf(path, "%ctarget_group=", joint);
        client_add_segment(path, slice_str(ctl->group));
        joint = '&';
    }
    for (; n < ctl->argc; n++) {
        struct slice value = slice_str(ctl->argv[n]), name = {0};
        slice_next(&value, '=', &name);
        text_printf(path, "%c%.*s=", joint, SLICE_ARG(name));
        client_add_segment(path, value);
        joint = '&';
    }
}

int ctl_list(struct ctl *ctl)
{
    struct text path, all;
    struct iso_diag diag;
    struct doc doc;
    if (ctl->argc < 1)
        return ctl_usage(
            "say what to list: target-groups, target-groups/web/targets, load-balancers, servers ...");
    text_init(&path);
    text_init(&all);
    diag_init(&diag);
    doc_init(&doc, "", &diag);
    build_list_path(ctl, &path);
    int status = collect(ctl, &path, &all);
    if (!status && ctl->json)
        printf("%s\n", all.data);
    else if (!status && json_read(text_slice(&all), &doc) == ISO_OK)
        print_items(doc.root);
    doc_fini(&doc);
    diag_fini(&diag);
    text_fini(&all);
    text_fini(&path);
    return status;
}
