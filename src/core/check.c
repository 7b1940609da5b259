/* SPDX-License-Identifier: Apache-2.0 */
#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void iso_check_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "isobar: %s:%d: failed: %s\n", file, line, what);
    abort();
}
