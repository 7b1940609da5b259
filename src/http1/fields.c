/* SPDX-License-Identifier: Apache-2.0 */
/* Field lines into fields. A name is a token directly before its colon, a value holds no control byte but
 * HTAB, a line ends in CRLF and is never continued on the next one. Everything else is refused at the byte
 * that shows it, so that a beginning is refused exactly when all its continuations are. */
#include "http1/fields.h"
#include "http1/scan.h"

const bool h1_token_byte[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['!'] = true,  ['#'] = true,
    ['$'] = true,         ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true,
    ['+'] = true,         ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true,
    ['`'] = true,         ['|'] = true,         ['~'] = true,
};

static enum h1_result reject(enum http_reject reason, enum http_reject *why)
{
    *why = reason;
    return H1_REJECTED;
}

/* What is wrong with a line that begins with a byte that is neither a token's nor CR. */
static enum http_reject bad_line_start(char c, const struct http_message *msg)
{
    if (c == '\n')
        return HTTP_REJECT_BARE_LF;
    if ((c == ' ' || c == '\t') && msg->n_fields)
        return HTTP_REJECT_OBS_FOLD;
    return HTTP_REJECT_BAD_FIELD;
}

enum h1_result h1_parse_fields(const char *floor, const char **at, const char *end, uint32_t max,
                               struct http_message *msg, enum http_reject *why)
{
    const char *p = *at;
    for (;;) {
        if (p == end)
            return H1_INCOMPLETE;
        if (*p == '\r') {
            if (end - p < 2)
                return H1_INCOMPLETE;
            if (p[1] != '\n')
                return reject(HTTP_REJECT_BAD_FIELD, why);
            *at = p + 2;
            return H1_COMPLETE;
        }
        const char *name = p;
        while (p < end && h1_token_byte[(unsigned char)*p])
            p++;
        if (p == name)
            return reject(bad_line_start(*p, msg), why);
        if (msg->n_fields == max)
            return reject(HTTP_REJECT_TOO_MANY_FIELDS, why);
        if (p == end)
            return H1_INCOMPLETE;
        if (*p != ':')
            return reject(*p == '\n' ? HTTP_REJECT_BARE_LF : HTTP_REJECT_BAD_FIELD, why);
        const char *name_end = p++;

        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        const char *value = p;
        p = scan_value(floor, p, end);
        if (p == end)
            return H1_INCOMPLETE;
        if (*p != '\r')
            return reject(*p == '\n' ? HTTP_REJECT_BARE_LF : HTTP_REJECT_BAD_FIELD, why);
        if (end - p < 2)
            return H1_INCOMPLETE;
        if (p[1] != '\n')
            return reject(HTTP_REJECT_BAD_FIELD, why);
        const char *value_end = p;
        while (value_end > value && (value_end[-1] == ' ' || value_end[-1] == '\t'))
            value_end--;
        p += 2;

        struct http_field *f = &msg->fields[msg->n_fields++];
        f->name = name;
        f->value = value;
        f->name_len = (uint32_t)(name_end - name);
        f->value_len = (uint32_t)(value_end - value);
        f->raw_len = (uint32_t)(p - name);
        f->id = (uint8_t)http_field_lookup(slice_of(name, (size_t)(name_end - name)));
        f->flags = 0;
    }
}
