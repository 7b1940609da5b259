/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP message head as every codec produces and consumes it: HTTP/1 parses into it, routing and rewriting
 * change it, HTTP/1 or HTTP/2 writes it out again. A message borrows all its bytes: from the receive buffer,
 * from the snapshot, or from the exchange's scratch; it is worker scratch itself and lives only while one
 * head is handled.
 *
 * Framing is decided exactly once, by http_framing_decide(), and the writers emit framing fields only from
 * that decision; the sender's own Content-Length and Transfer-Encoding fields are always dropped (A1, RFC
 * 9112 6). */
#ifndef ISOBAR_HTTP_MESSAGE_H
#define ISOBAR_HTTP_MESSAGE_H

#include "core/check.h"
#include "core/slice.h"

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_CONNECT,
    HTTP_OPTIONS,
    HTTP_TRACE,
    HTTP_PATCH,
    HTTP_METHOD_OTHER, /* a valid token that nothing treats specially */
};

enum http_field_id {
    HTTP_FIELD_OTHER = 0,
#define FIELD(id, name) HTTP_FIELD_##id,
#include "http/fields.def"
#undef FIELD
    HTTP_FIELD_COUNT
};

enum http_reject {
    HTTP_REJECT_NONE = 0,
#define REJECT(id, status, word, text) HTTP_REJECT_##id,
#include "http/reject.def"
#undef REJECT
    HTTP_REJECT_COUNT
};

enum http_framing {
    HTTP_BODY_NONE,        /* no body, and none announced */
    HTTP_BODY_LENGTH,      /* content_length bytes; 0 is announced as such */
    HTTP_BODY_CHUNKED,     /* until the last chunk */
    HTTP_BODY_UNTIL_CLOSE, /* responses only */
};

enum http_field_flag {
    HTTP_FIELD_DROP = 1 << 0, /* is not passed on */
};

struct http_field {
    const char *name;  /* borrows */
    const char *value; /* borrows; without white space around it */
    uint32_t name_len, value_len;
    uint32_t
        raw_len; /* of the whole line with its CRLF, starting at `name`, in one piece; 0: not from a buffer */
    uint8_t id;  /* enum http_field_id */
    uint8_t flags;
};

/* Fields a message can hold, ours included; limits.headers is at most HTTP_FIELDS_MAX - HTTP_FIELDS_OURS. */
enum { HTTP_FIELDS_MAX = 288, HTTP_FIELDS_OURS = 32 };

struct http_message {
    bool is_response;
    uint8_t version_minor; /* of HTTP/1.x as received: 0 or 1 */
    uint8_t method;        /* enum http_method */
    uint16_t status;
    uint8_t framing; /* enum http_framing */
    bool keep_alive; /* the sender lets its connection live on after this message */
    bool expect_continue;
    bool upgrade; /* the Upgrade field is passed on, with Connection: upgrade; a 101 without it is refused */
    bool te_trailers;                 /* TE lists trailers */
    bool has_length;                  /* Content-Length was given, also where there is no body (HEAD, 304) */
    uint64_t content_length;          /* at most INT64_MAX */
    struct slice method_text, target; /* as received */
    /* Of an absolute-form target (RFC 9112 3.2.2), else scheme is empty and authority the Host value, empty
     * when HTTP/1.0 left it out. A Host field that differs from the target is dropped: whoever writes the
     * message out sends Host from `authority` when no Host field is kept. */
    struct slice scheme, authority;
    /* Of the target: "*" or begins with '/', also where an absolute form had no path; what is sent on is path
     * and query. The query is without '?', its ptr NULL when there is none. */
    struct slice path, query;
    struct slice reason;
    uint32_t n_fields;
    struct http_field fields[HTTP_FIELDS_MAX]; /* last: the rest stays in few cache lines */
};

static inline struct slice http_field_name(const struct http_field *f)
{
    return slice_of(f->name, f->name_len);
}

static inline struct slice http_field_value(const struct http_field *f)
{
    return slice_of(f->value, f->value_len);
}

/* Empties a message without touching the field array. */
void http_message_init(struct http_message *msg, bool is_response);
/* The id of a known field name, whatever its case. */
enum http_field_id http_field_lookup(struct slice name);
/* The lower-case name of a known field. */
struct slice http_field_id_name(enum http_field_id id);
enum http_method http_method_lookup(struct slice name);
/* RFC 9110 9.2.2: safe to send twice. */
bool http_method_is_idempotent(enum http_method method);
/* The first field with the id that is not dropped, or NULL. */
struct http_field *http_message_find(struct http_message *msg, enum http_field_id id);
/* The same by name, for names that have no id; case does not matter. */
struct http_field *http_message_find_name(struct http_message *msg, struct slice name);
/* Adds a field behind the others; false when there is no room. Name (not empty) and value are borrowed. */
bool http_message_add(struct http_message *msg, struct slice name, struct slice value);
void http_message_drop(struct http_message *msg, enum http_field_id id);
void http_message_drop_name(struct http_message *msg, struct slice name);

/* Decides the framing and the connection's fate from the fields, fills framing, content_length, has_length,
 * keep_alive, expect_continue, upgrade and te_trailers, and marks as dropped: every hop-by-hop field, those
 * that Connection lists (never Host, Content-Length, Expect or the fields we add ourselves), the framing
 * fields, and fields that a backend may take for one of those once '_' is read as '-'. Upgrade stays only
 * with `upgrade`: a request has no body then, and h2c is offered in neither direction. Expect stays only with
 * `expect_continue`, which needs HTTP/1.1 and a body. To be called once per message: it drops what it reads.
 * `request_method` is that of the request for a response, the message's own otherwise. Source: RFC
 * 9110 7.6.1, 7.8, 8.6, 10.1.1; RFC 9112 6.1 to 6.3, 9.3; cases C-001 C-002 C-021 C-025 C-027 C-028 C-037. */
enum http_reject http_framing_decide(struct http_message *msg, enum http_method request_method);

unsigned http_reject_status(enum http_reject why);
const char *http_reject_word(enum http_reject why);
const char *http_reject_text(enum http_reject why);
/* "OK" for 200; "" for an unknown status. Source: RFC 9110 15 and the IANA registry. */
const char *http_status_reason(unsigned status);

/* The value of a cookie in a Cookie field's value, or of a parameter in a query; false when absent. Names are
 * compared byte by byte, the first match counts, and a name without '=' has an empty value. */
bool http_cookie_find(struct slice cookies, struct slice name, struct slice *value);
bool http_query_find(struct slice query, struct slice name, struct slice *value);
/* The same in all kept Cookie fields of a message: a client may split its cookies over several (RFC
 * 9113 8.2.3). */
bool http_message_cookie(struct http_message *msg, struct slice name, struct slice *value);
/* Is a Host value: RFC 3986 host with an optional port of 1 to 65535? `*host` is without the port but with
 * the brackets of an IPv6 address; `*port` is 0 when there is none. Refused though in the grammar: an empty
 * host, a comma, IPvFuture. Written only on success. */
bool http_host_parse(struct slice value, struct slice *host, uint16_t *port);

#endif
