/* SPDX-License-Identifier: Apache-2.0 */
/* Where a message ends and what happens to its connection, decided once from the fields. Two walks: the first
 * reads what the fields say, then the decision is taken, then only if Connection names further fields a
 * second walk drops those. Whatever two recipients could read differently is refused here, whichever side
 * sent it; what is not refused is written out again from the decision alone, never from the bytes received
 * (A1; RFC 9112 6 and 9.3; RFC 9110 7.6.1). */
#include "http/message.h"
#include "http/names.h"

/* More options than this in Connection are refused: each is compared with every field, so the product must
 * stay small. Real messages have one to three. */
enum { LISTED_MAX = 32 };

struct facts {
    uint32_t n_lengths, n_codings, n_expects, n_upgrades;
    struct slice length, coding, expect; /* the first of each; borrow from the message */
    bool lengths_differ;
    bool close, keep_alive, lists_upgrade; /* options of Connection */
    bool offers_h2c;                       /* in Upgrade */
    bool te_trailers;
    uint32_t n_listed;
    struct slice listed[LISTED_MAX]; /* further options of Connection */
};

/* The next element of a comma-separated list, trimmed; empty elements are passed over (RFC 9110 5.6.1). */
static bool next_element(struct slice *list, struct slice *element)
{
    while (slice_next(list, ',', element)) {
        *element = slice_trim(*element);
        if (element->len)
            return true;
    }
    return false;
}

static enum http_reject read_connection(struct facts *facts, struct slice list)
{
    struct slice option;
    while (next_element(&list, &option)) {
        if (http_is_word(option, "close"))
            facts->close = true;
        else if (http_is_word(option, "keep-alive"))
            facts->keep_alive = true;
        else if (http_is_word(option, "upgrade"))
            facts->lists_upgrade = true;
        else if (facts->n_listed == LISTED_MAX)
            return HTTP_REJECT_BAD_FIELD;
        else
            facts->listed[facts->n_listed++] = option;
    }
    return HTTP_REJECT_NONE;
}

static void read_upgrade(struct facts *facts, struct slice list)
{
    struct slice protocol;
    facts->n_upgrades++;
    while (next_element(&list, &protocol)) {
        protocol.len = slice_find(protocol, '/');
        /* Never passed on: an h2c connection behind us would be one whose requests we do not see (C-028). */
        if (http_is_word(protocol, "h2c"))
            facts->offers_h2c = true;
    }
}

static void read_te(struct facts *facts, struct slice list)
{
    struct slice coding;
    while (next_element(&list, &coding))
        if (http_is_word(coding, "trailers"))
            facts->te_trailers = true;
}

/* Fields that tell targets who the client is: only ours may reach them. */
static bool is_ours(enum http_field_id id)
{
    switch (id) {
    case HTTP_FIELD_X_CLIENT_CERT_SHA256:
    case HTTP_FIELD_X_CLIENT_CERT_SUBJECT:
    case HTTP_FIELD_X_FORWARDED_FOR:
    case HTTP_FIELD_X_FORWARDED_HOST:
    case HTTP_FIELD_X_FORWARDED_PORT:
    case HTTP_FIELD_X_FORWARDED_PROTO:
    case HTTP_FIELD_X_REAL_IP:
    case HTTP_FIELD_X_REQUEST_ID:
        return true;
    default:
        return false;
    }
}

/* Fields that a backend behind CGI, WSGI or the like would take for one that we decide or write ourselves. */
static bool is_dangerous_lookalike(struct slice name)
{
    enum http_field_id id = http_field_lookalike(name);
    return id == HTTP_FIELD_CONTENT_LENGTH || id == HTTP_FIELD_TRANSFER_ENCODING || is_ours(id);
}

static enum http_reject read_field(struct facts *facts, struct http_field *f)
{
    struct slice value = http_field_value(f);
    switch (f->id) {
    case HTTP_FIELD_OTHER:
        if (is_dangerous_lookalike(http_field_name(f)))
            f->flags |= HTTP_FIELD_DROP;
        return HTTP_REJECT_NONE;
    case HTTP_FIELD_CONTENT_LENGTH:
        if (facts->n_lengths++ == 0)
            facts->length = value;
        else if (!slice_eq(facts->length, value))
            facts->lengths_differ = true;
        break;
    case HTTP_FIELD_TRANSFER_ENCODING:
        if (facts->n_codings++ == 0)
            facts->coding = value;
        break;
    case HTTP_FIELD_CONNECTION:
        f->flags |= HTTP_FIELD_DROP;
        return read_connection(facts, value);
    case HTTP_FIELD_UPGRADE:
        read_upgrade(facts, value);
        return HTTP_REJECT_NONE;
    case HTTP_FIELD_TE:
        read_te(facts, value);
        break;
    case HTTP_FIELD_EXPECT:
        if (facts->n_expects++ == 0)
            facts->expect = value;
        return HTTP_REJECT_NONE;
    default: /* the rest of hop_ids */
        break;
    }
    f->flags |= HTTP_FIELD_DROP;
    return HTTP_REJECT_NONE;
}

#define ID_BIT(id) (1ull << HTTP_FIELD_##id)
_Static_assert(HTTP_FIELD_COUNT <= 64, "a set of field ids is one word");

/* Fields that mean something for this hop. */
static const uint64_t hop_ids = ID_BIT(CONNECTION) | ID_BIT(CONTENT_LENGTH) | ID_BIT(EXPECT) |
                                ID_BIT(HTTP2_SETTINGS) | ID_BIT(KEEP_ALIVE) | ID_BIT(PROXY_CONNECTION) |
                                ID_BIT(TE) | ID_BIT(TRANSFER_ENCODING) | ID_BIT(UPGRADE);

/* Reads what matters out of the fields and drops those that never pass. Most fields are none of those: one
 * bit test for each is 12 ns a head faster than a switch (bench_parse, mixed requests). */
static enum http_reject read_fields(struct http_message *msg, struct facts *facts)
{
    for (struct http_field *f = msg->fields, *end = f + msg->n_fields; f < end; f++) {
        bool suspicious = (f->id == HTTP_FIELD_OTHER) & http_field_may_be_known(f->name, f->name_len);
        if (iso_likely(!suspicious && !(hop_ids >> f->id & 1)) || f->flags & HTTP_FIELD_DROP)
            continue;
        enum http_reject why = read_field(facts, f);
        if (why)
            return why;
    }
    return HTTP_REJECT_NONE;
}

static bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if ((unsigned)(ascii_lower(c) - 'a') >= 26 && (unsigned)(c - '0') >= 10 &&
            !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

/* Is Transfer-Encoding one "chunked"? Otherwise only a clean list of other codings that ends in chunked is
 * merely unknown to us: its end could be found, its content not be decoded (RFC 9112 6.1 asks for 501). */
static enum http_reject check_coding(const struct http_message *msg, const struct facts *facts)
{
    struct slice list = facts->coding, coding;
    if (msg->version_minor == 0 || facts->n_codings > 1)
        return HTTP_REJECT_BAD_CODING;
    if (http_is_word(list, "chunked"))
        return HTTP_REJECT_NONE;
    bool ends_chunked = false;
    while (slice_next(&list, ',', &coding)) {
        coding = slice_trim(coding);
        if (ends_chunked || !is_token(coding))
            return HTTP_REJECT_BAD_CODING;
        ends_chunked = http_is_word(coding, "chunked");
    }
    return ends_chunked ? HTTP_REJECT_CODING_UNKNOWN : HTTP_REJECT_BAD_CODING;
}

static enum http_reject set_length(struct http_message *msg, struct slice digits)
{
    uint64_t length;
    /* One bit is left free so that sums of lengths and offsets cannot wrap. */
    if (!slice_u64(digits, &length) || length > INT64_MAX)
        return HTTP_REJECT_BAD_LENGTH;
    msg->content_length = length;
    msg->has_length = true;
    return HTTP_REJECT_NONE;
}

static enum http_reject request_framing(struct http_message *msg, const struct facts *facts)
{
    if (facts->n_codings) {
        if (facts->n_lengths)
            return HTTP_REJECT_LENGTH_AND_CODING;
        msg->framing = HTTP_BODY_CHUNKED;
        return check_coding(msg, facts);
    }
    if (facts->n_lengths == 0) {
        msg->framing = HTTP_BODY_NONE;
        return HTTP_REJECT_NONE;
    }
    if (facts->n_lengths > 1)
        return HTTP_REJECT_BAD_LENGTH;
    msg->framing = HTTP_BODY_LENGTH;
    return set_length(msg, facts->length);
}

/* A backend may repeat its length; RFC 9110 8.6 lets a recipient read "7, 7" as 7. */
static enum http_reject response_length(struct http_message *msg, const struct facts *facts)
{
    struct slice list = facts->length, first, next;
    if (facts->lengths_differ || !slice_next(&list, ',', &first))
        return HTTP_REJECT_BAD_LENGTH;
    first = slice_trim(first);
    while (slice_next(&list, ',', &next))
        if (!slice_eq(first, slice_trim(next)))
            return HTTP_REJECT_BAD_LENGTH;
    return set_length(msg, first);
}

static enum http_reject response_framing(struct http_message *msg, const struct facts *facts,
                                         enum http_method request_method)
{
    msg->framing = HTTP_BODY_NONE;
    if (msg->status < 200 || msg->status == 204)
        return HTTP_REJECT_NONE;
    if (request_method == HTTP_HEAD || msg->status == 304) /* the length is that of another answer (C-025) */
        return facts->n_lengths ? response_length(msg, facts) : HTTP_REJECT_NONE;
    if (facts->n_codings) {
        if (facts->n_lengths)
            return HTTP_REJECT_LENGTH_AND_CODING;
        msg->framing = HTTP_BODY_CHUNKED;
        return check_coding(msg, facts);
    }
    if (facts->n_lengths) {
        msg->framing = HTTP_BODY_LENGTH;
        return response_length(msg, facts);
    }
    msg->framing = HTTP_BODY_UNTIL_CLOSE;
    return HTTP_REJECT_NONE;
}

static bool has_body(const struct http_message *msg)
{
    return msg->framing != HTTP_BODY_NONE && (msg->framing != HTTP_BODY_LENGTH || msg->content_length > 0);
}

/* Expect means something only in HTTP/1.1 and before a body; elsewhere it is ignored, so it is not passed on
 * either (RFC 9110 10.1.1; C-021). */
static enum http_reject decide_expect(struct http_message *msg, const struct facts *facts)
{
    if (facts->n_expects == 0)
        return HTTP_REJECT_NONE;
    if (msg->version_minor == 0) {
        http_message_drop(msg, HTTP_FIELD_EXPECT);
        return HTTP_REJECT_NONE;
    }
    if (facts->n_expects > 1 || !http_is_word(facts->expect, "100-continue"))
        return HTTP_REJECT_BAD_EXPECT;
    msg->expect_continue = has_body(msg);
    if (!msg->expect_continue)
        http_message_drop(msg, HTTP_FIELD_EXPECT);
    return HTTP_REJECT_NONE;
}

/* A request with a body may not change the protocol behind it: after the 101 the two ends would have to agree
 * on where the body ended. Of interim responses only the 101 names a protocol. */
static bool may_upgrade(const struct http_message *msg, const struct facts *facts)
{
    if (msg->version_minor == 0 || facts->offers_h2c)
        return false;
    if (!msg->is_response)
        return facts->lists_upgrade && !has_body(msg);
    return msg->status == 101 || (msg->status >= 200 && facts->lists_upgrade);
}

static void decide_upgrade(struct http_message *msg, const struct facts *facts)
{
    msg->upgrade = facts->n_upgrades && may_upgrade(msg, facts);
    if (facts->n_upgrades && !msg->upgrade)
        http_message_drop(msg, HTTP_FIELD_UPGRADE);
}

/* Fields that Connection cannot remove: what was decided from them here, or what the proxy writes or extends
 * itself; a client that could make it leave one out would speak to the backend in the proxy's name (C-037;
 * CVE-2022-31813). */
static bool is_protected(enum http_field_id id)
{
    return id == HTTP_FIELD_HOST || id == HTTP_FIELD_CONTENT_LENGTH || id == HTTP_FIELD_EXPECT ||
           id == HTTP_FIELD_FORWARDED || id == HTTP_FIELD_VIA || is_ours(id);
}

static void drop_listed(struct http_message *msg, const struct facts *facts)
{
    for (uint32_t i = 0; i < facts->n_listed; i++)
        if (!is_protected(http_field_lookup(facts->listed[i])))
            http_message_drop_name(msg, facts->listed[i]);
}

enum http_reject http_framing_decide(struct http_message *msg, enum http_method request_method)
{
    struct facts facts;
    memset(&facts, 0, offsetof(struct facts, listed));
    enum http_reject why = read_fields(msg, &facts);
    if (why)
        return why;
    why = msg->is_response ? response_framing(msg, &facts, request_method) : request_framing(msg, &facts);
    if (why)
        return why;
    if (!msg->is_response && (why = decide_expect(msg, &facts)))
        return why;
    decide_upgrade(msg, &facts);
    msg->te_trailers = facts.te_trailers;
    msg->keep_alive =
        !facts.close && (msg->version_minor > 0 || facts.keep_alive) && msg->framing != HTTP_BODY_UNTIL_CLOSE;
    drop_listed(msg, &facts);
    return HTTP_REJECT_NONE;
}
