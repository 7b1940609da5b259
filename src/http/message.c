/* SPDX-License-Identifier: Apache-2.0 */
/* The message itself: emptied, searched, added to. Fields are kept in the order in which they came and are
 * never removed, only marked as dropped, so that indices and the runs of raw lines that a writer copies stay
 * what they were. Searching is a walk: messages have a dozen fields, and the ids are compared as bytes. */
#include "http/message.h"

void http_message_init(struct http_message *msg, bool is_response)
{
    /* The array behind the scalars is several pages: only entries below n_fields are ever read. */
    memset(msg, 0, offsetof(struct http_message, fields));
    msg->is_response = is_response;
    msg->version_minor = 1;
    msg->keep_alive = true;
}

struct http_field *http_message_find(struct http_message *msg, enum http_field_id id)
{
    for (uint32_t i = 0; i < msg->n_fields; i++)
        if (msg->fields[i].id == id && !(msg->fields[i].flags & HTTP_FIELD_DROP))
            return &msg->fields[i];
    return NULL;
}

struct http_field *http_message_find_name(struct http_message *msg, struct slice name)
{
    enum http_field_id id = http_field_lookup(name);
    if (id != HTTP_FIELD_OTHER)
        return http_message_find(msg, id);
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        struct http_field *f = &msg->fields[i];
        if (f->id == id && !(f->flags & HTTP_FIELD_DROP) && slice_caseeq(http_field_name(f), name))
            return f;
    }
    return NULL;
}

bool http_message_add(struct http_message *msg, struct slice name, struct slice value)
{
    iso_assert(name.len > 0);
    if (msg->n_fields == HTTP_FIELDS_MAX || name.len > UINT32_MAX || value.len > UINT32_MAX)
        return false;
    msg->fields[msg->n_fields++] = (struct http_field){.name = name.ptr,
                                                       .name_len = (uint32_t)name.len,
                                                       .value = value.ptr,
                                                       .value_len = (uint32_t)value.len,
                                                       .id = (uint8_t)http_field_lookup(name)};
    return true;
}

void http_message_drop(struct http_message *msg, enum http_field_id id)
{
    for (uint32_t i = 0; i < msg->n_fields; i++)
        if (msg->fields[i].id == id)
            msg->fields[i].flags |= HTTP_FIELD_DROP;
}

void http_message_drop_name(struct http_message *msg, struct slice name)
{
    enum http_field_id id = http_field_lookup(name);
    if (id != HTTP_FIELD_OTHER) {
        http_message_drop(msg, id);
        return;
    }
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        struct http_field *f = &msg->fields[i];
        if (f->id == id && slice_caseeq(http_field_name(f), name))
            f->flags |= HTTP_FIELD_DROP;
    }
}
