/* SPDX-License-Identifier: Apache-2.0 */
#include "config/redis_url.h"

enum { HOST_MAX = 255, DB_MAX = 65535 };

static bool take_prefix(struct slice *s, struct slice prefix)
{
    if (!slice_starts(*s, prefix))
        return false;
    *s = slice_of(s->ptr + prefix.len, s->len - prefix.len);
    return true;
}

static unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    unsigned letter = (unsigned)(ascii_lower(c) - 'a');
    return letter < 6 ? letter + 10 : 16;
}

static bool decode(struct slice text, struct arena *arena, struct slice *out)
{
    struct slice copy = arena_slice(arena, text);
    char *to = (char *)copy.ptr;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '%') {
            to[n++] = text.ptr[i];
            continue;
        }
        if (text.len - i < 3)
            return false;
        unsigned high = hex_digit(text.ptr[i + 1]), low = hex_digit(text.ptr[i + 2]);
        if (high > 15 || low > 15)
            return false;
        to[n++] = (char)(high << 4 | low);
        i += 2;
    }
    *out = slice_of(copy.ptr, n);
    return true;
}

static bool parse_number(struct slice s, uint32_t most, uint32_t *out)
{
    uint32_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.ptr[i] - '0';
        if (digit > 9 || (value = value * 10 + digit) > most)
            return false;
    }
    *out = value;
    return s.len > 0;
}

static bool parse_credentials(struct slice text, struct arena *arena, struct redis_url *url)
{
    size_t colon = slice_find(text, ':');
    struct slice user = slice_of(text.ptr, colon), password = {0};
    if (colon < text.len)
        password = slice_of(text.ptr + colon + 1, text.len - colon - 1);
    return decode(user, arena, &url->user) && decode(password, arena, &url->password) &&
           url->password.len > 0;
}

static bool parse_host(struct slice text, struct arena *arena, struct redis_url *url)
{
    bool is_bracketed = text.len && text.ptr[0] == '[';
    size_t end = slice_find(text, is_bracketed ? ']' : ':'), start = is_bracketed ? 1 : 0;
    uint32_t port = 6379;
    if (is_bracketed && end == text.len)
        return false;
    struct slice rest = slice_of(text.ptr + end + start, text.len - end - start);
    if (rest.len && (rest.ptr[0] != ':' || !parse_number(slice_of(rest.ptr + 1, rest.len - 1), 65535, &port)))
        return false;
    url->host = arena_slice(arena, slice_of(text.ptr + start, end - start));
    url->port = (uint16_t)port;
    for (size_t i = 0; i < url->host.len; i++)
        if (url->host.ptr[i] <= ' ' || url->host.ptr[i] >= 0x7f)
            return false;
    return url->host.len > 0 && url->host.len <= HOST_MAX && port > 0;
}

bool redis_url_parse(struct slice text, struct arena *arena, struct redis_url *out, const char **why)
{
    struct redis_url url = {0};
    url.is_tls = slice_starts(text, SLICE("rediss://"));
    *why = "expected redis://[[user]:password@]host[:port][/db] or rediss://...";
    if (!take_prefix(&text, url.is_tls ? SLICE("rediss://") : SLICE("redis://")))
        return false;
    size_t slash = slice_find(text, '/');
    struct slice authority = slice_of(text.ptr, slash);
    struct slice db =
        slash < text.len ? slice_of(text.ptr + slash + 1, text.len - slash - 1) : slice_of("", 0);
    size_t at = slice_find(authority, '@');
    if (at < authority.len) {
        if (!parse_credentials(slice_of(authority.ptr, at), arena, &url)) {
            *why = "expected a password, percent-encoded where it has signs such as @ : / or %";
            return false;
        }
        authority = slice_of(authority.ptr + at + 1, authority.len - at - 1);
    }
    if (!parse_host(authority, arena, &url))
        return false;
    if (db.len && !parse_number(db, DB_MAX, &url.db)) {
        *why = "expected the number of a database behind the host";
        return false;
    }
    *out = url;
    return true;
}
