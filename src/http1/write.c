/* SPDX-License-Identifier: Apache-2.0 */
/* Every head is one pass over the fields: neighbours that are kept and still lie side by side in the receive
 * buffer are copied with one memcpy, CRLFs included, so a usual head costs two or three copies. Only the few
 * fields whose fate depends on the message (Host, Expect, Upgrade) are looked at by id. */
#include "http1/write.h"

#include "core/print.h"
#include "core/text.h"

struct writer {
    char *at, *end;
    bool full; /* something did not fit: the result is worthless */
};

static inline void put(struct writer *w, const char *bytes, size_t n)
{
    if (iso_unlikely((size_t)(w->end - w->at) < n)) {
        w->full = true;
        return;
    }
    memcpy(w->at, bytes, n);
    w->at += n;
}

#define put_lit(w, lit) put(w, "" lit, sizeof(lit) - 1)

static inline void put_slice(struct writer *w, struct slice s)
{
    if (s.len)
        put(w, s.ptr, s.len);
}

static void put_u64(struct writer *w, uint64_t v)
{
    char digits[PRINT_U64_MAX];
    put(w, digits, print_u64(digits, v));
}

static void put_field(struct writer *w, struct slice name, struct slice value)
{
    put_slice(w, name);
    put_lit(w, ": ");
    put_slice(w, value);
    put_lit(w, "\r\n");
}

static size_t finish(const struct writer *w, const char *out)
{
    return w->full ? 0 : (size_t)(w->at - out);
}

#define ID_BIT(id) (1ull << HTTP_FIELD_##id)
_Static_assert(HTTP_FIELD_COUNT <= 64, "a set of field ids is one word");

/* Writes the fields that are not dropped and not in `skip`; returns the ids that were written. */
static uint64_t put_fields(struct writer *w, const struct http_message *msg, uint64_t skip)
{
    uint64_t seen = 0;
    const char *run = NULL; /* kept lines [run, run_end) are still to be copied */
    const char *run_end = NULL;
    for (const struct http_field *f = msg->fields, *end = f + msg->n_fields; f < end; f++) {
        uint64_t bit = 1ull << f->id;
        if (f->flags & HTTP_FIELD_DROP || bit & skip)
            continue;
        seen |= bit;
        if (f->name == run_end && f->raw_len) {
            run_end += f->raw_len;
            continue;
        }
        if (run)
            put(w, run, (size_t)(run_end - run));
        if (f->raw_len) {
            run = f->name;
            run_end = run + f->raw_len;
        } else {
            run = run_end = NULL;
            put_field(w, http_field_name(f), http_field_value(f));
        }
    }
    if (run)
        put(w, run, (size_t)(run_end - run));
    return seen;
}

static void put_length(struct writer *w, uint64_t n)
{
    put_lit(w, "Content-Length: ");
    put_u64(w, n);
    put_lit(w, "\r\n");
}

static void put_target(struct writer *w, const struct http_message *msg)
{
    if (!msg->scheme.len) {
        put_slice(w, msg->target);
        return;
    }
    put_slice(w, msg->path);
    if (msg->query.ptr) {
        put_lit(w, "?");
        put_slice(w, msg->query);
    }
}

size_t h1_write_request(char *out, size_t cap, const struct http_message *msg)
{
    struct writer w = {out, out + cap, false};
    uint64_t skip = (msg->expect_continue ? 0 : ID_BIT(EXPECT)) | (msg->scheme.len ? ID_BIT(HOST) : 0);
    put_slice(&w, msg->method_text);
    put_lit(&w, " ");
    put_target(&w, msg);
    put_lit(&w, " HTTP/1.1\r\n");
    uint64_t seen = put_fields(&w, msg, skip);
    if (!(seen & ID_BIT(HOST)))
        put_field(&w, SLICE("Host"), msg->authority);
    if (msg->framing == HTTP_BODY_LENGTH)
        put_length(&w, msg->content_length);
    else if (msg->framing == HTTP_BODY_CHUNKED)
        put_lit(&w, "Transfer-Encoding: chunked\r\n");
    if (msg->upgrade && msg->te_trailers)
        put_lit(&w, "TE: trailers\r\nConnection: upgrade, TE\r\n");
    else if (msg->te_trailers)
        put_lit(&w, "TE: trailers\r\nConnection: TE\r\n");
    else if (msg->upgrade)
        put_lit(&w, "Connection: upgrade\r\n");
    put_lit(&w, "\r\n");
    return finish(&w, out);
}

static void put_status_line(struct writer *w, unsigned status, struct slice reason)
{
    iso_assert(status >= 100 && status <= 999);
    char line[] = "HTTP/1.1 000 ";
    line[9] = (char)('0' + status / 100);
    line[10] = (char)('0' + status / 10 % 10);
    line[11] = (char)('0' + status % 10);
    put(w, line, sizeof(line) - 1);
    put_slice(w, reason);
    put_lit(w, "\r\n");
}

static bool is_interim(unsigned status)
{
    return status < 200 && status != 101;
}

static void put_connection(struct writer *w, bool upgrade, unsigned client_minor, bool close)
{
    if (upgrade && close)
        put_lit(w, "Connection: upgrade, close\r\n");
    else if (upgrade)
        put_lit(w, "Connection: upgrade\r\n");
    else if (close)
        put_lit(w, "Connection: close\r\n");
    else if (client_minor == 0)
        put_lit(w, "Connection: keep-alive\r\n");
}

static void put_response_framing(struct writer *w, const struct http_message *msg, unsigned client_minor)
{
    switch ((enum http_framing)msg->framing) {
    case HTTP_BODY_LENGTH:
        put_length(w, msg->content_length);
        break;
    case HTTP_BODY_CHUNKED:
        iso_assert(client_minor >= 1);
        put_lit(w, "Transfer-Encoding: chunked\r\n");
        break;
    case HTTP_BODY_NONE:
        if (msg->has_length && msg->status >= 200 && msg->status != 204)
            put_length(w, msg->content_length);
        break;
    case HTTP_BODY_UNTIL_CLOSE:
        break;
    }
}

size_t h1_write_response(char *out, size_t cap, const struct http_message *msg, unsigned client_minor,
                         bool close)
{
    struct writer w = {out, out + cap, false};
    struct slice reason = msg->reason.ptr ? msg->reason : slice_str(http_status_reason(msg->status));
    put_status_line(&w, msg->status, reason);
    uint64_t seen = put_fields(&w, msg, 0);
    put_response_framing(&w, msg, client_minor);
    if (!is_interim(msg->status))
        put_connection(&w, msg->status == 101 || seen & ID_BIT(UPGRADE), client_minor,
                       close && msg->status != 101);
    put_lit(&w, "\r\n");
    return finish(&w, out);
}

size_t h1_write_chunk_size(char *out, uint64_t n)
{
    static const char hex[] = "0123456789abcdef";
    iso_assert(n > 0);
    size_t digits = (size_t)(67 - __builtin_clzll(n)) / 4;
    for (size_t i = digits; i-- > 0; n >>= 4)
        out[i] = hex[n & 15];
    out[digits] = '\r';
    out[digits + 1] = '\n';
    return digits + 2;
}

size_t h1_write_last_chunk(char *out, size_t cap, const struct http_message *trailers)
{
    struct writer w = {out, out + cap, false};
    put_lit(&w, "0\r\n");
    if (trailers)
        put_fields(&w, trailers, 0);
    put_lit(&w, "\r\n");
    return finish(&w, out);
}

/* The JSON body of an error; what does not fit into out[0..cap) is cut off inside the message. */
static size_t print_json_error(char *out, size_t cap, const struct h1_answer *answer)
{
    static const char tail[] = "\"}}\n";
    struct writer w = {out, out + cap - (sizeof(tail) - 1), false};
    put_lit(&w, "{\"error\":{\"code\":\"");
    w.at += json_escape(w.at, (size_t)(w.end - w.at) / 2, answer->reason_word);
    put_lit(&w, "\",\"message\":\"");
    w.at += json_escape(w.at, (size_t)(w.end - w.at), answer->body);
    w.end = out + cap;
    put(&w, tail, sizeof(tail) - 1);
    iso_assert(!w.full);
    return (size_t)(w.at - out);
}

bool h1_answer_names(const struct h1_answer *answer, struct slice field)
{
    for (uint32_t i = 0; i < answer->n_fields; i++)
        if (slice_caseeq(answer->fields[i].name, field))
            return true;
    return false;
}

struct slice h1_answer_content_type(const struct h1_answer *answer, struct slice body)
{
    if (answer->json)
        return SLICE("application/json");
    if (answer->content_type.len)
        return answer->content_type;
    return body.len && !h1_answer_names(answer, SLICE("content-type")) ? SLICE("text/plain; charset=utf-8")
                                                                       : (struct slice){0};
}

static bool is_bodyless(const struct h1_answer *answer)
{
    return answer->status < 200 || answer->status == 204 || answer->status == 304;
}

struct slice h1_answer_body(const struct h1_answer *answer, char json[H1_ANSWER_JSON_MAX])
{
    if (is_bodyless(answer))
        return (struct slice){0};
    return answer->json ? slice_of(json, print_json_error(json, H1_ANSWER_JSON_MAX, answer)) : answer->body;
}

size_t h1_write_answer(char *out, size_t cap, const struct h1_answer *answer)
{
    struct writer w = {out, out + cap, false};
    char json[H1_ANSWER_JSON_MAX];
    struct slice body = h1_answer_body(answer, json), type = h1_answer_content_type(answer, body);

    put_status_line(&w, answer->status, slice_str(http_status_reason(answer->status)));
    if (answer->date.len)
        put_field(&w, SLICE("Date"), answer->date);
    if (!is_bodyless(answer)) {
        if (type.len)
            put_field(&w, SLICE("Content-Type"), type);
        put_length(&w, body.len);
    }
    if (answer->location.len)
        put_field(&w, SLICE("Location"), answer->location);
    if (answer->retry_after_s) {
        put_lit(&w, "Retry-After: ");
        put_u64(&w, answer->retry_after_s);
        put_lit(&w, "\r\n");
    }
    for (uint32_t i = 0; i < answer->n_fields; i++)
        put_field(&w, answer->fields[i].name, answer->fields[i].value);
    for (uint32_t i = 0; i < answer->n_more; i++)
        if (!h1_answer_names(answer, answer->more[i].name))
            put_field(&w, answer->more[i].name, answer->more[i].value);
    if (!is_interim(answer->status))
        put_connection(&w, false, answer->client_minor, answer->close);
    put_lit(&w, "\r\n");
    if (!answer->head)
        put_slice(&w, body);
    return finish(&w, out);
}

/* The weight in thousandths of a media range's parameters (";level=1;q=0.5"): 1000 without a q. A malformed
 * weight counts as 0. */
static unsigned range_weight(struct slice params)
{
    struct slice param;
    while (slice_next(&params, ';', &param)) {
        param = slice_trim(param);
        if (param.len < 2 || ascii_lower(param.ptr[0]) != 'q' || param.ptr[1] != '=')
            continue;
        unsigned weight = 0, scale = 1000;
        for (size_t i = 2; i < param.len; i++) {
            unsigned digit = (unsigned char)param.ptr[i] - '0';
            if (i == 3 && param.ptr[i] == '.')
                continue;
            if (digit > 9 || scale == 0 || (i > 2 && param.ptr[3] != '.'))
                return 0;
            weight += digit * scale;
            scale /= 10;
        }
        return weight > 1000 ? 1000 : weight;
    }
    return 1000;
}

bool h1_prefers_json(struct slice accept)
{
    unsigned json = 0, text = 0;
    bool json_first =
        false; /* decides between equals: script libraries send "application/json, text/plain" */
    struct slice item;
    while (slice_next(&accept, ',', &item)) {
        size_t semi = slice_find(item, ';');
        struct slice range = slice_trim(slice_of(item.ptr, semi));
        unsigned weight = range_weight(slice_of(item.ptr + semi, item.len - semi));
        if (slice_caseeq(range, SLICE("application/json"))) {
            json = weight;
            json_first = text == 0;
        } else if (slice_caseeq(range, SLICE("text/html")) || slice_caseeq(range, SLICE("text/plain")) ||
                   slice_caseeq(range, SLICE("text/*"))) {
            text = weight > text ? weight : text;
        }
    }
    return json > text || (json && json == text && json_first);
}
