/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/resp.h"

struct cursor {
    const char *at, *end;
};

/* The line at the cursor without its CRLF. */
static enum resp_result take_line(struct cursor *c, struct slice *line)
{
    size_t left = (size_t)(c->end - c->at), most = left < RESP_LINE_MAX ? left : RESP_LINE_MAX;
    const char *lf = left ? memchr(c->at, '\n', most) : NULL;
    if (!lf)
        return left >= RESP_LINE_MAX ? RESP_BAD : RESP_NEED_MORE;
    if (lf == c->at || lf[-1] != '\r')
        return RESP_BAD;
    *line = slice_of(c->at, (size_t)(lf - c->at) - 1);
    c->at = lf + 1;
    return RESP_COMPLETE;
}

static bool parse_integer(struct slice s, int64_t *out)
{
    bool negative = s.len && s.ptr[0] == '-';
    int64_t value = 0;
    size_t i = negative;
    if (i == s.len || s.len > 18) /* our commands are not answered with more digits */
        return false;
    for (; i < s.len; i++) {
        unsigned digit = (unsigned char)s.ptr[i] - '0';
        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *out = negative ? -value : value;
    return true;
}

static enum resp_result take_bulk(struct cursor *c, int64_t len, struct resp_element *out)
{
    if (len == -1) {
        out->type = RESP_NIL;
        return RESP_COMPLETE;
    }
    if (len < 0 || len > RESP_BULK_MAX)
        return RESP_BAD;
    if (c->end - c->at < len + 2)
        return RESP_NEED_MORE;
    if (c->at[len] != '\r' || c->at[len + 1] != '\n')
        return RESP_BAD;
    out->type = RESP_BULK;
    out->text = slice_of(c->at, (size_t)len);
    c->at += len + 2;
    return RESP_COMPLETE;
}

/* Everything but an array, whose length is then in out->integer. */
static enum resp_result take_element(struct cursor *c, struct resp_element *out)
{
    struct slice line;
    enum resp_result result = take_line(c, &line);
    if (result != RESP_COMPLETE)
        return result;
    *out = (struct resp_element){0};
    out->text = line.len ? slice_of(line.ptr + 1, line.len - 1) : line;
    switch (line.len ? line.ptr[0] : '\0') {
    case '+':
        out->type = RESP_SIMPLE;
        return RESP_COMPLETE;
    case '-':
        out->type = RESP_ERROR;
        return RESP_COMPLETE;
    case ':':
        out->type = RESP_INTEGER;
        return parse_integer(out->text, &out->integer) ? RESP_COMPLETE : RESP_BAD;
    case '$':
        return parse_integer(out->text, &out->integer) ? take_bulk(c, out->integer, out) : RESP_BAD;
    case '*':
        out->type = RESP_ARRAY;
        return parse_integer(out->text, &out->integer) ? RESP_COMPLETE : RESP_BAD;
    default:
        return RESP_BAD;
    }
}

enum resp_result resp_parse(struct slice data, struct resp_value *value, size_t *used)
{
    struct cursor c = {data.ptr, data.ptr + data.len};
    struct resp_element first;
    enum resp_result result = take_element(&c, &first);
    if (result != RESP_COMPLETE)
        return result;
    value->type = first.type;
    value->text = first.text;
    value->integer = first.integer;
    value->n = 0;
    if (first.type == RESP_ARRAY && first.integer == -1)
        value->type = RESP_NIL;
    else if (first.type == RESP_ARRAY && (first.integer < 0 || first.integer > RESP_ELEMENTS_MAX))
        return RESP_BAD;
    while (value->type == RESP_ARRAY && value->n < first.integer) {
        result = take_element(&c, &value->elements[value->n]);
        if (result != RESP_COMPLETE)
            return result;
        if (value->elements[value->n++].type == RESP_ARRAY)
            return RESP_BAD;
    }
    *used = (size_t)(c.at - data.ptr);
    return RESP_COMPLETE;
}

void resp_command(struct text *out, const struct slice *args, size_t n)
{
    text_printf(out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        text_printf(out, "$%zu\r\n", args[i].len);
        text_add(out, args[i]);
        text_add(out, SLICE("\r\n"));
    }
}

struct slice resp_error_word(const struct resp_value *value)
{
    return slice_of(value->text.ptr, slice_find(value->text, ' '));
}
