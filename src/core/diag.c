/* SPDX-License-Identifier: Apache-2.0 */
#include "core/diag.h"

#include <stdarg.h>
#include <stdio.h>

void diag_init(struct iso_diag *diag)
{
    *diag = (struct iso_diag){0};
    arena_init(&diag->arena);
}

void diag_fini(struct iso_diag *diag)
{
    arena_fini(&diag->arena);
    *diag = (struct iso_diag){0};
}

void diag_add(struct iso_diag *diag, enum diag_severity severity, const char *file, unsigned line,
              unsigned column, const char *path, const char *fmt, ...)
{
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);

    struct diag_entry *entry = arena_new(&diag->arena, struct diag_entry);
    *entry = (struct diag_entry){.severity = severity,
                                 .file = arena_str(&diag->arena, file ? file : ""),
                                 .line = line,
                                 .column = column,
                                 .path = arena_str(&diag->arena, path ? path : ""),
                                 .message = arena_str(&diag->arena, message)};
    if (diag->last)
        diag->last->next = entry;
    else
        diag->first = entry;
    diag->last = entry;
    if (severity == DIAG_ERROR)
        diag->errors++;
    else
        diag->warnings++;
}
