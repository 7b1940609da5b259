/* SPDX-License-Identifier: Apache-2.0 */
/* The Host field's grammar, which is also that of an authority without user information. A comma, though the
 * grammar of registered names has it, is refused: it is what a recipient makes of two Host fields. */
#include "core/ip.h"
#include "http/message.h"

/* unreserved and sub-delims of RFC 3986 2.2 and 2.3, but for the comma. */
static const bool name_byte[256] = {
    ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['-'] = true, ['.'] = true,
    ['_'] = true,         ['~'] = true,         ['!'] = true,         ['$'] = true, ['&'] = true,
    ['\''] = true,        ['('] = true,         [')'] = true,         ['*'] = true, ['+'] = true,
    [';'] = true,         ['='] = true,
};

static bool is_hex(char c)
{
    return (unsigned)(c - '0') < 10 || (unsigned)(ascii_lower(c) - 'a') < 6;
}

/* The length of the registered name (or IPv4 address) that `s` begins with. */
static size_t name_length(struct slice s)
{
    size_t i = 0;
    while (i < s.len) {
        if (name_byte[(unsigned char)s.ptr[i]])
            i++;
        else if (s.ptr[i] == '%' && s.len - i >= 3 && is_hex(s.ptr[i + 1]) && is_hex(s.ptr[i + 2]))
            i += 3;
        else
            break;
    }
    return i;
}

/* The length of the IPv6 address in brackets that `s` begins with, or 0. */
static size_t literal_length(struct slice s)
{
    size_t end = slice_find(s, ']');
    struct ip_addr addr;
    return end < s.len && ip_parse(slice_of(s.ptr, end + 1), &addr) ? end + 1 : 0;
}

bool http_host_parse(struct slice value, struct slice *host, uint16_t *port)
{
    size_t len = value.len && value.ptr[0] == '[' ? literal_length(value) : name_length(value);
    if (len == 0)
        return false;
    uint64_t number = 0;
    if (len < value.len) {
        struct slice digits = slice_of(value.ptr + len + 1, value.len - len - 1);
        if (value.ptr[len] != ':')
            return false;
        if (digits.len && (!slice_u64(digits, &number) || number < 1 || number > 65535))
            return false;
    }
    *host = slice_of(value.ptr, len);
    *port = (uint16_t)number;
    return true;
}
