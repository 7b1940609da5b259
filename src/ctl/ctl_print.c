/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include "doc/json_write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ctl_print_raw(const struct ctl_answer *answer)
{
    struct slice body = text_slice(&answer->reply.body);
    fwrite(body.ptr, 1, body.len, stdout);
    if (body.len && body.ptr[body.len - 1] != '\n')
        putchar('\n');
}

/* A list of scalars that fits on a line. */
static bool is_short(const struct doc_node *node)
{
    enum { SHORT = 72 };
    struct text text;
    bool is = node->kind == DOC_LIST;
    for (const struct doc_node *child = node->first; child && is; child = child->next)
        is = child->kind != DOC_LIST && child->kind != DOC_MAP;
    text_init(&text);
    json_write(node, NULL, &text);
    is &= text.len <= SHORT;
    text_fini(&text);
    return is || node->n == 0;
}

/* Recursion is as deep as documents may be. */
static void write_value(const struct doc_node *node, unsigned indent, struct text *out)
{
    bool is_container = node->kind == DOC_LIST || node->kind == DOC_MAP;
    if (!is_container || is_short(node)) {
        json_write(node, NULL, out);
        return;
    }
    text_printf(out, node->kind == DOC_LIST ? "[" : "{");
    for (const struct doc_node *child = node->first; child; child = child->next) {
        text_printf(out, "\n%*s", (int)indent + 2, "");
        if (node->kind == DOC_MAP) {
            text_json(out, child->key);
            text_printf(out, ": ");
        }
        write_value(child, indent + 2, out);
        if (child->next)
            text_printf(out, ",");
    }
    text_printf(out, "\n%*s%s", (int)indent, "", node->kind == DOC_LIST ? "]" : "}");
}

void ctl_print_json(const struct doc_node *node)
{
    struct text out;
    text_init(&out);
    write_value(node, 0, &out);
    text_printf(&out, "\n");
    fwrite(out.data, 1, out.len, stdout);
    text_fini(&out);
}

struct slice ctl_text(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = doc_get(map, key);
    if (!node || node->kind == DOC_NULL || node->kind == DOC_LIST || node->kind == DOC_MAP)
        return SLICE("-");
    return node->text.len ? node->text : SLICE("-");
}

void ctl_table_init(struct ctl_table *table, const char **titles, uint32_t n_columns)
{
    *table = (struct ctl_table){.titles = titles, .n_columns = n_columns};
    arena_init(&table->arena);
}

void ctl_table_fini(struct ctl_table *table)
{
    free(table->cells);
    arena_fini(&table->arena);
}

/* What a terminal would act upon is shown as '?': names come from whoever may change the configuration. */
void ctl_table_add(struct ctl_table *table, struct slice cell)
{
    if (table->n_cells == table->cap) {
        table->cap = table->cap ? table->cap * 2 : 256;
        table->cells = realloc(table->cells, table->cap * sizeof(*table->cells));
        iso_assert(table->cells != NULL);
    }
    struct slice copy = arena_slice(&table->arena, cell);
    for (size_t i = 0; i < copy.len; i++)
        if ((unsigned char)copy.ptr[i] < ' ' || copy.ptr[i] == 127)
            ((char *)copy.ptr)[i] = '?';
    table->cells[table->n_cells++] = copy;
}

void ctl_table_addf(struct ctl_table *table, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ctl_table_add(table, slice_of(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1));
}

static bool is_number(struct slice cell)
{
    for (size_t i = 0; i < cell.len; i++)
        if (!strchr("0123456789.-%", cell.ptr[i]) || !cell.ptr[i])
            return false;
    return cell.len > 0;
}

static void write_cell(const struct ctl_table *table, struct slice cell, uint32_t column, int width,
                       bool to_right, struct text *out)
{
    bool is_last = column + 1 == table->n_columns;
    text_printf(out, column ? "  " : "");
    if (to_right)
        text_printf(out, "%*.*s", width, SLICE_ARG(cell));
    else if (is_last)
        text_add(out, cell);
    else
        text_printf(out, "%-*.*s", width, SLICE_ARG(cell));
    if (is_last)
        text_printf(out, "\n");
}

void ctl_table_write(const struct ctl_table *table, struct text *out)
{
    enum { COLUMNS_MAX = 32 };
    int widths[COLUMNS_MAX];
    bool to_right[COLUMNS_MAX];
    uint32_t n = table->n_columns;
    iso_assert(n <= COLUMNS_MAX);
    for (uint32_t c = 0; c < n; c++) {
        widths[c] = (int)strlen(table->titles[c]);
        to_right[c] = table->n_cells > 0;
    }
    for (uint32_t i = 0; i < table->n_cells; i++) {
        widths[i % n] = (int)table->cells[i].len > widths[i % n] ? (int)table->cells[i].len : widths[i % n];
        to_right[i % n] &= is_number(table->cells[i]);
    }
    for (uint32_t c = 0; c < n; c++)
        write_cell(table, slice_str(table->titles[c]), c, widths[c], to_right[c], out);
    for (uint32_t i = 0; i < table->n_cells; i++)
        write_cell(table, table->cells[i], i % n, widths[i % n], to_right[i % n], out);
}
