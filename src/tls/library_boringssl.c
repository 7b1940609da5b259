/* SPDX-License-Identifier: Apache-2.0 */
/* BoringSSL, as Debian packages Android's (android-libboringssl-dev). It has no releases and no promise of a
 * stable interface. The suites of TLS 1.3 cannot be chosen: it takes the client's first one, but ChaCha20
 * only before AES where this machine has no AES in hardware. */
#include "tls/library_internal.h"

#include "core/check.h"

#include <openssl/crypto.h>

const char tls_library_name[] = "BoringSSL";

#define TEXT_OF(number)          TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number

const char *tls_library_version(void)
{
    return "BoringSSL, interface " TEXT_OF(BORINGSSL_API_VERSION);
}

iso_err library_set_suites(SSL_CTX *ctx, const char *suites, struct tls_fault *fault)
{
    return suites
               ? tls_fail(fault, "ciphersuites",
                          "cannot be chosen in this build: its TLS library, BoringSSL, has no choice of them")
               : ISO_OK;
}

void library_use_memory(const struct library_memory *memory) {}
