/* SPDX-License-Identifier: Apache-2.0 */
#include "core/diag.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
                                 .number = diag->errors + diag->warnings,
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

static unsigned line_of(const struct diag_entry *entry)
{
    return entry->line ? entry->line : UINT_MAX;
}

static int compare_entries(const void *a, const void *b)
{
    const struct diag_entry *x = *(struct diag_entry *const *)a, *y = *(struct diag_entry *const *)b;
    int order = strcmp(x->file, y->file);
    if (order)
        return order;
    if (line_of(x) != line_of(y))
        return line_of(x) < line_of(y) ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void diag_sort(struct iso_diag *diag)
{
    size_t n = diag->errors + diag->warnings, i = 0;
    if (n < 2)
        return;
    struct diag_entry **entries = calloc(n, sizeof(struct diag_entry *));
    iso_assert(entries != NULL);
    for (struct diag_entry *entry = diag->first; entry; entry = entry->next)
        entries[i++] = entry;
    qsort(entries, n, sizeof(*entries), compare_entries);
    for (i = 0; i + 1 < n; i++)
        entries[i]->next = entries[i + 1];
    entries[n - 1]->next = NULL;
    diag->first = entries[0];
    diag->last = entries[n - 1];
    free(entries);
}

void diag_format(const struct diag_entry *entry, struct text *out)
{
    if (*entry->file)
        text_printf(out, "%s:", entry->file);
    if (entry->line)
        text_printf(out, "%u:%u:", entry->line, entry->column);
    text_printf(out, "%s%s%s%s%s", out->len ? " " : "", entry->severity == DIAG_WARNING ? "warning: " : "",
                entry->path, *entry->path ? ": " : "", entry->message);
}

void diag_print(const struct iso_diag *diag)
{
    for (const struct diag_entry *entry = diag->first; entry; entry = entry->next) {
        struct text line;
        text_init(&line);
        diag_format(entry, &line);
        fprintf(stderr, "%s\n", line.data);
        text_fini(&line);
    }
}
