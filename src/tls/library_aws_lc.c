/* SPDX-License-Identifier: Apache-2.0 */
/* AWS-LC: BoringSSL's design with versions, a stable interface and more of OpenSSL's functions. */
#include "tls/library_internal.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

const char tls_library_name[] = "AWS-LC";

const char *tls_library_version(void)
{
    return AWSLC_VERSION_NAME " " AWSLC_VERSION_NUMBER_STRING;
}

iso_err library_set_suites(SSL_CTX *ctx, const char *suites, struct tls_fault *fault)
{
    if (!suites || SSL_CTX_set_ciphersuites(ctx, suites))
        return ISO_OK;
    ERR_clear_error();
    return tls_fail(fault, "ciphersuites",
                    "is \"%s\", expected names that AWS-LC knows, such as TLS_AES_128_GCM_SHA256", suites);
}

void library_use_memory(const struct library_memory *memory) {}
