/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void text_init(struct text *text)
{
    *text = (struct text){0};
}

void text_fini(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

static char *reserve(struct text *text, size_t more)
{
    if (text->cap - text->len <= more) {
        size_t cap = text->cap ? text->cap * 2 : 256;
        while (cap - text->len <= more)
            cap *= 2;
        text->data = realloc(text->data, cap);
        iso_assert(text->data != NULL);
        text->cap = cap;
    }
    return text->data + text->len;
}

void text_reserve(struct text *text, size_t more)
{
    reserve(text, more);
}

void text_add(struct text *text, struct slice s)
{
    char *at = reserve(text, s.len);
    if (s.len)
        memcpy(at, s.ptr, s.len);
    at[s.len] = '\0';
    text->len += s.len;
}

void text_printf(struct text *text, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    iso_assert(n >= 0);
    vsnprintf(reserve(text, (size_t)n + 1), (size_t)n + 1, fmt, again);
    va_end(again);
    text->len += (size_t)n;
}

size_t utf8_len(const char *str, size_t left)
{
    const unsigned char *s = (const unsigned char *)str;
    if (left == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

size_t json_escape(char *out, size_t cap, struct slice s)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0, len = 0;
    while (at < s.len) {
        char tmp[6];
        const char *from = tmp;
        size_t n, used = utf8_len(s.ptr + at, s.len - at);
        unsigned char c = (unsigned char)s.ptr[at];
        if (used == 0) {
            from = "\xef\xbf\xbd", n = 3, used = 1;
        } else if (c == '"' || c == '\\') {
            tmp[0] = '\\', tmp[1] = (char)c, n = 2;
        } else if (c < 0x20 || c == 0x7f) {
            memcpy(tmp, "\\u00", 4);
            tmp[4] = hex[c >> 4], tmp[5] = hex[c & 15], n = 6;
        } else {
            from = s.ptr + at, n = used;
        }
        if (cap - len < n)
            break;
        memcpy(out + len, from, n);
        len += n;
        at += used;
    }
    return len;
}

/* Printable ASCII that stands in JSON as it is: nearly every name and number. */
static bool is_plain(struct slice s)
{
    bool is = true;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        is &= c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    }
    return is;
}

void text_json(struct text *text, struct slice s)
{
    if (is_plain(s)) {
        char *quoted = reserve(text, s.len + 2);
        quoted[0] = quoted[s.len + 1] = '"';
        if (s.len)
            memcpy(quoted + 1, s.ptr, s.len);
        quoted[s.len + 2] = '\0';
        text->len += s.len + 2;
        return;
    }
    text_add(text, SLICE("\""));
    char *at = reserve(text, s.len * 6);
    size_t n = json_escape(at, s.len * 6, s);
    at[n] = '\0';
    text->len += n;
    text_add(text, SLICE("\""));
}
