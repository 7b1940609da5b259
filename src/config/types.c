/* SPDX-License-Identifier: Apache-2.0 */
/* Single values: numbers, texts, choices, addresses. */
#include "config/types_internal.h"

#include "config/endpoint.h"
#include "config/secret.h"
#include "config/suggest.h"

static void store_number(void *field, uint32_t size, uint64_t value)
{
    switch (size) {
    case 2:
        *(uint16_t *)field = (uint16_t)value;
        return;
    case 4:
        *(uint32_t *)field = (uint32_t)value;
        return;
    default:
        iso_assert(size == 8);
        *(uint64_t *)field = value;
    }
}

static uint64_t load_number(const void *field, uint32_t size)
{
    return size == 2   ? *(const uint16_t *)field
           : size == 4 ? *(const uint32_t *)field
                       : *(const uint64_t *)field;
}

static void decode_number(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                          void *holder)
{
    if (node->kind != DOC_INTEGER || node->value.integer < 0 || (uint64_t)node->value.integer < key->min ||
        (uint64_t)node->value.integer > key->max) {
        decode_mismatch(decoder, key, node);
        return;
    }
    store_number((char *)holder + key->offset, key->size, (uint64_t)node->value.integer);
}

static void print_number(const struct schema_key *key, const void *holder, enum schema_view view,
                         struct text *out)
{
    uint64_t value = load_number((const char *)holder + key->offset, key->size);
    if (value && key->secret && view == SCHEMA_HIDDEN)
        text_printf(out, SECRET_MARK);
    else if (value >= key->min) /* less is an unset one */
        text_printf(out, "%llu", (unsigned long long)value);
}

static const char *unit_of(const struct schema_key *key)
{
    struct slice name = slice_str(key->name);
    if (slice_ends(name, SLICE("_ms")))
        return " of milliseconds";
    if (slice_ends(name, SLICE("_bytes")))
        return " of bytes";
    if (slice_ends(name, SLICE("bytes_per_s")))
        return " of bytes per second";
    return "";
}

static void expect_number(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a whole number%s from %llu to %llu", unit_of(key), (unsigned long long)key->min,
                (unsigned long long)key->max);
}

const struct schema_type type_number = {decode_number, print_number, expect_number};

/* Comparing before rounding keeps NaN, infinity and 1e300 out of the conversion. */
static void decode_seconds(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                           void *holder)
{
    double ms = node->kind == DOC_INTEGER ? (double)node->value.integer * 1000
                : node->kind == DOC_REAL  ? node->value.real * 1000
                                          : -1;
    if (!(ms >= (double)key->min && ms <= (double)key->max) || (ms > 0 && ms < 1)) {
        decode_mismatch(decoder, key, node);
        return;
    }
    store_number((char *)holder + key->offset, key->size, (uint64_t)(ms + 0.5));
}

static void print_seconds(const struct schema_key *key, const void *holder, enum schema_view view,
                          struct text *out)
{
    text_printf(out, "%.10g", (double)load_number((const char *)holder + key->offset, key->size) / 1000);
}

static void expect_seconds(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a number of seconds from %.10g to %.10g", (double)key->min / 1000,
                (double)key->max / 1000);
}

const struct schema_type type_seconds = {decode_seconds, print_seconds, expect_seconds};

static void decode_flag(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                        void *holder)
{
    if (node->kind != DOC_BOOL)
        decode_mismatch(decoder, key, node);
    else
        *(bool *)((char *)holder + key->offset) = node->value.boolean;
}

static void print_flag(const struct schema_key *key, const void *holder, enum schema_view view,
                       struct text *out)
{
    text_printf(out, "%s", *(const bool *)((const char *)holder + key->offset) ? "true" : "false");
}

static void expect_flag(const struct schema_key *key, struct text *out)
{
    text_printf(out, "true or false");
}

const struct schema_type type_flag = {decode_flag, print_flag, expect_flag};

/* Numbers and true/false are taken as they were written: in YAML `zone: 1` and `zone: "1"` mean the same to
 * whoever types them. */
bool types_read_text(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                     struct slice *out)
{
    if (node->kind == DOC_NULL || node->kind == DOC_LIST || node->kind == DOC_MAP) {
        decode_mismatch(decoder, key, node);
        return false;
    }
    struct slice text = node->text;
    if (key->check && !key->check(decoder, node, &text))
        return false;
    *out = arena_slice(decoder->arena, text);
    return true;
}

static void decode_text(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                        void *holder)
{
    types_read_text(decoder, key, node, (struct slice *)((char *)holder + key->offset));
}

/* Letters, digits and the signs that mean nothing to YAML inside a word. */
void types_print_word(struct slice word, struct text *out)
{
    bool plain = word.len > 0 && word.ptr[0] != '-' && word.ptr[0] != '.' && word.ptr[0] != '*';
    for (size_t i = 0; i < word.len && plain; i++) {
        char c = ascii_lower(word.ptr[i]);
        plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr("-_./+*=", c);
    }
    if (plain)
        text_add(out, word);
    else
        text_json(out, word);
}

void types_print_value(const struct schema_key *key, struct slice name, struct slice value,
                       enum schema_view view, struct text *out)
{
    struct text shown;
    if (!key->secret || view == SCHEMA_PLAIN) {
        types_print_word(value, out);
        return;
    }
    text_init(&shown);
    secret_show(key, name, value, &shown);
    types_print_word(text_slice(&shown), out);
    text_fini(&shown);
}

static void print_text(const struct schema_key *key, const void *holder, enum schema_view view,
                       struct text *out)
{
    const struct slice *text = (const struct slice *)((const char *)holder + key->offset);
    if (text->ptr)
        types_print_value(key, slice_str(key->name), *text, view, out);
}

static void expect_text(const struct schema_key *key, struct text *out)
{
    text_printf(out, "%s", key->expected ? key->expected : "a text");
}

const struct schema_type type_text = {decode_text, print_text, expect_text};

static void store_choice(void *field, uint32_t size, int32_t value)
{
    if (size == 1)
        *(uint8_t *)field = (uint8_t)value;
    else
        store_number(field, size, (uint64_t)value);
}

static int32_t load_choice(const void *field, uint32_t size)
{
    return size == 1 ? *(const uint8_t *)field : (int32_t)load_number(field, size);
}

void types_expect_choices(const struct schema_choice *choices, struct text *out)
{
    const char *joint = choices[0].name && choices[1].name ? "one of " : "";
    for (const struct schema_choice *choice = choices; choice->name; choice++) {
        text_printf(out, "%s%s", joint, choice->name);
        joint = ", ";
    }
}

const struct schema_choice *types_find_choice(struct decoder *decoder, const struct schema_key *key,
                                              const struct doc_node *node)
{
    struct suggestion near = {0};
    for (const struct schema_choice *choice = key->choices; choice->name; choice++) {
        if ((node->kind == DOC_STRING || node->kind == DOC_INTEGER || node->kind == DOC_REAL) &&
            slice_eq(node->text, slice_str(choice->name)))
            return choice;
    }
    for (const struct schema_choice *choice = key->choices; choice->name; choice++)
        if (node->kind == DOC_STRING)
            suggest_offer(&near, node->text, choice->name);
    if (!near.name) {
        decode_mismatch(decoder, key, node);
        return NULL;
    }
    struct text expected;
    text_init(&expected);
    types_expect_choices(key->choices, &expected);
    doc_fault(decoder->doc, DIAG_ERROR, node, "is %s, did you mean \"%s\"? Expected %.*s",
              doc_describe(node, &decoder->doc->arena), near.name, SLICE_ARG(text_slice(&expected)));
    text_fini(&expected);
    return NULL;
}

static void decode_choice(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                          void *holder)
{
    const struct schema_choice *choice = types_find_choice(decoder, key, node);
    if (choice)
        store_choice((char *)holder + key->offset, key->size, choice->value);
}

static void print_choice(const struct schema_key *key, const void *holder, enum schema_view view,
                         struct text *out)
{
    int32_t value = load_choice((const char *)holder + key->offset, key->size);
    for (const struct schema_choice *choice = key->choices; choice->name; choice++)
        if (choice->value == value)
            text_printf(out, "%s", choice->name);
}

static void expect_choice(const struct schema_key *key, struct text *out)
{
    types_expect_choices(key->choices, out);
}

const struct schema_type type_choice = {decode_choice, print_choice, expect_choice};

static void decode_address(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                           void *holder)
{
    struct config_endpoint endpoint;
    const char *why;
    if (node->kind == DOC_STRING && ip_parse(node->text, (struct ip_addr *)((char *)holder + key->offset)))
        return;
    const char *hint = "";
    if (node->kind == DOC_STRING && endpoint_parse(node->text, &endpoint, &why))
        hint = "; a port has a key of its own";
    else if (node->kind == DOC_STRING && slice_find(node->text, '/') < node->text.len)
        hint = " without a prefix length";
    else if (node->kind == DOC_STRING && node->text.len &&
             ascii_lower(node->text.ptr[node->text.len - 1]) >= 'a')
        hint = "; a target's name belongs to \"host\"";
    doc_fault(decoder->doc, DIAG_ERROR, node, "is %s, expected an IPv4 or IPv6 address%s",
              doc_describe(node, &decoder->doc->arena), hint);
}

static void print_address(const struct schema_key *key, const void *holder, enum schema_view view,
                          struct text *out)
{
    const struct ip_addr *addr = (const struct ip_addr *)((const char *)holder + key->offset);
    char ip[IP_TEXT_MAX];
    if (addr->family)
        types_print_word(slice_of(ip, ip_print(addr, ip)), out);
}

static void expect_address(const struct schema_key *key, struct text *out)
{
    text_printf(out, "an IPv4 or IPv6 address");
}

const struct schema_type type_address = {decode_address, print_address, expect_address};

static void decode_endpoint(struct decoder *decoder, const struct schema_key *key,
                            const struct doc_node *node, void *holder)
{
    struct config_endpoint endpoint = {0};
    const char *why = NULL;
    if (node->kind != DOC_STRING) {
        decode_mismatch(decoder, key, node);
        return;
    }
    bool off = slice_eq(node->text, SLICE("off")), good = off || endpoint_parse(node->text, &endpoint, &why);
    if (good && endpoint.unix_path.ptr) {
        endpoint.unix_path = arena_slice(decoder->arena, decode_absolute(decoder, endpoint.unix_path));
        good = endpoint.unix_path.len <= ENDPOINT_UNIX_MAX;
        why = "the path is longer than 107 bytes when it is absolute";
    }
    if (!good) {
        doc_fault(decoder->doc, DIAG_ERROR, node, "is %s, but %s", doc_describe(node, &decoder->doc->arena),
                  why);
        return;
    }
    if (!off)
        endpoint_name(&endpoint, decoder->arena);
    *(struct config_endpoint *)((char *)holder + key->offset) = endpoint;
}

static void print_endpoint(const struct schema_key *key, const void *holder, enum schema_view view,
                           struct text *out)
{
    const struct config_endpoint *endpoint =
        (const struct config_endpoint *)((const char *)holder + key->offset);
    types_print_word(endpoint->text.ptr ? endpoint->text : SLICE("off"), out);
}

static void expect_endpoint(const struct schema_key *key, struct text *out)
{
    text_printf(out, "an address with a port (\"127.0.0.1:8443\"), \"unix:/path\" or \"off\"");
}

const struct schema_type type_endpoint = {decode_endpoint, print_endpoint, expect_endpoint};
