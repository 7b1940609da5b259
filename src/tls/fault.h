/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a file or setting of TLS: which key names it, and why, for `isobar check` and reloads.
 */
#ifndef ISOBAR_TLS_FAULT_H
#define ISOBAR_TLS_FAULT_H

#include "core/check.h"
#include "core/err.h"

struct tls_fault {
    const char *key; /* of the configuration: "key_file" */
    char text[320];
};

/* The library's word for an error of its queue; NULL: it has none, or there is no error. Static. */
const char *tls_reason(unsigned long code);

/* Fills the fault in and is the error to return. The library's own word for it, when there is one, stands
 * behind the text, and its error queue is empty afterwards. */
iso_err tls_fail(struct tls_fault *fault, const char *key, const char *fmt, ...) ISO_PRINTF(3, 4);

#endif
