/* SPDX-License-Identifier: Apache-2.0 */
/* The pseudo fields come first and in any order, so their values are kept at the front of the buffer; with
 * the first other field the start line can be written behind them, and from there on each field becomes a
 * line as it comes. The lines lie side by side, which lets the HTTP/1 writer copy them as one run. */
#include "http2/head.h"

#include "http1/fields.h"

static const struct slice pseudo_names[HTTP2_PSEUDOS] = {
    [HTTP2_METHOD] = {":method", 7},        [HTTP2_SCHEME] = {":scheme", 7},
    [HTTP2_AUTHORITY] = {":authority", 10}, [HTTP2_PATH] = {":path", 5},
    [HTTP2_PROTOCOL] = {":protocol", 9},    [HTTP2_STATUS] = {":status", 7},
};

void http2_head_init(struct http2_head *head, enum http2_kind kind, uint32_t max_bytes)
{
    *head = (struct http2_head){.kind = (uint8_t)kind, .max_bytes = max_bytes};
}

void http2_head_fini(struct http2_head *head, struct buf_pool *bufs)
{
    buf_give(bufs, &head->text);
}

static void fault(struct http2_head *head, enum http2_head_result what)
{
    if (!head->fault)
        head->fault = (uint8_t)what;
}

/* Room for `n` bytes at the end, which the caller fills at once; NULL and a fault when there is none. What
 * was appended before may have moved. */
static char *extend(struct http2_head *head, struct buf_pool *bufs, size_t n)
{
    struct buf *text = head->text;
    if (iso_unlikely(!text || text->cap - text->end < n)) {
        size_t end = text ? text->end : 0;
        struct buf *larger = buf_try_take(bufs, end + n);
        if (!larger) {
            fault(head, HTTP2_HEAD_NO_MEMORY);
            return NULL;
        }
        if (text)
            memcpy(larger->data, text->data, end);
        larger->end = (uint32_t)end;
        buf_give(bufs, &head->text);
        head->text = text = larger;
    }
    char *at = text->data + text->end;
    text->end += (uint32_t)n;
    return at;
}

static void put(struct http2_head *head, struct buf_pool *bufs, struct slice bytes)
{
    char *at = extend(head, bufs, bytes.len);
    if (at && bytes.len)
        memcpy(at, bytes.ptr, bytes.len);
}

static uint32_t text_end(const struct http2_head *head)
{
    return head->text ? head->text->end : 0;
}

static struct slice pseudo(const struct http2_head *head, enum http2_pseudo which)
{
    if (!head->seen[which] || !head->text)
        return (struct slice){0};
    return slice_of(head->text->data + head->pseudo[which].at, head->pseudo[which].len);
}

struct slice http2_head_protocol(const struct http2_head *head)
{
    return pseudo(head, HTTP2_PROTOCOL);
}

static void put_pseudo(struct http2_head *head, struct buf_pool *bufs, enum http2_pseudo which)
{
    char *at = extend(head, bufs, head->pseudo[which].len);
    if (at)
        memcpy(at, head->text->data + head->pseudo[which].at, head->pseudo[which].len);
}

static bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!h1_token_byte[(unsigned char)s.ptr[i]])
            return false;
    return s.len > 0;
}

/* Printable and without a space: what may stand in one piece on a start line. */
static bool is_visible(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)(s.ptr[i] - 0x21) > 0x7e - 0x21)
            return false;
    return true;
}

static bool is_known_scheme(struct slice scheme)
{
    return slice_caseeq(scheme, SLICE("https")) || slice_caseeq(scheme, SLICE("http"));
}

/* The path of every scheme that we forward begins with '/', but for OPTIONS of the server itself; an
 * absolute form is for the start line of HTTP/1.1 only. */
static bool is_origin_form(struct slice path, struct slice method)
{
    return path.len &&
           (path.ptr[0] == '/' || (slice_eq(path, SLICE("*")) && slice_eq(method, SLICE("OPTIONS"))));
}

static bool has_request_pseudos(const struct http2_head *head)
{
    struct slice method = pseudo(head, HTTP2_METHOD);
    const bool *seen = head->seen;
    bool is_connect = slice_eq(method, SLICE("CONNECT"));
    if (!is_token(method) || seen[HTTP2_STATUS])
        return false;
    if (is_connect && !seen[HTTP2_PROTOCOL]) /* RFC 9113 8.5 */
        return seen[HTTP2_AUTHORITY] && !seen[HTTP2_SCHEME] && !seen[HTTP2_PATH] &&
               is_visible(pseudo(head, HTTP2_AUTHORITY));
    if (seen[HTTP2_PROTOCOL] &&
        (!is_connect || !is_token(pseudo(head, HTTP2_PROTOCOL)) || !seen[HTTP2_AUTHORITY]))
        return false;
    return is_known_scheme(pseudo(head, HTTP2_SCHEME)) && is_visible(pseudo(head, HTTP2_PATH)) &&
           is_origin_form(pseudo(head, HTTP2_PATH), method) && is_visible(pseudo(head, HTTP2_AUTHORITY));
}

static void begin_request(struct http2_head *head, struct buf_pool *bufs)
{
    if (!has_request_pseudos(head)) {
        fault(head, HTTP2_HEAD_MALFORMED);
        return;
    }
    if (head->seen[HTTP2_PROTOCOL])
        put(head, bufs, SLICE("GET"));
    else
        put_pseudo(head, bufs, HTTP2_METHOD);
    put(head, bufs, SLICE(" "));
    put_pseudo(head, bufs, head->seen[HTTP2_PATH] ? HTTP2_PATH : HTTP2_AUTHORITY);
    put(head, bufs, SLICE(" HTTP/1.1\r\n"));
    if (!head->seen[HTTP2_AUTHORITY])
        return;
    put(head, bufs, SLICE("host: "));
    put_pseudo(head, bufs, HTTP2_AUTHORITY);
    put(head, bufs, SLICE("\r\n"));
}

static void begin_response(struct http2_head *head, struct buf_pool *bufs)
{
    struct slice status = pseudo(head, HTTP2_STATUS);
    bool is_clean = status.len == 3 && is_token(status) && !slice_eq(status, SLICE("101"));
    for (int i = 0; i < HTTP2_STATUS; i++)
        is_clean = is_clean && !head->seen[i];
    if (!is_clean) {
        fault(head, HTTP2_HEAD_MALFORMED);
        return;
    }
    put(head, bufs, SLICE("HTTP/1.1 "));
    put_pseudo(head, bufs, HTTP2_STATUS);
    put(head, bufs, SLICE(" \r\n"));
}

static void begin(struct http2_head *head, struct buf_pool *bufs)
{
    if (head->begins)
        return;
    if (head->kind == HTTP2_TRAILERS)
        put(head, bufs, SLICE(" ")); /* so that `begins` is not 0 here either */
    head->begins = text_end(head);
    if (head->kind == HTTP2_REQUEST)
        begin_request(head, bufs);
    else if (head->kind == HTTP2_RESPONSE)
        begin_response(head, bufs);
}

static void add_pseudo(struct http2_head *head, struct buf_pool *bufs, struct slice name, struct slice value)
{
    for (int i = 0; i < HTTP2_PSEUDOS; i++) {
        if (!slice_eq(name, pseudo_names[i]))
            continue;
        if (head->seen[i] || head->begins || head->kind == HTTP2_TRAILERS)
            break;
        head->seen[i] = true;
        head->pseudo[i].at = text_end(head);
        head->pseudo[i].len = (uint32_t)value.len;
        put(head, bufs, value);
        return;
    }
    fault(head, HTTP2_HEAD_MALFORMED);
}

/* A token without upper case (RFC 9113 8.2.1). */
static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)(name.ptr[i] - 'A') < 26)
            return false;
    return is_token(name);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_value(struct slice value)
{
    return h1_scan_value(value.ptr, value.len) == value.len &&
           (!value.len || (!is_blank(value.ptr[0]) && !is_blank(value.ptr[value.len - 1])));
}

/* Fields that a list may not hold, or not with this value (RFC 9113 8.2.2). */
static bool is_of_connection(const struct http2_head *head, enum http_field_id id, struct slice value)
{
    switch (id) {
    case HTTP_FIELD_CONNECTION:
    case HTTP_FIELD_KEEP_ALIVE:
    case HTTP_FIELD_PROXY_CONNECTION:
    case HTTP_FIELD_TRANSFER_ENCODING:
    case HTTP_FIELD_UPGRADE:
        return true;
    case HTTP_FIELD_TE:
        return head->kind == HTTP2_REQUEST && !slice_caseeq(value, SLICE("trailers"));
    default:
        return false;
    }
}

/* Crumbs of cookies become one field again (RFC 9113 8.2.3), where the first stands. */
static void add_crumb(struct http2_head *head, struct buf_pool *bufs, struct slice value)
{
    size_t added = value.len + 2;
    if (!extend(head, bufs, added))
        return;
    char *at = head->text->data + head->cookie_end;
    memmove(at + added, at, head->text->end - added - head->cookie_end);
    memcpy(at, "; ", 2);
    if (value.len)
        memcpy(at + 2, value.ptr, value.len);
    head->cookie_end += (uint32_t)added;
}

static void add_line(struct http2_head *head, struct buf_pool *bufs, struct slice name, struct slice value)
{
    char *at = extend(head, bufs, name.len + value.len + 4);
    if (!at)
        return;
    memcpy(at, name.ptr, name.len);
    at += name.len;
    memcpy(at, ": ", 2);
    if (value.len)
        memcpy(at + 2, value.ptr, value.len);
    memcpy(at + 2 + value.len, "\r\n", 2);
}

static void add_field(struct http2_head *head, struct buf_pool *bufs, struct slice name, struct slice value)
{
    enum http_field_id id = HTTP_FIELD_OTHER;
    if (!is_name(name) || !is_value(value) || is_of_connection(head, id = http_field_lookup(name), value)) {
        fault(head, HTTP2_HEAD_MALFORMED);
        return;
    }
    begin(head, bufs);
    if (head->fault)
        return;
    if (id == HTTP_FIELD_CONTENT_LENGTH)
        head->has_length = true;
    if (head->kind == HTTP2_REQUEST && id == HTTP_FIELD_HOST && head->seen[HTTP2_AUTHORITY]) {
        /* One host only, and where there is :authority it is that (RFC 9113 8.3.1). */
        if (head->has_host || !slice_caseeq(value, pseudo(head, HTTP2_AUTHORITY)))
            fault(head, HTTP2_HEAD_MALFORMED);
        head->has_host = true;
        return;
    }
    bool is_cookie = head->kind == HTTP2_REQUEST && id == HTTP_FIELD_COOKIE;
    if (is_cookie && head->cookie_end) {
        add_crumb(head, bufs, value);
        return;
    }
    add_line(head, bufs, name, value);
    if (is_cookie && !head->fault)
        head->cookie_end = head->text->end - 2;
}

void http2_head_add(struct http2_head *head, struct buf_pool *bufs, struct slice name, struct slice value)
{
    size_t size = name.len + value.len + 4; /* ": " and the line's end */
    head->seen_bytes += size;
    if (head->fault || head->is_too_large)
        return;
    if (text_end(head) + size > head->max_bytes) {
        head->is_too_large = true;
        return;
    }
    if (name.len && name.ptr[0] == ':')
        add_pseudo(head, bufs, name, value);
    else
        add_field(head, bufs, name, value);
}

void http2_head_spoil(struct http2_head *head)
{
    fault(head, HTTP2_HEAD_MALFORMED);
}

/* What the head must say about a body so that the parser decides as the frames do. That a request whose
 * method would have a body has none is said too (RFC 9110 8.6). */
static void put_framing(struct http2_head *head, struct buf_pool *bufs, bool ends)
{
    if (head->kind == HTTP2_TRAILERS || head->has_length || head->seen[HTTP2_PROTOCOL])
        return;
    enum http_method method = http_method_lookup(pseudo(head, HTTP2_METHOD));
    if (!ends)
        put(head, bufs, SLICE("transfer-encoding: chunked\r\n"));
    else if (head->kind == HTTP2_REQUEST &&
             (method == HTTP_POST || method == HTTP_PUT || method == HTTP_PATCH))
        put(head, bufs, SLICE("content-length: 0\r\n"));
}

static enum http2_head_result parse(struct http2_head *head, bool ends, const struct h1_limits *limits,
                                    enum http_method request_method, struct http_message *msg,
                                    enum http_reject *why)
{
    const char *data = head->text->data + head->begins;
    size_t len = head->text->end - head->begins, used = 0;
    enum http_reject reason = HTTP_REJECT_NONE;
    enum h1_result result = H1_REJECTED;
    switch ((enum http2_kind)head->kind) {
    case HTTP2_REQUEST:
        result = h1_parse_request(data, len, limits, msg, &used, &reason);
        break;
    case HTTP2_RESPONSE:
        result = h1_parse_response(data, len, limits, request_method, msg, &used, &reason);
        break;
    case HTTP2_TRAILERS:
        result = h1_parse_trailers(data, len, limits, msg, &used, &reason);
        break;
    }
    if (result == H1_REJECTED) {
        *why = reason;
        return HTTP2_HEAD_REFUSED;
    }
    if (result == H1_INCOMPLETE || used != len)
        return HTTP2_HEAD_MALFORMED;
    if (head->kind == HTTP2_REQUEST && (ends || head->seen[HTTP2_PROTOCOL]) && msg->content_length)
        return HTTP2_HEAD_MALFORMED;
    return HTTP2_HEAD_OK;
}

enum http2_head_result http2_head_finish(struct http2_head *head, struct buf_pool *bufs, bool ends,
                                         const struct h1_limits *limits, enum http_method request_method,
                                         struct http_message *msg, enum http_reject *why)
{
    if (head->is_too_large && !head->fault) {
        *why = head->kind == HTTP2_TRAILERS ? HTTP_REJECT_TRAILERS_TOO_LARGE : HTTP_REJECT_HEAD_TOO_LARGE;
        return HTTP2_HEAD_REFUSED;
    }
    if (!head->fault)
        begin(head, bufs);
    put_framing(head, bufs, ends);
    put(head, bufs, SLICE("\r\n"));
    if (head->fault)
        return (enum http2_head_result)head->fault;
    enum http2_head_result result = parse(head, ends, limits, request_method, msg, why);
    if (result == HTTP2_HEAD_OK && ends && head->kind == HTTP2_RESPONSE && msg->framing != HTTP_BODY_NONE) {
        if (msg->content_length)
            return HTTP2_HEAD_MALFORMED;
        msg->framing = HTTP_BODY_LENGTH;
        msg->has_length = msg->keep_alive = true;
    }
    return result;
}
