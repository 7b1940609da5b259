/* SPDX-License-Identifier: Apache-2.0 */
/* From a server name to a number: exact names and "*.rest", which stands for one label (RFC 6125 6.4.3). */
#ifndef ISOBAR_TLS_NAMES_H
#define ISOBAR_TLS_NAMES_H

#include "core/slice.h"

struct tls_name {
    struct slice text; /* lower case */
    uint32_t index;
};

struct tls_names {
    struct tls_name *all; /* owns, and the texts */
    uint32_t n, cap;
};

/* Copies the text. */
void tls_names_add(struct tls_names *names, struct slice text, uint32_t index);
/* Once all are added: by text, those of one text by number. */
void tls_names_sort(struct tls_names *names);
void tls_names_fini(struct tls_names *names);

/* The number of the name as a client sent it, in any case and with or without a final dot; of several with
 * the same text the lowest. False: unknown, or no host name. Threads: any. */
bool tls_names_find(const struct tls_names *names, struct slice asked, uint32_t *index);

#endif
