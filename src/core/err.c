/* SPDX-License-Identifier: Apache-2.0 */
#include "core/err.h"

const char *iso_err_text(iso_err err)
{
    switch (err) {
    case ISO_OK:
        return "ok";
#define ISO_ERR(name, text)                                                                                  \
    case ISO_ERR_##name:                                                                                     \
        return text;
#include "core/errors.def"
#undef ISO_ERR
    }
    return "unknown error";
}
