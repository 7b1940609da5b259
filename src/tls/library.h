/* SPDX-License-Identifier: Apache-2.0 */
/* Which TLS library this program was built with: OpenSSL, BoringSSL or AWS-LC (-Dtls=). The files of tls/ are
 * written against what the three share; what they do differently is behind library_internal.h. */
#ifndef ISOBAR_TLS_LIBRARY_H
#define ISOBAR_TLS_LIBRARY_H

/* As users know it: "OpenSSL". */
extern const char tls_library_name[];
/* With the version that is loaded, which for OpenSSL may be another than the one compiled against:
 * "OpenSSL 3.0.22 25 Aug 2026". Static. */
const char *tls_library_version(void);

#endif
