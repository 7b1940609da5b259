/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/sha1.h"

#include <openssl/sha.h>

void sha1(struct slice data, unsigned char out[SHA1_BYTES])
{
    SHA1((const unsigned char *)data.ptr, data.len, out);
}
