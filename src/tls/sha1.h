/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 where a protocol wants it and nothing rests on it (RFC 6455 4.2.2). Threads: any. */
#ifndef ISOBAR_TLS_SHA1_H
#define ISOBAR_TLS_SHA1_H

#include "core/slice.h"

enum { SHA1_BYTES = 20 };

void sha1(struct slice data, unsigned char out[SHA1_BYTES]);

#endif
