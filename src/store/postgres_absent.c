/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL in builds that cannot have it. libpq brings OpenSSL into the process, and another TLS library
 * there, as a shared object, has functions of the same names: the loader would hand the one's to the other.
 */
#include "store/store_internal.h"
#include "tls/library.h"

static iso_err absent_check(struct iso_diag *diag)
{
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/store/url",
             "is of PostgreSQL, which this build is without: its client library brings OpenSSL, which cannot "
             "stand "
             "beside the TLS library of this build, %s; expected sqlite:FILE, or a build with -Dtls=openssl",
             tls_library_name);
    return ISO_ERR_INVALID;
}

const struct store_kind store_postgres = {.scheme = "postgresql", .check = absent_check};
