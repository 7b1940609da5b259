/* SPDX-License-Identifier: Apache-2.0 */
#include "config/secret.h"

#include "config/types.h"
#include "core/hash.h"
#include "doc/json_write.h"

#include <strings.h>

enum { DIGEST_SECRET_MASK = 0xfff };

/* ---- what is shown ---- */

void secret_whole(struct slice name, struct slice value, struct text *out)
{
    text_add(out, value.len ? SLICE(SECRET_MARK) : value);
}

/* Where the password of "scheme://user:password@host" begins and ends; false: it has none. */
static bool find_password(struct slice url, size_t *from, size_t *to)
{
    const char *begin = url.len ? memmem(url.ptr, url.len, "://", 3) : NULL;
    if (!begin)
        return false;
    size_t start = (size_t)(begin - url.ptr) + 3;
    struct slice rest = slice_of(url.ptr + start, url.len - start);
    size_t at = slice_find(rest, '/') < slice_find(rest, '?') ? slice_find(rest, '/') : slice_find(rest, '?');
    while (at > 0 && rest.ptr[at - 1] != '@')
        at--;
    size_t colon = slice_find(slice_of(rest.ptr, at ? at - 1 : 0), ':');
    if (at == 0 || colon + 1 >= at - 1)
        return false;
    *from = start + colon + 1;
    *to = start + at - 1;
    return true;
}

/* "password=..." and "sslpassword=..." among the parameters of a URL, as libpq takes them. */
static void add_parameters(struct slice query, struct text *out)
{
    struct slice part;
    const char *joint = "";
    while (query.len && slice_next(&query, '&', &part)) {
        size_t equals = slice_find(part, '=');
        text_printf(out, "%s", joint);
        joint = "&";
        if (equals < part.len && slice_ends(slice_of(part.ptr, equals), SLICE("password")))
            text_printf(out, "%.*s=%s", (int)equals, part.ptr, SECRET_MARK);
        else
            text_add(out, part);
    }
}

void secret_in_url(struct slice name, struct slice value, struct text *out)
{
    size_t from, to = 0;
    if (find_password(value, &from, &to)) {
        text_add(out, slice_of(value.ptr, from));
        text_add(out, SLICE(SECRET_MARK));
    }
    size_t query = slice_find(value, '?');
    if (query < to || query == value.len) {
        text_add(out, slice_of(value.ptr + to, value.len - to));
        return;
    }
    text_add(out, slice_of(value.ptr + to, query + 1 - to));
    add_parameters(slice_of(value.ptr + query + 1, value.len - query - 1), out);
}

void secret_in_pem(struct slice name, struct slice value, struct text *out)
{
    static const char begin[] = "PRIVATE KEY-----", end[] = "-----END";
    while (value.len) {
        const char *label = memmem(value.ptr, value.len, begin, sizeof(begin) - 1);
        const char *body = label ? label + sizeof(begin) - 1 : value.ptr + value.len;
        text_add(out, slice_of(value.ptr, (size_t)(body - value.ptr)));
        value = slice_of(body, value.len - (size_t)(body - value.ptr));
        if (!label)
            return;
        const char *stop = value.len ? memmem(value.ptr, value.len, end, sizeof(end) - 1) : NULL;
        text_printf(out, "\n%s\n", SECRET_MARK);
        if (!stop)
            return;
        /* Behind the end of the key another may begin. */
        const char *past = memmem(stop + sizeof(end) - 1,
                                  value.len - (size_t)(stop + sizeof(end) - 1 - value.ptr), "-----", 5);
        past = past ? past + 5 : value.ptr + value.len;
        text_add(out, slice_of(stop, (size_t)(past - stop)));
        value = slice_of(past, value.len - (size_t)(past - value.ptr));
    }
}

static bool contains(struct slice text, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++)
        if (strncasecmp(text.ptr + i, word, len) == 0)
            return true;
    return false;
}

void secret_by_name(struct slice name, struct slice value, struct text *out)
{
    static const char *const words[] = {"auth",  "cookie", "credential", "passw",   "secret", "session",
                                        "token", "verify", "api-key",    "api_key", "apikey", "signature"};
    bool is_secret = false;
    for (size_t i = 0; i < iso_countof(words) && !is_secret; i++)
        is_secret = contains(name, words[i]);
    if (is_secret && !slice_eq(value, SLICE("*")))
        secret_whole(name, value, out);
    else
        text_add(out, value);
}

void secret_show(const struct schema_key *key, struct slice name, struct slice value, struct text *out)
{
    if (key->secret)
        key->secret(name, value, out);
    else
        text_add(out, value);
}

static bool is_scalar(const struct doc_node *node)
{
    return node->kind != DOC_LIST && node->kind != DOC_MAP && node->kind != DOC_NULL;
}

bool secret_is_hidden(const struct schema_key *key, struct slice name, const struct doc_node *value)
{
    if (!key->secret || !is_scalar(value) || !contains(value->text, SECRET_MARK))
        return false;
    struct text shown;
    text_init(&shown);
    key->secret(name, value->text, &shown);
    bool is_hidden = slice_eq(text_slice(&shown), value->text);
    text_fini(&shown);
    return is_hidden;
}

bool secret_has(const struct schema_section *section)
{
    for (const struct schema_key *key = section->keys; key->name; key++)
        if (key->secret || (key->section && secret_has(key->section)))
            return true;
    return false;
}

/* ---- documents ---- */

static bool is_hidden_value(const struct schema_key *key, const struct doc_node *value)
{
    if (value->kind != DOC_MAP)
        return secret_is_hidden(key, slice_str(key->name), value);
    for (const struct doc_node *child = value->first; child; child = child->next)
        if (secret_is_hidden(key, child->key, child))
            return true;
    return false;
}

bool secret_any_hidden(const struct schema_section *section, const struct doc_node *node)
{
    if (node->kind == DOC_LIST) {
        for (const struct doc_node *item = node->first; item; item = item->next)
            if (secret_any_hidden(section, item))
                return true;
        return false;
    }
    for (const struct schema_key *key = section->keys; key->name; key++) {
        const struct doc_node *value =
            key->secret || (key->section && secret_has(key->section)) ? doc_get(node, key->name) : NULL;
        if (value && (key->secret ? is_hidden_value(key, value) : secret_any_hidden(key->section, value)))
            return true;
    }
    return false;
}

static void write_scalar(const struct schema_key *key, struct slice name, const struct doc_node *node,
                         struct text *out)
{
    struct text shown;
    text_init(&shown);
    key->secret(name, node->text, &shown);
    if (slice_eq(text_slice(&shown), node->text))
        json_write(node, NULL, out);
    else
        text_json(out, text_slice(&shown));
    text_fini(&shown);
}

/* A value of a secret key: a scalar or a map of texts. */
static void write_secret(const struct schema_key *key, const struct doc_node *node, struct text *out)
{
    if (is_scalar(node)) {
        write_scalar(key, slice_str(key->name), node, out);
        return;
    }
    if (node->kind != DOC_MAP) {
        json_write(node, NULL, out);
        return;
    }
    text_add(out, SLICE("{"));
    for (const struct doc_node *child = node->first; child; child = child->next) {
        text_add(out, child == node->first ? SLICE("") : SLICE(","));
        text_json(out, child->key);
        text_add(out, SLICE(":"));
        if (is_scalar(child))
            write_scalar(key, child->key, child, out);
        else
            json_write(child, NULL, out);
    }
    text_add(out, SLICE("}"));
}

static void write_map(const struct schema_section *section, const struct doc_node *map, struct text *out)
{
    text_add(out, SLICE("{"));
    for (const struct doc_node *child = map->first; child; child = child->next) {
        const struct schema_key *key = schema_find(section, child->key);
        text_add(out, child == map->first ? SLICE("") : SLICE(","));
        text_json(out, child->key);
        text_add(out, SLICE(":"));
        if (key && key->secret)
            write_secret(key, child, out);
        else if (key && key->section)
            secret_write(key->section, child, out);
        else
            json_write(child, NULL, out);
    }
    text_add(out, SLICE("}"));
}

void secret_write(const struct schema_section *section, const struct doc_node *node, struct text *out)
{
    if ((node->kind != DOC_LIST && node->kind != DOC_MAP) || !secret_has(section)) {
        json_write(node, NULL, out);
        return;
    }
    if (node->kind == DOC_MAP) {
        write_map(section, node, out);
        return;
    }
    text_add(out, SLICE("["));
    for (const struct doc_node *item = node->first; item; item = item->next) {
        text_add(out, item == node->first ? SLICE("") : SLICE(","));
        if (item->kind == DOC_MAP)
            write_map(section, item, out);
        else
            json_write(item, NULL, out);
    }
    text_add(out, SLICE("]"));
}

uint64_t secret_digest(const struct schema_section *section, const struct doc_node *node)
{
    struct text all, shown;
    text_init(&all);
    text_init(&shown);
    json_write(node, NULL, &all);
    uint64_t digest = iso_hash64(text_slice(&all), 0);
    if (secret_has(section)) {
        secret_write(section, node, &shown);
        if (!slice_eq(text_slice(&all), text_slice(&shown)))
            digest = iso_hash64(text_slice(&shown), 0) ^ (digest & DIGEST_SECRET_MASK);
    }
    text_fini(&shown);
    text_fini(&all);
    return digest;
}
