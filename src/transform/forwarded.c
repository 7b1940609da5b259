/* SPDX-License-Identifier: Apache-2.0 */
/* This runs for every request, so its lines are printed by hand, one behind the other, into scratch: they are
 * fields like those from a receive buffer, and the HTTP/1 writer copies all of them at once. No byte that an
 * untrusted peer sent is read for a decision. */
#include "transform/forwarded.h"

#include "core/print.h"

bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct ip_addr *addr)
{
    for (uint32_t i = 0; i < trust->n; i++)
        if (ip_prefix_has(&trust->prefixes[i], addr))
            return true;
    return false;
}

static bool is_port(struct slice s)
{
    uint64_t port;
    return s.len <= 5 && slice_u64(s, &port) && port <= 65535;
}

/* An entry of X-Forwarded-For: an address, with a port behind it or without. */
static bool parse_entry(struct slice entry, struct ip_addr *addr)
{
    if (ip_parse(entry, addr))
        return true;
    const char *colon = entry.len ? memrchr(entry.ptr, ':', entry.len) : NULL;
    if (!colon)
        return false;
    struct slice host = slice_of(entry.ptr, (size_t)(colon - entry.ptr));
    struct slice port = slice_of(colon + 1, entry.len - host.len - 1);
    bool is_v6 = slice_find(host, ':') < host.len;
    return is_port(port) && (!is_v6 || host.ptr[0] == '[') && ip_parse(host, addr);
}

/* Takes the part behind the last comma off `*rest`; the caller stops when rest->ptr is NULL. */
static struct slice take_last(struct slice *rest)
{
    const char *comma = rest->len ? memrchr(rest->ptr, ',', rest->len) : NULL;
    if (!comma) {
        struct slice all = *rest;
        *rest = (struct slice){0};
        return slice_trim(all);
    }
    struct slice last = slice_of(comma + 1, rest->len - (size_t)(comma + 1 - rest->ptr));
    rest->len = (size_t)(comma - rest->ptr);
    return slice_trim(last);
}

struct ip_addr forwarded_client(const struct forwarded_trust *trust, const struct ip_addr *peer,
                                const struct http_message *msg)
{
    struct ip_addr client = *peer, entry;
    if (trust->n == 0 || !forwarded_is_trusted(trust, peer))
        return client;
    for (uint32_t i = msg->n_fields; i-- > 0;) {
        const struct http_field *f = &msg->fields[i];
        if (f->id != HTTP_FIELD_X_FORWARDED_FOR || f->flags & HTTP_FIELD_DROP)
            continue;
        struct slice rest = http_field_value(f);
        while (rest.ptr) {
            if (!parse_entry(take_last(&rest), &entry))
                return client;
            client = entry;
            if (!forwarded_is_trusted(trust, &client))
                return client;
        }
    }
    return client;
}

#define ID_BIT(id) (1ull << HTTP_FIELD_##id)
_Static_assert(HTTP_FIELD_COUNT <= 64, "a set of field ids is one word");

enum {
    LINES = 5,
    UUID_LEN = 36,
    REQUEST_ID_MAX = 128,
    /* All lines with the longest values, but for the received X-Forwarded-For and the Host. */
    FIXED_BYTES = sizeof("X-Forwarded-For: X-Forwarded-Proto: https\r\nX-Forwarded-Host: \r\n"
                         "X-Forwarded-Port: 65535\r\nX-Request-Id: \r\n\r\n") +
                  IP_TEXT_MAX + UUID_LEN,
};

/* Lines are made at `at`. */
struct maker {
    struct http_message *msg;
    char *at;
};

static void drop_received(struct http_message *msg)
{
    const uint64_t ours = ID_BIT(X_FORWARDED_FOR) | ID_BIT(X_FORWARDED_HOST) | ID_BIT(X_FORWARDED_PORT) |
                          ID_BIT(X_FORWARDED_PROTO) | ID_BIT(X_REQUEST_ID) | ID_BIT(X_REAL_IP) |
                          ID_BIT(FORWARDED) | ID_BIT(X_CLIENT_CERT_SUBJECT) | ID_BIT(X_CLIENT_CERT_SHA256);
    for (struct http_field *f = msg->fields, *end = f + msg->n_fields; f < end; f++)
        if (1ull << f->id & ours)
            f->flags |= HTTP_FIELD_DROP;
}

static bool is_sane_request_id(struct slice id)
{
    if (id.len == 0 || id.len > REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (id.ptr[i] <= ' ' || id.ptr[i] >= 0x7f)
            return false;
    return true;
}

/* Joins the lines of X-Forwarded-For behind maker->at, drops what is replaced, and reports the ids that stay
 * as the trusted peer sent them. False when the joined lines do not fit before `limit`. */
static bool take_over(struct maker *maker, const char *limit, uint64_t *kept, struct slice *request_id)
{
    *kept = 0;
    for (struct http_field *f = maker->msg->fields, *end = f + maker->msg->n_fields; f < end; f++) {
        if (f->flags & HTTP_FIELD_DROP)
            continue;
        if (f->id == HTTP_FIELD_X_FORWARDED_FOR) {
            f->flags |= HTTP_FIELD_DROP;
            if ((size_t)(limit - maker->at) < (size_t)f->value_len + 2)
                return false;
            if (f->value_len == 0)
                continue;
            memcpy(maker->at, f->value, f->value_len);
            memcpy(maker->at + f->value_len, ", ", 2);
            maker->at += f->value_len + 2;
        } else if (f->id == HTTP_FIELD_X_REQUEST_ID) {
            if (*kept & ID_BIT(X_REQUEST_ID) || !is_sane_request_id(http_field_value(f))) {
                f->flags |= HTTP_FIELD_DROP;
                continue;
            }
            *kept |= ID_BIT(X_REQUEST_ID);
            *request_id = http_field_value(f);
        } else {
            *kept |= 1ull << f->id;
        }
    }
    return true;
}

static inline void put(struct maker *maker, const char *bytes, size_t n)
{
    memcpy(maker->at, bytes, n);
    maker->at += n;
}

#define put_lit(maker, lit) put(maker, "" lit, sizeof(lit) - 1)

/* Ends the line that began at `line` with a name of `name_len` bytes and ": ". */
static void end_line(struct maker *maker, uint8_t id, char *line, uint32_t name_len)
{
    const char *value = line + name_len + 2;
    uint32_t value_len = (uint32_t)(maker->at - value);
    put_lit(maker, "\r\n");
    maker->msg->fields[maker->msg->n_fields++] = (struct http_field){.name = line,
                                                                     .value = value,
                                                                     .name_len = name_len,
                                                                     .value_len = value_len,
                                                                     .raw_len = (uint32_t)(maker->at - line),
                                                                     .id = id};
}

static void put_proto(struct maker *maker, bool tls)
{
    char *line = maker->at;
    put_lit(maker, "X-Forwarded-Proto: http");
    if (tls)
        put_lit(maker, "s");
    end_line(maker, HTTP_FIELD_X_FORWARDED_PROTO, line, sizeof("X-Forwarded-Proto") - 1);
}

static void put_host(struct maker *maker, struct slice host)
{
    char *line = maker->at;
    put_lit(maker, "X-Forwarded-Host: ");
    put(maker, host.ptr, host.len);
    end_line(maker, HTTP_FIELD_X_FORWARDED_HOST, line, sizeof("X-Forwarded-Host") - 1);
}

static void put_port(struct maker *maker, uint16_t port)
{
    char *line = maker->at;
    put_lit(maker, "X-Forwarded-Port: ");
    maker->at += print_u64(maker->at, port);
    end_line(maker, HTTP_FIELD_X_FORWARDED_PORT, line, sizeof("X-Forwarded-Port") - 1);
}

static char *put_hex(char *out, uint64_t v, unsigned from_bit, unsigned digits)
{
    static const char hex[] = "0123456789abcdef";
    for (unsigned i = 0; i < digits; i++)
        out[i] = hex[v >> (from_bit - 4 * i) & 15];
    return out + digits;
}

/* UUIDv7, RFC 9562 5.7: 48 bits of milliseconds, version, 12 random bits, variant, 62 random bits. */
static void print_uuid(char out[UUID_LEN], uint64_t wall_ms, struct rng *rng)
{
    uint64_t high = wall_ms << 16 | 0x7000 | rng_next(rng) >> 52;
    uint64_t low = 1ull << 63 | rng_next(rng) >> 2;
    char *at = put_hex(out, high, 60, 8);
    *at++ = '-';
    at = put_hex(at, high, 28, 4);
    *at++ = '-';
    at = put_hex(at, high, 12, 4);
    *at++ = '-';
    at = put_hex(at, low, 60, 4);
    *at++ = '-';
    put_hex(at, low, 44, 12);
}

static struct slice put_request_id(struct maker *maker, uint64_t wall_ms, struct rng *rng)
{
    char *line = maker->at;
    put_lit(maker, "X-Request-Id: ");
    struct slice id = slice_of(maker->at, UUID_LEN);
    print_uuid(maker->at, wall_ms, rng);
    maker->at += UUID_LEN;
    end_line(maker, HTTP_FIELD_X_REQUEST_ID, line, sizeof("X-Request-Id") - 1);
    return id;
}

bool forwarded_apply(struct forwarded_facts *facts, struct http_message *msg, uint64_t wall_ms,
                     struct rng *rng, struct scratch *scratch)
{
    struct maker maker = {msg, scratch->at};
    size_t room = (size_t)(scratch->end - scratch->at);
    uint64_t kept = 0;
    if (msg->n_fields > HTTP_FIELDS_MAX - LINES || room < FIXED_BYTES + msg->authority.len)
        return false;

    put_lit(&maker, "X-Forwarded-For: ");
    const char *limit = maker.at + room - FIXED_BYTES - msg->authority.len;
    if (!facts->peer_trusted)
        drop_received(msg);
    else if (!take_over(&maker, limit, &kept, &facts->request_id))
        return false;
    maker.at += ip_print(facts->peer, maker.at);
    end_line(&maker, HTTP_FIELD_X_FORWARDED_FOR, scratch->at, sizeof("X-Forwarded-For") - 1);

    if (!(kept & ID_BIT(X_FORWARDED_PROTO)))
        put_proto(&maker, facts->tls);
    if (!(kept & ID_BIT(X_FORWARDED_HOST)) && msg->authority.len)
        put_host(&maker, msg->authority);
    if (!(kept & ID_BIT(X_FORWARDED_PORT)) && facts->local_port)
        put_port(&maker, facts->local_port);
    if (!(kept & ID_BIT(X_REQUEST_ID)))
        facts->request_id = put_request_id(&maker, wall_ms, rng);
    scratch->at = maker.at;
    return true;
}
