/* SPDX-License-Identifier: Apache-2.0 */
/* The one error type. Functions that can fail return iso_err, 0 for success, and write their results through
 * pointers only on success. "Would block" and "need more bytes" are results, not errors, and have their own
 * enums. */
#ifndef ISOBAR_CORE_ERR_H
#define ISOBAR_CORE_ERR_H

typedef enum iso_err {
    ISO_OK = 0,
#define ISO_ERR(name, text) ISO_ERR_##name,
#include "core/errors.def"
#undef ISO_ERR
} iso_err;

#define ISO_MUST_USE __attribute__((warn_unused_result))

/* The text of an error for logs. Threads: any. */
const char *iso_err_text(iso_err err);

#endif
