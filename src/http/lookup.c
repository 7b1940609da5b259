/* SPDX-License-Identifier: Apache-2.0 */
/* One value out of a list of pairs: a cookie of a Cookie field, a parameter of a query. Names are compared as
 * the bytes they are (cookies and query parameters know no case and are not percent-decoded here: a borrowed
 * slice cannot be), and the first match is the answer. */
#include "http/message.h"

static bool find_pair(struct slice pairs, char separator, bool trim, struct slice name, struct slice *value)
{
    struct slice part;
    while (slice_next(&pairs, separator, &part)) {
        if (trim)
            part = slice_trim(part);
        if (part.len < name.len || !slice_starts(part, name))
            continue;
        if (part.len == name.len) {
            *value = slice_of(part.ptr + part.len, 0);
            return true;
        }
        if (part.ptr[name.len] == '=') {
            *value = slice_of(part.ptr + name.len + 1, part.len - name.len - 1);
            return true;
        }
    }
    return false;
}

bool http_cookie_find(struct slice cookies, struct slice name, struct slice *value)
{
    return name.len && find_pair(cookies, ';', true, name, value);
}

bool http_message_cookie(struct http_message *msg, struct slice name, struct slice *value)
{
    for (struct http_field *f = msg->fields, *end = f + msg->n_fields; f < end; f++)
        if (f->id == HTTP_FIELD_COOKIE && !(f->flags & HTTP_FIELD_DROP) &&
            http_cookie_find(http_field_value(f), name, value))
            return true;
    return false;
}

bool http_query_find(struct slice query, struct slice name, struct slice *value)
{
    return name.len && find_pair(query, '&', false, name, value);
}
