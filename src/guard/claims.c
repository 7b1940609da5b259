/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/claims.h"

#include "core/base64.h"

enum { DEPTH_MOST = 16 };

struct reader {
    const char *at, *end;
};

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Behind a backslash. */
static bool skip_escape(struct reader *r)
{
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c != 'u')
        return memchr("\"\\/bfnrt", c, 8) != NULL;
    for (int i = 0; i < 4; i++)
        if (r->at == r->end || hex_value(*r->at++) < 0)
            return false;
    return true;
}

static bool skip_text(struct reader *r)
{
    if (!take(r, '"'))
        return false;
    while (r->at < r->end) {
        char c = *r->at++;
        if (c == '"')
            return true;
        if ((unsigned char)c < ' ' || (c == '\\' && !skip_escape(r)))
            return false;
    }
    return false;
}

static bool skip_digits(struct reader *r)
{
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from;
}

static bool skip_number(struct reader *r)
{
    if (*r->at == '-')
        r->at++;
    const char *from = r->at;
    if (!skip_digits(r) || (*from == '0' && r->at - from > 1))
        return false;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!skip_digits(r))
            return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        return skip_digits(r);
    }
    return true;
}

static bool skip_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool skip_value(struct reader *r, int depth);

static bool skip_list(struct reader *r, int depth)
{
    if (take(r, ']'))
        return true;
    do {
        if (!skip_value(r, depth))
            return false;
    } while (take(r, ','));
    return take(r, ']');
}

static bool skip_object(struct reader *r, int depth)
{
    if (take(r, '}'))
        return true;
    do {
        if (!skip_text(r) || !take(r, ':') || !skip_value(r, depth))
            return false;
    } while (take(r, ','));
    return take(r, '}');
}

static bool skip_value(struct reader *r, int depth)
{
    skip_blanks(r);
    if (r->at == r->end || depth == DEPTH_MOST)
        return false;
    switch (*r->at) {
    case '"':
        return skip_text(r);
    case '{':
        r->at++;
        return skip_object(r, depth + 1);
    case '[':
        r->at++;
        return skip_list(r, depth + 1);
    case 't':
        return skip_word(r, "true");
    case 'f':
        return skip_word(r, "false");
    case 'n':
        return skip_word(r, "null");
    default:
        return skip_number(r);
    }
}

bool claims_are_valid(struct slice json)
{
    struct reader r = {json.ptr, json.ptr + json.len};
    skip_blanks(&r);
    bool ok = r.at < r.end && *r.at == '{' && skip_value(&r, 0);
    skip_blanks(&r);
    return ok && r.at == r.end;
}

static enum claim_kind kind_of(char first)
{
    return first == '"'                                     ? CLAIM_TEXT
           : first == '['                                   ? CLAIM_LIST
           : first == '-' || (first >= '0' && first <= '9') ? CLAIM_NUMBER
                                                            : CLAIM_OTHER;
}

/* The next value, which is there: the JSON is valid. */
static struct claim next_value(struct reader *r)
{
    skip_blanks(r);
    const char *from = r->at;
    (void)skip_value(r, 0);
    return (struct claim){kind_of(*from), slice_of(from, (size_t)(r->at - from))};
}

bool claims_find(struct slice json, struct slice name, struct claim *out)
{
    struct reader r = {json.ptr, json.ptr + json.len};
    bool found = false;
    if (!take(&r, '{') || take(&r, '}'))
        return false;
    do {
        struct claim key = next_value(&r);
        if (!take(&r, ':'))
            return false;
        struct claim value = next_value(&r);
        if (slice_eq(slice_of(key.raw.ptr + 1, key.raw.len - 2), name)) {
            *out = value;
            found = true;
        }
    } while (take(&r, ','));
    return found;
}

static unsigned unit_of(const char *digits)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 4 | (unsigned)hex_value(digits[i]);
    return value;
}

static size_t put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* "\uD83D\uDE00" at `at` (behind the first u): the character, and the digits that it takes. Half a pair
 * stands for no character. */
static unsigned character_of(const char *at, const char *end, size_t *used)
{
    unsigned high = unit_of(at);
    *used = 4;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high < 0xdc00 && end - at >= 10 && at[4] == '\\' && at[5] == 'u') {
        unsigned low = unit_of(at + 6);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *used = 10;
            return 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
        }
    }
    return 0xfffd;
}

bool claim_text(const struct claim *claim, struct scratch *scratch, struct slice *out)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    const char *at = claim->raw.ptr + 1, *end = claim->raw.ptr + claim->raw.len - 1;
    char *to = scratch->at;
    if ((size_t)(scratch->end - to) < claim->raw.len) /* no escape makes a text longer */
        return false;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        char c = at[1];
        at += 2;
        if (c == 'u') {
            size_t used;
            to += put_utf8(to, character_of(at, end, &used));
            at += used;
            continue;
        }
        for (size_t i = 0; i + 1 < sizeof(escapes); i += 2)
            if (escapes[i] == c)
                *to++ = escapes[i + 1];
    }
    *out = slice_of(scratch->at, (size_t)(to - scratch->at));
    scratch->at = to;
    return true;
}

bool claim_seconds(const struct claim *claim, uint64_t *out)
{
    struct slice whole = slice_of(claim->raw.ptr, slice_find(claim->raw, '.'));
    return whole.len <= 16 && slice_u64(whole, out) && *out <= 1ull << 53;
}

bool claim_has_text(const struct claim *claim, struct slice wanted, struct scratch scratch)
{
    struct slice text;
    if (claim->kind == CLAIM_TEXT)
        return claim_text(claim, &scratch, &text) && slice_eq(text, wanted);
    if (claim->kind != CLAIM_LIST)
        return false;
    struct reader r = {claim->raw.ptr + 1, claim->raw.ptr + claim->raw.len};
    if (take(&r, ']'))
        return false;
    do {
        struct claim item = next_value(&r);
        if (item.kind == CLAIM_TEXT && claim_has_text(&item, wanted, scratch))
            return true;
    } while (take(&r, ','));
    return false;
}

bool claims_decode64(struct slice text, struct scratch *scratch, struct slice *out)
{
    size_t len;
    bool is_canonical;
    if (!base64_decode(text, BASE64_URL, scratch->at, (size_t)(scratch->end - scratch->at), &len,
                       &is_canonical) ||
        !is_canonical)
        return false;
    *out = slice_of(scratch->at, len);
    scratch->at += len;
    return true;
}
