/* SPDX-License-Identifier: Apache-2.0 */
/* Message heads. A head is read from left to right exactly once; the start line is taken apart here, its
 * target in target.c, the field lines in fields.c, and what the fields mean for the message's end is asked of
 * http_framing_decide() once the empty line was seen. The first fault from the left is the one reported. */
#include "http1/fields.h"
#include "http1/target.h"

enum {
    EMPTY_LINES_MAX = 4, /* before a request line; RFC 9112 2.2 asks for at least one */
    METHOD_MAX = 32,     /* the longest registered one, UPDATEREDIRECTREF, has 17 bytes */
};

static enum h1_result reject(enum http_reject reason, enum http_reject *why)
{
    *why = reason;
    return H1_REJECTED;
}

/* The part of the input that a head may fill. */
static const char *window_end(const char *begin, const char *end, uint32_t head_bytes)
{
    return (size_t)(end - begin) > head_bytes ? begin + head_bytes : end;
}

/* A head that is incomplete although it fills its window is too large. */
static enum h1_result incomplete(const char *begin, const char *end, uint32_t head_bytes,
                                 enum http_reject *why)
{
    return (size_t)(end - begin) < head_bytes ? H1_INCOMPLETE : reject(HTTP_REJECT_HEAD_TOO_LARGE, why);
}

static bool is_digit(char c)
{
    return (unsigned)(c - '0') < 10;
}

static enum h1_result skip_empty_lines(const char **at, const char *end, enum http_reject *why)
{
    const char *p = *at;
    for (int lines = 0; p < end && (*p == '\r' || *p == '\n'); lines++, p += 2) {
        if (*p == '\n')
            return reject(HTTP_REJECT_BARE_LF, why);
        if (lines == EMPTY_LINES_MAX)
            return reject(HTTP_REJECT_BAD_START_LINE, why);
        if (end - p < 2)
            return H1_INCOMPLETE;
        if (p[1] != '\n')
            return reject(HTTP_REJECT_BAD_START_LINE, why);
    }
    *at = p;
    return H1_COMPLETE;
}

static enum h1_result parse_method(const char **at, const char *end, struct http_message *msg,
                                   enum http_reject *why)
{
    const char *begin = *at, *p = begin;
    while (p < end && h1_token_byte[(unsigned char)*p])
        p++;
    if (p - begin > METHOD_MAX)
        return reject(HTTP_REJECT_BAD_METHOD, why);
    if (p == end)
        return H1_INCOMPLETE;
    if (*p != ' ' || p == begin)
        return reject(*p == '\n' ? HTTP_REJECT_BARE_LF : HTTP_REJECT_BAD_METHOD, why);
    msg->method_text = slice_of(begin, (size_t)(p - begin));
    msg->method = (uint8_t)http_method_lookup(msg->method_text);
    if (msg->method == HTTP_CONNECT)
        return reject(HTTP_REJECT_METHOD_UNSUPPORTED, why);
    *at = p + 1;
    return H1_COMPLETE;
}

/* Reads HTTP/1.x. A minor version that we do not know is spoken as 1.1 (RFC 9110 2.5). */
static enum h1_result parse_version(const char **at, const char *end, struct http_message *msg,
                                    enum http_reject *why)
{
    static const char form[8] = {'H', 'T', 'T', 'P', '/', '1', '.', '1'};
    const char *p = *at;
    size_t len = (size_t)(end - p);
    if (len >= sizeof(form) && memcmp(p, form, sizeof(form)) == 0) {
        msg->version_minor = 1;
        *at = p + sizeof(form);
        return H1_COMPLETE;
    }
    for (size_t i = 0; i < sizeof(form) && i < len; i++)
        if (is_digit(form[i]) ? !is_digit(p[i]) : p[i] != form[i])
            return reject(p[i] == '\n' ? HTTP_REJECT_BARE_LF : HTTP_REJECT_BAD_VERSION, why);
    if (len < sizeof(form))
        return H1_INCOMPLETE;
    if (p[5] != '1')
        return reject(HTTP_REJECT_VERSION, why);
    msg->version_minor = p[7] != '0';
    *at = p + sizeof(form);
    return H1_COMPLETE;
}

/* The CRLF behind a start line. */
static enum h1_result parse_line_end(const char **at, const char *end, enum http_reject *why)
{
    const char *p = *at;
    if (p < end && *p != '\r')
        return reject(*p == '\n' ? HTTP_REJECT_BARE_LF : HTTP_REJECT_BAD_START_LINE, why);
    if (end - p < 2)
        return H1_INCOMPLETE;
    if (p[1] != '\n')
        return reject(HTTP_REJECT_BAD_START_LINE, why);
    *at = p + 2;
    return H1_COMPLETE;
}

static enum h1_result parse_request_line(const char **at, const char *end, uint32_t uri_bytes,
                                         struct http_message *msg, enum http_reject *why)
{
    const char *floor = *at;
    enum h1_result result = parse_method(at, end, msg, why);
    if (result == H1_COMPLETE)
        result = h1_parse_target(floor, at, end, uri_bytes, msg, why);
    if (result == H1_COMPLETE)
        result = parse_version(at, end, msg, why);
    if (result == H1_COMPLETE)
        result = parse_line_end(at, end, why);
    return result;
}

/* HTTP/1.1 needs exactly one valid Host; HTTP/1.0 may go without. In absolute form the target's authority is
 * the one that counts, and a Host that says something else is dropped (RFC 9112 3.2 and 3.2.2; C-007). */
static enum h1_result check_host(struct http_message *msg, enum http_reject *why)
{
    struct http_field *found = NULL;
    struct slice host;
    uint16_t port;
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        if (msg->fields[i].id != HTTP_FIELD_HOST)
            continue;
        if (found)
            return reject(HTTP_REJECT_BAD_HOST, why);
        found = &msg->fields[i];
    }
    if (!found)
        return msg->version_minor == 0 ? H1_COMPLETE : reject(HTTP_REJECT_BAD_HOST, why);
    if (!http_host_parse(http_field_value(found), &host, &port))
        return reject(HTTP_REJECT_BAD_HOST, why);
    if (msg->scheme.len == 0)
        msg->authority = http_field_value(found);
    else if (!slice_eq(msg->authority, http_field_value(found)))
        found->flags |= HTTP_FIELD_DROP;
    return H1_COMPLETE;
}

enum h1_result h1_parse_request(const char *data, size_t len, const struct h1_limits *limits,
                                struct http_message *msg, size_t *used, enum http_reject *why)
{
    const char *p = data, *end = data + len;
    iso_assert(limits->fields <= HTTP_FIELDS_MAX - HTTP_FIELDS_OURS);
    http_message_init(msg, false);
    enum h1_result result = skip_empty_lines(&p, end, why);
    if (result != H1_COMPLETE)
        return result;
    const char *begin = p;
    end = window_end(begin, end, limits->head_bytes);
    result = parse_request_line(&p, end, limits->uri_bytes, msg, why);
    if (result == H1_COMPLETE)
        result = h1_parse_fields(data, &p, end, limits->fields, msg, why);
    if (result == H1_INCOMPLETE)
        return incomplete(begin, end, limits->head_bytes, why);
    if (result == H1_COMPLETE)
        result = check_host(msg, why);
    if (result != H1_COMPLETE)
        return result;
    enum http_reject reason = http_framing_decide(msg, (enum http_method)msg->method);
    if (reason)
        return reject(reason, why);
    *used = (size_t)(p - data);
    return H1_COMPLETE;
}

static enum h1_result parse_status(const char **at, const char *end, struct http_message *msg,
                                   enum http_reject *why)
{
    const char *p = *at;
    for (int i = 0; i < 4; i++) {
        if (p + i == end)
            return H1_INCOMPLETE;
        if (i == 0 ? p[i] != ' ' : !is_digit(p[i]) || (i == 1 && (p[i] < '1' || p[i] > '5')))
            return reject(p[i] == '\n' ? HTTP_REJECT_BARE_LF : HTTP_REJECT_BAD_START_LINE, why);
    }
    msg->status = (uint16_t)((p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0'));
    *at = p + 4;
    return H1_COMPLETE;
}

/* Reads " reason" or nothing, up to the line's CR. */
static enum h1_result parse_reason(const char **at, const char *end, struct http_message *msg,
                                   enum http_reject *why)
{
    const char *p = *at;
    if (p == end)
        return H1_INCOMPLETE;
    if (*p != ' ')
        return H1_COMPLETE;
    p++;
    size_t len = h1_scan_value(p, (size_t)(end - p));
    if (p + len == end)
        return H1_INCOMPLETE;
    msg->reason = slice_of(p, len);
    *at = p + len;
    return H1_COMPLETE;
}

static enum h1_result parse_status_line(const char **at, const char *end, struct http_message *msg,
                                        enum http_reject *why)
{
    enum h1_result result = parse_version(at, end, msg, why);
    if (result == H1_COMPLETE)
        result = parse_status(at, end, msg, why);
    if (result == H1_COMPLETE)
        result = parse_reason(at, end, msg, why);
    if (result == H1_COMPLETE)
        result = parse_line_end(at, end, why);
    return result;
}

enum h1_result h1_parse_response(const char *data, size_t len, const struct h1_limits *limits,
                                 enum http_method request_method, struct http_message *msg, size_t *used,
                                 enum http_reject *why)
{
    const char *p = data, *end = window_end(data, data + len, limits->head_bytes);
    iso_assert(limits->fields <= HTTP_FIELDS_MAX - HTTP_FIELDS_OURS);
    http_message_init(msg, true);
    enum h1_result result = parse_status_line(&p, end, msg, why);
    if (result == H1_COMPLETE)
        result = h1_parse_fields(data, &p, end, limits->fields, msg, why);
    if (result == H1_INCOMPLETE)
        return incomplete(data, end, limits->head_bytes, why);
    if (result != H1_COMPLETE)
        return result;
    enum http_reject reason = http_framing_decide(msg, request_method);
    if (reason)
        return reject(reason, why);
    *used = (size_t)(p - data);
    return H1_COMPLETE;
}
