/* SPDX-License-Identifier: Apache-2.0 */
#include "config/same.h"

#include "config/part.h"
#include "config/schema_table.h"

static bool prints_alike(const struct schema_key *key, const void *a, const void *b)
{
    struct text x, y;
    text_init(&x);
    text_init(&y);
    key->type->print(key, a, SCHEMA_PLAIN, &x);
    key->type->print(key, b, SCHEMA_PLAIN, &y);
    bool is_same = slice_eq(text_slice(&x), text_slice(&y));
    text_fini(&x);
    text_fini(&y);
    return is_same;
}

static uint32_t count_of(const struct schema_key *key, const void *holder)
{
    return *(const uint32_t *)((const char *)holder + key->count_offset);
}

static const char *items_of(const struct schema_key *key, const void *holder)
{
    return *(char *const *)((const char *)holder + key->offset);
}

static bool same_items(const struct schema_key *key, const void *a, const void *b)
{
    uint32_t n = count_of(key, a);
    if (n != count_of(key, b))
        return false;
    const char *x = items_of(key, a), *y = items_of(key, b);
    for (uint32_t i = 0; i < n; i++)
        if (!config_same(key->section, x + (size_t)key->section->bytes * i,
                         y + (size_t)key->section->bytes * i))
            return false;
    return true;
}

static bool same_switches(const struct schema_key *key, const void *a, const void *b)
{
    for (const struct schema_choice *choice = key->choices; choice->name; choice++)
        if (*(const bool *)((const char *)a + choice->value) !=
            *(const bool *)((const char *)b + choice->value))
            return false;
    return true;
}

static bool same_statuses(const struct schema_key *key, const void *a, const void *b)
{
    uint32_t n = count_of(key, a);
    return n == count_of(key, b) && (n == 0 || memcmp(items_of(key, a), items_of(key, b),
                                                      n * sizeof(struct config_status_range)) == 0);
}

static bool is_present(const struct schema_key *key, const void *holder)
{
    return key->present_offset == SCHEMA_NO_OFFSET ||
           *(const bool *)((const char *)holder + key->present_offset);
}

static bool same_value(const struct schema_key *key, const void *a, const void *b)
{
    const struct schema_type *type = key->type;
    const char *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;
    if (type == &type_number || type == &type_seconds || type == &type_choice)
        return memcmp(x, y, key->size) == 0;
    if (type == &type_flag)
        return *(const bool *)x == *(const bool *)y;
    if (type == &type_text) {
        const struct slice *s = (const struct slice *)x, *t = (const struct slice *)y;
        return (s->ptr == NULL) == (t->ptr == NULL) && slice_eq(*s, *t);
    }
    if (type == &type_address) {
        const struct ip_addr *s = (const struct ip_addr *)x, *t = (const struct ip_addr *)y;
        return s->family == t->family && (s->family == 0 || ip_eq(s, t));
    }
    if (schema_is_section(key))
        return is_present(key, a) == is_present(key, b) && config_same(key->section, x, y);
    if (schema_is_list(key))
        return same_items(key, a, b);
    if (type == &type_switches)
        return same_switches(key, a, b);
    if (type == &type_statuses)
        return same_statuses(key, a, b);
    bool is_counted = type == &type_texts || type == &type_prefixes || type == &type_pairs;
    if (is_counted && count_of(key, a) == 0 && count_of(key, b) == 0)
        return true;
    return prints_alike(key, a, b);
}

static bool same_but(const struct schema_section *section, const void *a, const void *b, const char *but)
{
    if (config_part_is_same(section, a, b))
        return true;
    for (const struct schema_key *key = section->keys; key->name; key++)
        if (!(but && strcmp(key->name, but) == 0) && !same_value(key, a, b))
            return false;
    return true;
}

bool config_same(const struct schema_section *section, const void *a, const void *b)
{
    return same_but(section, a, b, NULL);
}

bool config_same_group(const struct config_target_group *a, const struct config_target_group *b)
{
    return same_but(&schema_target_group, a, b, "targets");
}

bool config_same_group_tls(const struct config_target_group *a, const struct config_target_group *b)
{
    return config_part_is_same(&schema_target_group, a, b) ||
           config_same(&schema_group_tls, &a->tls, &b->tls);
}

bool config_same_admin(const struct config_admin *a, const struct config_admin *b)
{
    return config_same(schema_find(&schema_config, SLICE("admin"))->section, a, b);
}

bool config_same_certificates(const struct config *a, const struct config *b)
{
    if (a->n_certificates != b->n_certificates)
        return false;
    for (uint32_t i = 0; i < a->n_certificates; i++)
        if (!config_same(&schema_certificate, &a->certificates[i], &b->certificates[i]))
            return false;
    return true;
}

bool config_same_listener_tls(const struct config_listener *a, const struct config_listener *b)
{
    if (a->n_certificates != b->n_certificates || !config_same(&schema_listener_tls, &a->tls, &b->tls))
        return false;
    for (uint32_t i = 0; i < a->n_certificates; i++)
        if (!slice_eq(a->certificate_names[i], b->certificate_names[i]))
            return false;
    return true;
}
