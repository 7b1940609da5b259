/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/accesslog_line.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/text.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum field {
#define LOG_FIELD(kind, id, name, what) FIELD_##kind##_##id,
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    FIELD_LITERAL,
};

struct op {
    enum field field;
    struct slice literal; /* borrows from the format's own copy of its text */
};

struct accesslog_format {
    bool is_json;
    char *source; /* owns */
    size_t literal_bytes;
    uint32_t n_ops;
    struct op ops[];
};

/* Formats by a name of their own. */
static const struct {
    struct slice name, format;
} aliases[] = {
    {{"common", 6}, SLICE("{client} - - [{time_clf}] \"{request}\" {status} {sent_bytes}")},
    {{"combined", 8},
     SLICE("{client} - - [{time_clf}] \"{request}\" {status} {sent_bytes} \"{referer}\" \"{user_agent}\"")},
};

static bool find_field(struct slice name, enum field *out)
{
#define LOG_FIELD(kind, id, text, what)                                                                      \
    if (slice_eq(name, SLICE(text))) {                                                                       \
        *out = FIELD_##kind##_##id;                                                                          \
        return true;                                                                                         \
    }
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    return false;
}

static void add_literal(struct accesslog_format *format, struct slice literal)
{
    if (literal.len == 0)
        return;
    format->ops[format->n_ops++] = (struct op){FIELD_LITERAL, literal};
    format->literal_bytes += literal.len;
}

/* "text {field} text": `{{` is a brace. An opening brace without its closing one is an unknown field. */
static iso_err compile_ops(struct accesslog_format *format, struct slice rest, struct slice *what)
{
    while (rest.len) {
        size_t brace = slice_find(rest, '{');
        bool is_escape = brace + 1 < rest.len && rest.ptr[brace + 1] == '{';
        add_literal(format, slice_of(rest.ptr, brace + is_escape));
        if (brace == rest.len)
            break;
        if (is_escape) {
            rest = slice_of(rest.ptr + brace + 2, rest.len - brace - 2);
            continue;
        }
        rest = slice_of(rest.ptr + brace + 1, rest.len - brace - 1);
        size_t end = slice_find(rest, '}');
        struct op op = {0};
        *what = slice_of(rest.ptr, end);
        if (end == rest.len || !find_field(*what, &op.field))
            return ISO_ERR_INVALID;
        format->ops[format->n_ops++] = op;
        rest = slice_of(rest.ptr + end + 1, rest.len - end - 1);
    }
    return ISO_OK;
}

iso_err accesslog_format_compile(struct slice text, struct accesslog_format **out, struct slice *what)
{
    for (size_t i = 0; i < iso_countof(aliases); i++)
        if (slice_eq(text, aliases[i].name))
            text = aliases[i].format;
    /* Every op takes at least one byte of the text. */
    struct accesslog_format *format = calloc(1, sizeof(*format) + (text.len + 1) * sizeof(struct op));
    iso_assert(format != NULL);
    format->is_json = slice_eq(text, SLICE("json"));
    format->source = malloc(text.len + 1);
    iso_assert(format->source != NULL);
    memcpy(format->source, text.ptr ? text.ptr : "", text.len);
    struct slice unknown = {0};
    if (!format->is_json && compile_ops(format, slice_of(format->source, text.len), &unknown)) {
        *what = slice_of(text.ptr + (unknown.ptr - format->source), unknown.len); /* in the caller's text */
        accesslog_format_free(format);
        return ISO_ERR_INVALID;
    }
    *out = format;
    return ISO_OK;
}

bool accesslog_format_is_constant(const struct accesslog_format *format)
{
    for (uint32_t i = 0; i < format->n_ops; i++)
        if (format->ops[i].field != FIELD_LITERAL)
            return false;
    return !format->is_json;
}

void accesslog_format_free(struct accesslog_format *format)
{
    if (!format)
        return;
    free(format->source);
    free(format);
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

static char *put_number(char *p, uint64_t n)
{
    char tmp[20], *at = tmp + sizeof(tmp);
    while (n >= 100) {
        memcpy(at -= 2, digit_pairs + n % 100 * 2, 2);
        n /= 100;
    }
    if (n >= 10)
        memcpy(at -= 2, digit_pairs + n * 2, 2);
    else
        *--at = (char)('0' + n);
    size_t len = (size_t)(tmp + sizeof(tmp) - at);
    memcpy(p, at, len);
    return p + len;
}

static char *put_two(char *p, unsigned n)
{
    memcpy(p, digit_pairs + n * 2, 2);
    return p + 2;
}

static char *put_bytes(char *p, struct slice s)
{
    if (s.len)
        memcpy(p, s.ptr, s.len);
    return p + s.len;
}

static char *put_milliseconds(char *p, unsigned ms)
{
    *p++ = (char)('0' + ms / 100);
    return put_two(p, ms % 100);
}

static void read_date(struct accesslog_clock *clock, uint64_t second)
{
    time_t t = (time_t)second;
    struct tm tm;
    char text[32];
    gmtime_r(&t, &tm);
    clock->second = second;
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.", &tm);
    memcpy(clock->iso, text, sizeof(clock->iso));
    /* Not %b: month names must not follow the locale. */
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    strftime(text, sizeof(text), "%d/Mon/%Y:%H:%M:%S +0000", &tm);
    memcpy(text + 3, months[tm.tm_mon], 3);
    memcpy(clock->clf, text, sizeof(clock->clf));
}

static char *put_time(char *p, struct accesslog_clock *clock, uint64_t wall_ns)
{
    uint64_t second = wall_ns / NS_PER_S;
    if (iso_unlikely(second != clock->second))
        read_date(clock, second);
    memcpy(p, clock->iso, sizeof(clock->iso));
    p = put_milliseconds(p + sizeof(clock->iso), (unsigned)(wall_ns % NS_PER_S / NS_PER_MS));
    *p++ = 'Z';
    return p;
}

static char *put_clf(char *p, struct accesslog_clock *clock, uint64_t wall_ns)
{
    uint64_t second = wall_ns / NS_PER_S;
    if (iso_unlikely(second != clock->second))
        read_date(clock, second);
    memcpy(p, clock->clf, sizeof(clock->clf));
    return p + sizeof(clock->clf);
}

#define ALL_BYTES(b) (0x0101010101010101ull * (b))

/* Has a byte that cannot stand for itself in a JSON string or in a line of text: a control, '"', '\\', DEL or
 * one that is not ASCII. */
static inline bool needs_escape(uint64_t w)
{
    uint64_t control = w - ALL_BYTES(0x20), del = w + ALL_BYTES(1);
    uint64_t quote = w ^ ALL_BYTES('"'), backslash = w ^ ALL_BYTES('\\');
    uint64_t bad = control | del | (quote - ALL_BYTES(1)) | (backslash - ALL_BYTES(1)) | w;
    return (bad & ALL_BYTES(0x80)) != 0;
}

#ifdef __SSE2__
/* The same of sixteen bytes. Compared as signed numbers, what is not ASCII is below a space too. */
static inline bool needs_escape_16(__m128i v)
{
    __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"')), del = _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f));
    __m128i backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    return _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(low, quote), _mm_or_si128(del, backslash))) != 0;
}

/* copy_plain() of sixteen bytes and more. */
static inline bool copy_plain_16(char *p, struct slice s)
{
    __m128i v;
    for (size_t i = 0; i + 16 < s.len; i += 16) {
        v = _mm_loadu_si128((const __m128i *)(s.ptr + i));
        if (iso_unlikely(needs_escape_16(v)))
            return false;
        _mm_storeu_si128((__m128i *)(p + i), v);
    }
    v = _mm_loadu_si128((const __m128i *)(s.ptr + s.len - 16)); /* the last ones, some a second time */
    _mm_storeu_si128((__m128i *)(p + s.len - 16), v);
    return !needs_escape_16(v);
}
#endif

/* Copies s to p, eight bytes at a time, and says whether all of it could stand for itself. */
static inline bool copy_plain(char *p, struct slice s)
{
    uint64_t w;
#ifdef __SSE2__
    if (s.len >= 16)
        return copy_plain_16(p, s);
#endif
    if (s.len >= 8) {
        for (size_t i = 0; i + 8 < s.len; i += 8) {
            memcpy(&w, s.ptr + i, 8);
            if (iso_unlikely(needs_escape(w)))
                return false;
            memcpy(p + i, &w, 8);
        }
        memcpy(&w, s.ptr + s.len - 8, 8); /* the last eight, some of them a second time */
        memcpy(p + s.len - 8, &w, 8);
        return !needs_escape(w);
    }
    w = ALL_BYTES(' ');
    memcpy(&w, s.ptr, s.len);
    memcpy(p, &w, 8); /* the line's bound leaves room behind every text */
    return !needs_escape(w);
}

static struct slice cut(struct slice s)
{
    return slice_of(s.ptr, s.len < ACCESSLOG_TEXT_MAX ? s.len : ACCESSLOG_TEXT_MAX);
}

static char *put_json_text(char *p, struct slice s)
{
    s = cut(s);
    if (iso_likely(copy_plain(p, s)))
        return p + s.len;
    return p + json_escape(p, s.len * 6, s);
}

/* As nginx and HAProxy write it: what is not printable ASCII becomes \xHH, and nothing becomes "-". */
static char *put_text(char *p, struct slice s)
{
    static const char hex[] = "0123456789ABCDEF";
    if (s.len == 0) {
        *p++ = '-';
        return p;
    }
    s = cut(s);
    if (iso_likely(copy_plain(p, s)))
        return p + s.len;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            *p++ = (char)c;
        } else {
            *p++ = '\\', *p++ = 'x';
            *p++ = hex[c >> 4], *p++ = hex[c & 15];
        }
    }
    return p;
}

/* JSON: one put_json_KIND for each kind, called in the table's order; `key` is `,"name":` and the quote of a
 * text. */
#define KEY(p, key) (memcpy((p), (key), sizeof(key) - 1), (p) + sizeof(key) - 1)
#define put_json_TIME(p, id, name)                                                                           \
    p = put_time(KEY(p, "{\"" name "\":\""), clock, entry->id);                                              \
    *p++ = '"';
#define put_json_IP(p, id, name)                                                                             \
    p = KEY(p, ",\"" name "\":\"");                                                                          \
    p += ip_print(&entry->id, p);                                                                            \
    *p++ = '"';
#define put_json_PEER(p, id, name)                                                                           \
    if (!ip_eq(&entry->id, &entry->client)) {                                                                \
        put_json_IP(p, id, name)                                                                             \
    }
#define put_json_NUMBER(p, id, name) p = put_number(KEY(p, ",\"" name "\":"), entry->id);
#define put_json_TEXT(p, id, name)                                                                           \
    if (entry->id.len) {                                                                                     \
        p = put_json_text(KEY(p, ",\"" name "\":\""), entry->id);                                            \
        *p++ = '"';                                                                                          \
    }
#define put_json_WORD(p, id, name)                                                                           \
    p = put_bytes(KEY(p, ",\"" name "\":\""), slice_str(entry->id));                                         \
    *p++ = '"';
#define put_json_CLF(p, id, name)
#define put_json_SECONDS(p, id, name)
#define put_json_REQUEST(p, id, name)

static char *json_line(char *p, struct accesslog_clock *clock, const struct accesslog_entry *entry)
{
#define LOG_FIELD(kind, id, name, what) put_json_##kind(p, id, name)
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    *p++ = '}';
    return p;
}

static char *put_seconds(char *p, uint64_t us)
{
    p = put_number(p, us / 1000000);
    *p++ = '.';
    return put_milliseconds(p, (unsigned)(us / 1000 % 1000));
}

static char *put_request(char *p, const struct accesslog_entry *entry)
{
    p = put_text(p, entry->method);
    *p++ = ' ';
    p = put_text(p, entry->path);
    if (entry->query.len) {
        *p++ = '?';
        p = put_text(p, entry->query);
    }
    *p++ = ' ';
    return put_text(p, slice_str(entry->protocol));
}

#define put_op_TIME(p, id)    put_time(p, clock, entry->id)
#define put_op_CLF(p, id)     put_clf(p, clock, entry->id)
#define put_op_IP(p, id)      ((p) + ip_print(&entry->id, (p)))
#define put_op_PEER(p, id)    put_op_IP(p, id)
#define put_op_NUMBER(p, id)  put_number(p, entry->id)
#define put_op_TEXT(p, id)    put_text(p, entry->id)
#define put_op_WORD(p, id)    put_bytes(p, slice_str(entry->id))
#define put_op_SECONDS(p, id) put_seconds(p, entry->id)
#define put_op_REQUEST(p, id) put_request(p, entry)

static char *format_line(char *p, struct accesslog_clock *clock, const struct accesslog_format *format,
                         const struct accesslog_entry *entry)
{
    for (uint32_t i = 0; i < format->n_ops; i++) {
        const struct op *op = &format->ops[i];
        switch (op->field) {
#define LOG_FIELD(kind, id, name, what)                                                                      \
    case FIELD_##kind##_##id:                                                                                \
        p = put_op_##kind(p, id);                                                                            \
        break;
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
        case FIELD_LITERAL:
            p = put_bytes(p, op->literal);
            break;
        }
    }
    return p;
}

char *accesslog_line(char *out, struct accesslog_clock *clock, const struct accesslog_format *format,
                     const struct accesslog_entry *entry)
{
    char *p = format->is_json ? json_line(out, clock, entry) : format_line(out, clock, format, entry);
    *p++ = '\n';
    return p;
}

/* A field at most: the longest number, time or address with its JSON key, or the eight bytes that a short
 * text may touch; a text comes on top. */
enum { FIELD_BYTES_MAX = 72 };

#define text_bytes_TIME(id)    0
#define text_bytes_CLF(id)     0
#define text_bytes_IP(id)      0
#define text_bytes_PEER(id)    0
#define text_bytes_NUMBER(id)  0
#define text_bytes_SECONDS(id) 0
#define text_bytes_TEXT(id)    cut(entry->id).len * 6
#define text_bytes_WORD(id)    strlen(entry->id)
#define text_bytes_REQUEST(id)                                                                               \
    (text_bytes_TEXT(method) + text_bytes_TEXT(path) + text_bytes_TEXT(query) + text_bytes_WORD(protocol) +  \
     FIELD_BYTES_MAX)

static size_t json_bound(const struct accesslog_entry *entry)
{
    size_t bytes = 2;
#define LOG_FIELD(kind, id, name, what) bytes += FIELD_BYTES_MAX + text_bytes_##kind(id);
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    return bytes;
}

static size_t op_bound(enum field field, const struct accesslog_entry *entry)
{
    switch (field) {
#define LOG_FIELD(kind, id, name, what)                                                                      \
    case FIELD_##kind##_##id:                                                                                \
        return FIELD_BYTES_MAX + text_bytes_##kind(id);
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    case FIELD_LITERAL:
        return 0;
    }
    iso_unreachable("every field has a bound");
}

size_t accesslog_line_bound(const struct accesslog_format *format, const struct accesslog_entry *entry)
{
    if (format->is_json)
        return json_bound(entry);
    size_t bytes = format->literal_bytes + 1;
    for (uint32_t i = 0; i < format->n_ops; i++)
        bytes += op_bound(format->ops[i].field, entry);
    return bytes;
}
