/* SPDX-License-Identifier: Apache-2.0 */
/* What a TLS client wants, read from its first bytes without taking part in the handshake: for listeners that
 * route by server name and pass the bytes on as they are. Pure: bytes in, slices out; no OpenSSL.
 * Source: A6; RFC 8446 4.1.2 and 5.1, RFC 6066 3, RFC 7301 3.1. */
#ifndef ISOBAR_TLS_CLIENTHELLO_H
#define ISOBAR_TLS_CLIENTHELLO_H

#include "core/slice.h"

enum {
    CLIENT_HELLO_BYTES = 16 * 1024, /* the longest hello that is read */
    CLIENT_HELLO_RECORDS = 64,      /* that it may be cut into: bounds the work of each call */
    /* More than this is never needed to reach a verdict. */
    CLIENT_HELLO_PEEK_BYTES = CLIENT_HELLO_BYTES + 4 + 5 * CLIENT_HELLO_RECORDS,
};

enum client_hello_result {
    CLIENT_HELLO_COMPLETE,
    CLIENT_HELLO_INCOMPLETE, /* call again with these bytes and more */
    CLIENT_HELLO_INVALID,    /* no TLS, or a hello that breaks its rules or our limits */
};

struct client_hello {
    struct slice server_name; /* as sent, 1 to 255 bytes without NUL; ptr NULL: none */
    struct slice alpn;        /* protocol names, each behind its length; ptr NULL: none */
    bool offers_tls_1_3;
};

/* Looks at everything that has come so far. The slices borrow from `data`, or from `scratch`
 * [CLIENT_HELLO_BYTES + 4] when the hello spans records. `*out` is written with COMPLETE only. */
enum client_hello_result client_hello_peek(const char *data, size_t len, char *scratch,
                                           struct client_hello *out);

/* Takes the next protocol name off a client_hello's `alpn`; false when none is left. */
bool client_hello_next_alpn(struct slice *rest, struct slice *name);

#endif
