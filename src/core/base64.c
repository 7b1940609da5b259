/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base64.h"

static int digit_of(char c, enum base64_alphabet alphabet)
{
    return c >= 'A' && c <= 'Z'                        ? c - 'A'
           : c >= 'a' && c <= 'z'                      ? c - 'a' + 26
           : c >= '0' && c <= '9'                      ? c - '0' + 52
           : c == (alphabet == BASE64_URL ? '-' : '+') ? 62
           : c == (alphabet == BASE64_URL ? '_' : '/') ? 63
                                                       : -1;
}

bool base64_decode(struct slice text, enum base64_alphabet alphabet, char *out, size_t cap, size_t *len,
                   bool *is_canonical)
{
    unsigned bits = 0, n_bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.ptr[i], alphabet);
        if (digit < 0)
            return false;
        bits = bits << 6 | (unsigned)digit;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        if (n == cap)
            return false;
        n_bits -= 8;
        out[n++] = (char)(bits >> n_bits);
        bits &= (1u << n_bits) - 1;
    }
    *len = n;
    *is_canonical = text.len % 4 != 1 && bits == 0;
    return true;
}
