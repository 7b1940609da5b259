/* SPDX-License-Identifier: Apache-2.0 */
#include "route/sni.h"

#include <stdlib.h>

enum { NAME_MAX_BYTES = 255 };

/* One name of one rule. Entries are sorted by name, those of one name by precedence; a wildcard's name begins
 * with its dot, and rules for any name have the empty one. */
struct sni_entry {
    struct slice name;
    const struct config_rule *rule; /* borrows from the config */
    uint32_t n_conditions;          /* beside the name */
    uint32_t order;                 /* in the file */
};

struct sni_table {
    struct sni_entry *entries;
    uint32_t n;
};

static int compare_entries(const void *left, const void *right)
{
    const struct sni_entry *a = left, *b = right;
    int order = slice_compare(a->name, b->name);
    if (order)
        return order;
    if (a->n_conditions != b->n_conditions)
        return a->n_conditions > b->n_conditions ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

const struct sni_table *sni_compile(const struct config_listener *listener, struct arena *arena)
{
    struct sni_table *table = arena_new(arena, struct sni_table);
    uint32_t most = 0;
    for (uint32_t i = 0; i < listener->n_rules; i++)
        most += listener->rules[i].match.n_sni + 1;
    table->entries = arena_array(arena, struct sni_entry, most + 1);
    for (uint32_t i = 0; i < listener->n_rules; i++) {
        const struct config_match *match = &listener->rules[i].match;
        struct sni_entry entry = {.rule = &listener->rules[i],
                                  .name = SLICE(""),
                                  .n_conditions = (match->n_alpn > 0) + (match->n_sources > 0),
                                  .order = i};
        if (match->n_sni == 0)
            table->entries[table->n++] = entry;
        for (uint32_t s = 0; s < match->n_sni; s++) {
            struct slice name = match->sni[s];
            entry.name = name.ptr[0] == '*' ? slice_of(name.ptr + 1, name.len - 1) : name;
            table->entries[table->n++] = entry;
        }
    }
    qsort(table->entries, table->n, sizeof(*table->entries), compare_entries);
    return table;
}

static bool has_alpn(const struct config_match *match, struct slice offered)
{
    struct slice name;
    while (client_hello_next_alpn(&offered, &name))
        for (uint32_t i = 0; i < match->n_alpn; i++)
            if (slice_eq(match->alpn[i], name))
                return true;
    return match->n_alpn == 0;
}

static bool has_source(const struct config_match *match, const struct ip_addr *client)
{
    for (uint32_t i = 0; i < match->n_sources; i++)
        if (ip_prefix_has(&match->sources[i], client))
            return true;
    return match->n_sources == 0;
}

/* The first entry of a name, or where it would stand. */
static uint32_t first_of(const struct sni_table *table, struct slice name)
{
    uint32_t low = 0, high = table->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (slice_compare(table->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct config_rule *match_name(const struct sni_table *table, struct slice name,
                                            const struct client_hello *hello, const struct ip_addr *client)
{
    for (uint32_t i = first_of(table, name); i < table->n && slice_eq(table->entries[i].name, name); i++) {
        const struct config_match *match = &table->entries[i].rule->match;
        if (has_alpn(match, hello->alpn) && has_source(match, client))
            return table->entries[i].rule;
    }
    return NULL;
}

const struct config_rule *sni_match(const struct sni_table *table, const struct client_hello *hello,
                                    const struct ip_addr *client)
{
    char lower[NAME_MAX_BYTES];
    struct slice name = hello->server_name;
    const struct config_rule *found = NULL;
    if (name.len && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len <= sizeof(lower)) {
        for (size_t i = 0; i < name.len; i++)
            lower[i] = ascii_lower(name.ptr[i]);
        name.ptr = lower;
        /* A name that begins with a dot would pass for a wildcard's. */
        for (size_t at = 0; at < name.len && !found; at++)
            if (at == 0 ? name.ptr[0] != '.' : name.ptr[at] == '.')
                found = match_name(table, slice_of(name.ptr + at, name.len - at), hello, client);
    }
    return found ? found : match_name(table, SLICE(""), hello, client);
}
