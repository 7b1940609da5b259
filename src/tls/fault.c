/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/fault.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tls_reason(unsigned long code)
{
    return code ? ERR_reason_error_string(code) : NULL;
}

iso_err tls_fail(struct tls_fault *fault, const char *key, const char *fmt, ...)
{
    const char *why = tls_reason(ERR_peek_last_error());
    va_list args;
    fault->key = key;
    va_start(args, fmt);
    vsnprintf(fault->text, sizeof(fault->text), fmt, args);
    va_end(args);
    size_t len = strlen(fault->text);
    if (why)
        snprintf(fault->text + len, sizeof(fault->text) - len, " (%s)", why);
    ERR_clear_error();
    return ISO_ERR_INVALID;
}
