/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tables.h"

#include "config/names.h"
#include "config/part.h"
#include "config/schema_table.h"
#include "core/ip.h"
#include "store/call.h"

enum column_from {
    FROM_ROW, /* the next value of the row */
    FROM_NOW, /* when the row was first written */
    FROM_VERSION,
};

struct column {
    const char *name;
    bool is_number;
    enum column_from from;
    const char *on_update; /* NULL: the new value */
};

struct table {
    const char *name;
    struct column columns[12]; /* the id comes first; ends with name NULL */
};

/* What health says of a backend stays when its weight changes. */
#define STATE_ON_UPDATE                                                                                      \
    "CASE WHEN excluded.state = 'DRAINING' OR backends.state = 'DRAINING' THEN excluded.state ELSE "         \
    "backends.state END"

static const struct table tables[TABLE_COUNT] = {
    [TABLE_POLICIES] = {"health_check_policy",
                        {{"policy_id"},
                         {"check_type"},
                         {"interval_ms", true},
                         {"timeout_ms", true},
                         {"failure_threshold", true},
                         {"success_threshold", true},
                         {"version", true, FROM_VERSION},
                         {NULL}}},
    [TABLE_POOLS] = {"pools",
                     {{"pool_id"},
                      {"name"},
                      {"protocol"},
                      {"algorithm"},
                      {"health_check_policy_id"},
                      {"created_at", true, FROM_NOW},
                      {"version", true, FROM_VERSION},
                      {NULL}}},
    [TABLE_BACKENDS] = {"backends",
                        {{"backend_id"},
                         {"pool_id"},
                         {"host"},
                         {"port", true},
                         {"weight", true},
                         {"state", false, FROM_ROW, STATE_ON_UPDATE},
                         {"registered_at", true, FROM_NOW},
                         {"version", true, FROM_VERSION},
                         {NULL}}},
    [TABLE_LOAD_BALANCERS] = {"load_balancers",
                              {{"load_balancer_id"},
                               {"vip"},
                               {"created_at", true, FROM_NOW},
                               {"version", true, FROM_VERSION},
                               {NULL}}},
    [TABLE_LISTENERS] = {"listeners",
                         {{"listener_id"},
                          {"load_balancer_id"},
                          {"endpoint"},
                          {"port", true},
                          {"protocol"},
                          {"default_pool_id"},
                          {"version", true, FROM_VERSION},
                          {NULL}}},
};

/* ---- SQL ---- */

static void add_value(struct text *sql, const struct column *column, unsigned *index)
{
    if (column->from == FROM_NOW)
        text_printf(sql, "CAST($2 AS BIGINT)");
    else if (column->from == FROM_VERSION)
        text_printf(sql, "CAST($3 AS BIGINT)");
    else if (column->is_number)
        text_printf(sql, "CAST(e.value->>%u AS BIGINT)", (*index)++);
    else
        text_printf(sql, "e.value->>%u", (*index)++);
}

static void add_update(struct text *sql, const struct column *column)
{
    if (column->from == FROM_NOW)
        return;
    text_printf(sql, "%s%s = ", sql->data[sql->len - 1] == ' ' ? "" : ", ", column->name);
    if (column->on_update)
        text_printf(sql, "%s", column->on_update);
    else
        text_printf(sql, "excluded.%s", column->name);
}

static const char *keep(struct text *sql, struct arena *arena)
{
    const char *kept = arena_slice(arena, text_slice(sql)).ptr;
    text_fini(sql);
    return kept;
}

const char *tables_put_sql(enum table_id id, const struct dialect *dialect, struct arena *arena)
{
    const struct table *table = &tables[id];
    struct text sql;
    unsigned index = 0;
    text_init(&sql);
    text_printf(&sql, "INSERT INTO %s (", table->name);
    for (const struct column *column = table->columns; column->name; column++)
        text_printf(&sql, "%s%s", column == table->columns ? "" : ", ", column->name);
    text_printf(&sql, ") SELECT ");
    for (const struct column *column = table->columns; column->name; column++) {
        text_printf(&sql, "%s", column == table->columns ? "" : ", ");
        add_value(&sql, column, &index);
    }
    /* $2 is named for the tables that have no use for it, or its type would be unknown. */
    text_printf(&sql, " FROM %s WHERE CAST($2 AS BIGINT) > 0 ON CONFLICT (%s) DO UPDATE SET ", dialect->each,
                table->columns[0].name);
    for (const struct column *column = table->columns + 1; column->name; column++)
        add_update(&sql, column);
    return keep(&sql, arena);
}

const char *tables_gone_sql(enum table_id id, const struct dialect *dialect, struct arena *arena)
{
    return arena_printf(arena, "DELETE FROM %s WHERE %s IN (SELECT e.value->>0 FROM %s)", tables[id].name,
                        tables[id].columns[0].name, dialect->each);
}

const char *tables_clear_sql(enum table_id id, struct arena *arena)
{
    return arena_printf(arena, "DELETE FROM %s WHERE version <> CAST($1 AS BIGINT)", tables[id].name);
}

const char *tables_states_sql(const struct dialect *dialect, struct arena *arena)
{
    return arena_printf(arena,
                        "UPDATE backends SET state = e.value->>1,"
                        " last_health_check_at = CAST(e.value->>2 AS BIGINT),"
                        " consecutive_failures = CAST(e.value->>3 AS BIGINT),"
                        " consecutive_successes = CAST(e.value->>4 AS BIGINT)"
                        " FROM %s WHERE backend_id = e.value->>0 AND state <> e.value->>1",
                        dialect->each);
}

void tables_add_state(struct text *rows, struct slice pool, struct slice endpoint, const char *state,
                      uint64_t checked_wall_ms, uint32_t failures_in_row, uint32_t passes_in_row)
{
    struct text id;
    text_init(&id);
    text_printf(&id, "%.*s/%.*s", SLICE_ARG(pool), SLICE_ARG(endpoint));
    text_printf(rows, "%s[", rows->len ? "," : "[");
    text_json(rows, text_slice(&id));
    text_printf(rows, ",\"%s\",", state);
    if (checked_wall_ms)
        text_printf(rows, "%llu", (unsigned long long)checked_wall_ms);
    else
        text_printf(rows, "null");
    text_printf(rows, ",%u,%u]", failures_in_row, passes_in_row);
    text_fini(&id);
}

/* ---- rows ---- */

static struct text *begin_row(struct tables_change *change, enum table_id id, struct slice key)
{
    struct text *rows = &change->puts[id];
    text_printf(rows, "%s[", rows->len ? "," : "[");
    text_json(rows, key);
    return rows;
}

static void add_text(struct text *row, struct slice value)
{
    text_printf(row, ",");
    if (value.ptr)
        text_json(row, value);
    else
        text_printf(row, "null");
}

/* A value as the file would have it: the word of an enum. */
static void add_word(struct text *row, const struct schema_section *section, const char *key,
                     const void *holder)
{
    const struct schema_key *found = schema_find(section, slice_str(key));
    struct text word;
    iso_assert(found != NULL);
    text_init(&word);
    found->type->print(found, holder, SCHEMA_PLAIN, &word);
    struct slice shown = text_slice(&word);
    if (shown.len > 1 && shown.ptr[0] == '"')
        shown = slice_of(shown.ptr + 1, shown.len - 2);
    add_text(row, shown);
    text_fini(&word);
}

static void add_gone(struct tables_change *change, enum table_id id, struct slice key)
{
    struct text *gone = &change->gone[id];
    text_printf(gone, "%s[", gone->len ? "," : "[");
    text_json(gone, key);
    text_printf(gone, "]");
}

static void put_policy(struct tables_change *change, const struct config_target_group *group)
{
    const struct config_health_check *check = &group->health_check;
    const struct schema_section *section = schema_find(&schema_target_group, SLICE("health_check"))->section;
    struct text *row = begin_row(change, TABLE_POLICIES, group->name);
    add_word(row, section, "type", check);
    text_printf(row, ",%u,%u,%u,%u]", check->interval_ms, check->timeout_ms, check->unhealthy_threshold,
                check->healthy_threshold);
}

static bool same_policy(const struct config_health_check *a, const struct config_health_check *b)
{
    return a->type == b->type && a->interval_ms == b->interval_ms && a->timeout_ms == b->timeout_ms &&
           a->unhealthy_threshold == b->unhealthy_threshold && a->healthy_threshold == b->healthy_threshold;
}

static void put_pool(struct tables_change *change, const struct config_target_group *group)
{
    struct text *row = begin_row(change, TABLE_POOLS, group->name);
    add_text(row, group->name);
    add_word(row, &schema_target_group, "protocol", group);
    add_word(row, &schema_target_group, "algorithm", group);
    add_text(row, group->name);
    text_printf(row, "]");
}

static const char *backend_id(const struct config_target_group *group, const struct config_target *target,
                              struct arena *arena)
{
    return arena_printf(arena, "%.*s/%.*s", SLICE_ARG(group->name), SLICE_ARG(target->endpoint.text));
}

/* The endpoint's text without its port: an address, a name or "unix:/run/x.sock". */
static struct slice host_of(const struct config_endpoint *endpoint)
{
    struct slice text = endpoint->text;
    if (endpoint->unix_path.ptr)
        return text;
    size_t end = text.len;
    while (end > 0 && text.ptr[end - 1] != ':')
        end--;
    if (end == 0)
        return text;
    text.len = end - 1;
    if (text.len > 1 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']')
        text = slice_of(text.ptr + 1, text.len - 2);
    return text;
}

static void put_backend(struct tables_change *change, const struct config_target_group *group,
                        const struct config_target *target, struct arena *arena)
{
    struct text *row = begin_row(change, TABLE_BACKENDS, slice_str(backend_id(group, target, arena)));
    add_text(row, group->name);
    add_text(row, host_of(&target->endpoint));
    text_printf(row, ",%u,%u,\"%s\"]", target->endpoint.port, target->weight,
                target->enabled ? "PENDING" : "DRAINING");
}

static bool same_backend(const struct config_target *a, const struct config_target *b)
{
    return a->weight == b->weight && a->enabled == b->enabled && slice_eq(a->endpoint.text, b->endpoint.text);
}

static bool same_backends(const struct config_target_group *a, const struct config_target_group *b)
{
    if (a->n_targets != b->n_targets)
        return false;
    for (uint32_t i = 0; i < a->n_targets; i++)
        if (!same_backend(&a->targets[i], &b->targets[i]))
            return false;
    return true;
}

static void collect_targets(struct names *names, const struct config_target_group *group)
{
    names_init(names);
    for (uint32_t i = 0; group && i < group->n_targets; i++)
        names_add(names, group->targets[i].endpoint.text, i, NULL);
    names_sort(names);
}

/* Either may be NULL. */
static void diff_backends(struct tables_change *change, const struct config_target_group *from,
                          const struct config_target_group *to)
{
    struct names before, after;
    struct arena arena;
    if (from && to && same_backends(from, to))
        return;
    arena_init(&arena);
    collect_targets(&before, from);
    collect_targets(&after, to);
    for (uint32_t i = 0; to && i < to->n_targets; i++) {
        const struct name *old = names_find(&before, to->targets[i].endpoint.text);
        if (!old || !same_backend(&from->targets[old->index], &to->targets[i]))
            put_backend(change, to, &to->targets[i], &arena);
    }
    for (uint32_t i = 0; from && i < from->n_targets; i++)
        if (!names_find(&after, from->targets[i].endpoint.text))
            add_gone(change, TABLE_BACKENDS, slice_str(backend_id(from, &from->targets[i], &arena)));
    names_fini(&before);
    names_fini(&after);
    arena_fini(&arena);
}

static void diff_group(struct tables_change *change, const struct config_target_group *from,
                       const struct config_target_group *to)
{
    if (from && config_part_is_same(&schema_target_group, from, to))
        return;
    if (!from || !same_policy(&from->health_check, &to->health_check))
        put_policy(change, to);
    if (!from || from->protocol != to->protocol || from->algorithm != to->algorithm)
        put_pool(change, to);
    diff_backends(change, from, to);
}

static void collect_groups(struct names *names, const struct config *config)
{
    names_init(names);
    for (uint32_t i = 0; config && i < config->n_target_groups; i++)
        names_add(names, config->target_groups[i].name, i, NULL);
    names_sort(names);
}

/* The same groups in the same order. */
static bool has_same_groups(const struct config *from, const struct config *to)
{
    if (!from || from->n_target_groups != to->n_target_groups)
        return false;
    for (uint32_t i = 0; i < to->n_target_groups; i++)
        if (!slice_eq(from->target_groups[i].name, to->target_groups[i].name))
            return false;
    return true;
}

static void diff_groups(struct tables_change *change, const struct config *from, const struct config *to)
{
    if (has_same_groups(from, to)) {
        for (uint32_t i = 0; i < to->n_target_groups; i++)
            diff_group(change, &from->target_groups[i], &to->target_groups[i]);
        return;
    }
    struct names before, after;
    collect_groups(&before, from);
    collect_groups(&after, to);
    for (uint32_t i = 0; i < to->n_target_groups; i++) {
        const struct config_target_group *group = &to->target_groups[i];
        const struct name *old = names_find(&before, group->name);
        diff_group(change, old ? &from->target_groups[old->index] : NULL, group);
    }
    for (uint32_t i = 0; from && i < from->n_target_groups; i++) {
        const struct config_target_group *group = &from->target_groups[i];
        if (names_find(&after, group->name))
            continue;
        diff_backends(change, group, NULL);
        add_gone(change, TABLE_POOLS, group->name);
        add_gone(change, TABLE_POLICIES, group->name);
    }
    names_fini(&before);
    names_fini(&after);
}

static void put_load_balancer(struct tables_change *change, const struct config_load_balancer *balancer)
{
    char vip[IP_TEXT_MAX];
    struct slice shown = {0};
    if (balancer->vip.family)
        shown = slice_of(vip, ip_print(&balancer->vip, vip));
    struct text *row = begin_row(change, TABLE_LOAD_BALANCERS, balancer->name);
    add_text(row, shown);
    text_printf(row, "]");
}

static void put_listener(struct tables_change *change, const struct config_load_balancer *balancer,
                         const struct config_listener *listener)
{
    const struct schema_section *section = schema_find(&schema_load_balancer, SLICE("listeners"))->section;
    struct text *row = begin_row(change, TABLE_LISTENERS, listener->name);
    add_text(row, balancer->name);
    add_text(row, listener->endpoint.text);
    text_printf(row, ",%u", listener->endpoint.port);
    add_word(row, section, "protocol", listener);
    add_text(row, listener->default_target_group_name);
    text_printf(row, "]");
}

/* There are few of them: all are written, and those gone are found by name. */
static void diff_balancers(struct tables_change *change, const struct config *from, const struct config *to)
{
    struct names balancers, listeners;
    names_init(&balancers);
    names_init(&listeners);
    for (uint32_t i = 0; i < to->n_load_balancers; i++) {
        const struct config_load_balancer *balancer = &to->load_balancers[i];
        put_load_balancer(change, balancer);
        names_add(&balancers, balancer->name, i, NULL);
        for (uint32_t k = 0; k < balancer->n_listeners; k++) {
            put_listener(change, balancer, &balancer->listeners[k]);
            names_add(&listeners, balancer->listeners[k].name, k, NULL);
        }
    }
    names_sort(&balancers);
    names_sort(&listeners);
    for (uint32_t i = 0; from && i < from->n_load_balancers; i++) {
        const struct config_load_balancer *balancer = &from->load_balancers[i];
        for (uint32_t k = 0; k < balancer->n_listeners; k++)
            if (!names_find(&listeners, balancer->listeners[k].name))
                add_gone(change, TABLE_LISTENERS, balancer->listeners[k].name);
        if (!names_find(&balancers, balancer->name))
            add_gone(change, TABLE_LOAD_BALANCERS, balancer->name);
    }
    names_fini(&balancers);
    names_fini(&listeners);
}

void tables_diff(const struct config *from, const struct config *to, struct tables_change *change)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        text_init(&change->puts[i]);
        text_init(&change->gone[i]);
    }
    diff_groups(change, from, to);
    diff_balancers(change, from, to);
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        if (change->puts[i].len)
            text_printf(&change->puts[i], "]");
        if (change->gone[i].len)
            text_printf(&change->gone[i], "]");
    }
}

void tables_change_fini(struct tables_change *change)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        text_fini(&change->puts[i]);
        text_fini(&change->gone[i]);
    }
}
