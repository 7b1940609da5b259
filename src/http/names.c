/* SPDX-License-Identifier: Apache-2.0 */
/* Names to numbers: field names and methods. A field name is found by three of its properties (length, first
 * and last byte), which separate nearly all known names, so that an unknown one costs a multiplication and
 * one byte of a table. The table is filled from fields.def before main() runs and only read afterwards. */
#include "http/message.h"
#include "http/names.h"

enum { NAME_MAX_BYTES = HTTP_FOLDED_MAX };

struct known_name {
    char text[NAME_MAX_BYTES]; /* lower case, padded with NUL */
    uint8_t len;
};

static const struct known_name names[HTTP_FIELD_COUNT] = {
#define FIELD(id, name) [HTTP_FIELD_##id] = {name, sizeof(name) - 1},
#include "http/fields.def"
#undef FIELD
};

#define FIELD(id, name)                                                                                      \
    _Static_assert(sizeof(name) - 1 >= 2 && sizeof(name) - 1 <= NAME_MAX_BYTES, "see http_same_folded()");
#include "http/fields.def"
#undef FIELD
_Static_assert(HTTP_FIELD_COUNT < HTTP_NAME_SLOTS / 2, "the table stays sparse, and an id fits a byte");

uint8_t http_name_slots[HTTP_NAME_SLOTS];

__attribute__((constructor)) static void fill_slots(void)
{
    for (unsigned id = 1; id < HTTP_FIELD_COUNT; id++) {
        uint32_t at = http_name_slot(names[id].text, names[id].len);
        while (http_name_slots[at])
            at = (at + 1) % HTTP_NAME_SLOTS;
        http_name_slots[at] = (uint8_t)id;
    }
}

enum http_field_id http_field_lookup(struct slice name)
{
    if (name.len < 2 || name.len > NAME_MAX_BYTES)
        return HTTP_FIELD_OTHER;
    for (uint32_t at = http_name_slot(name.ptr, name.len); http_name_slots[at];
         at = (at + 1) % HTTP_NAME_SLOTS) {
        const struct known_name *known = &names[http_name_slots[at]];
        if (known->len == name.len && http_same_folded(name.ptr, known->text, name.len))
            return (enum http_field_id)http_name_slots[at];
    }
    return HTTP_FIELD_OTHER;
}

static bool same_but_hyphens(const char *name, const struct known_name *known)
{
    for (size_t i = 0; i < known->len; i++)
        if (ascii_lower(name[i]) != known->text[i] && known->text[i] != '-')
            return false;
    return true;
}

enum http_field_id http_field_lookalike(struct slice name)
{
    if (name.len < 2 || name.len > NAME_MAX_BYTES)
        return HTTP_FIELD_OTHER;
    for (uint32_t at = http_name_slot(name.ptr, name.len); http_name_slots[at];
         at = (at + 1) % HTTP_NAME_SLOTS) {
        const struct known_name *known = &names[http_name_slots[at]];
        if (known->len == name.len && same_but_hyphens(name.ptr, known))
            return (enum http_field_id)http_name_slots[at];
    }
    return HTTP_FIELD_OTHER;
}

struct slice http_field_id_name(enum http_field_id id)
{
    iso_assert(id < HTTP_FIELD_COUNT);
    return slice_of(names[id].text, names[id].len);
}

enum http_method http_method_lookup(struct slice name)
{
#define IS(text, method)                                                                                     \
    if (memcmp(name.ptr, text, sizeof(text) - 1) == 0)                                                       \
    return method
    switch (name.len) {
    case 3:
        IS("GET", HTTP_GET);
        IS("PUT", HTTP_PUT);
        break;
    case 4:
        IS("POST", HTTP_POST);
        IS("HEAD", HTTP_HEAD);
        break;
    case 5:
        IS("PATCH", HTTP_PATCH);
        IS("TRACE", HTTP_TRACE);
        break;
    case 6:
        IS("DELETE", HTTP_DELETE);
        break;
    case 7:
        IS("OPTIONS", HTTP_OPTIONS);
        IS("CONNECT", HTTP_CONNECT);
        break;
    }
#undef IS
    return HTTP_METHOD_OTHER;
}

bool http_method_is_idempotent(enum http_method method)
{
    switch (method) {
    case HTTP_GET:
    case HTTP_HEAD:
    case HTTP_PUT:
    case HTTP_DELETE:
    case HTTP_OPTIONS:
    case HTTP_TRACE:
        return true;
    case HTTP_POST:
    case HTTP_CONNECT:
    case HTTP_PATCH:
    case HTTP_METHOD_OTHER:
        return false;
    }
    iso_unreachable("a method outside the enum");
}
