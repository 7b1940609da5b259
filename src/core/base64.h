/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes out of their text in base64 (RFC 4648), without padding. */
#ifndef ISOBAR_CORE_BASE64_H
#define ISOBAR_CORE_BASE64_H

#include "core/slice.h"

enum base64_alphabet {
    BASE64_STANDARD, /* "+" and "/": RFC 4648 4 */
    BASE64_URL,      /* "-" and "_": RFC 4648 5 */
};

/* Into out[0..cap). `*is_canonical`: the text is the only one for these bytes (RFC 4648 3.5). False: it is no
 * base64, or the bytes do not fit. */
bool base64_decode(struct slice text, enum base64_alphabet alphabet, char *out, size_t cap, size_t *len,
                   bool *is_canonical);

#endif
