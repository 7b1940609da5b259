/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

enum { OPTIONS_MAX = 64 };

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static struct slice skip(struct slice s, size_t n)
{
    return slice_of(s.ptr + n, s.len - n);
}

/* Reads "--name" at the front of `at`, and the value behind it; what follows goes to *rest. */
static bool read_option(struct slice at, struct help_option *option, struct slice *rest)
{
    size_t n = 2;
    if (!slice_starts(at, SLICE("--")))
        return false;
    while (n < at.len && is_name(at.ptr[n]))
        n++;
    option->name = slice_of(at.ptr + 2, n - 2);
    option->value = (struct slice){0};
    at = skip(at, n);
    if (option->name.len == 0)
        return false;
    /* A value stands behind one space: capitals, words with '|' between them, or a quoted form. */
    size_t end = 1;
    while (end < at.len && at.ptr[end] != ' ' && at.ptr[end] != ']')
        end++;
    if (at.len > 1 && at.ptr[0] == ' ' && at.ptr[1] == '\'') {
        struct slice quoted = skip(at, 2);
        end = 2 + slice_find(quoted, '\'') + 1;
    }
    struct slice value = at.len > 1 && at.ptr[0] == ' ' ? slice_of(at.ptr + 1, end - 1) : (struct slice){0};
    bool is_value =
        value.len && (is_upper(value.ptr[0]) || value.ptr[0] == '\'' || slice_find(value, '|') < value.len);
    if (is_value) {
        option->value = value;
        at = skip(at, end < at.len ? end : at.len);
    }
    *rest = at;
    return true;
}

bool help_option_line(struct slice line, struct help_option *option)
{
    *option = (struct help_option){0};
    struct slice at = slice_trim(line), rest;
    if (line.len == 0 || line.ptr[0] != ' ')
        return false;
    if (at.len > 4 && at.ptr[0] == '-' && at.ptr[1] != '-' && at.ptr[2] == ',') {
        option->letter = at.ptr[1];
        at = slice_trim(skip(at, 3));
    }
    if (!read_option(at, option, &rest))
        return false;
    option->text = slice_trim(rest);
    return true;
}

struct slice help_usage(const char *help, struct slice *rest)
{
    struct slice all = slice_str(help);
    const char *end = strstr(help, "\n\n");
    size_t n = end ? (size_t)(end - help) + 1 : all.len;
    *rest = skip(all, end ? n + 1 : n);
    return slice_of(help, n);
}

struct seen {
    struct slice names[OPTIONS_MAX];
    uint32_t n;
};

static bool is_new(struct seen *seen, struct slice name)
{
    for (uint32_t i = 0; i < seen->n; i++)
        if (slice_eq(seen->names[i], name))
            return false;
    if (seen->n < OPTIONS_MAX)
        seen->names[seen->n++] = name;
    return true;
}

void help_each_option(const char *help, void (*each)(void *context, const struct help_option *option),
                      void *context)
{
    struct seen seen = {.n = 0};
    struct help_option option;
    struct slice rest, line, usage = help_usage(help, &rest);
    while (slice_next(&rest, '\n', &line))
        if (help_option_line(line, &option) && is_new(&seen, option.name))
            each(context, &option);
    while (usage.len) {
        struct slice behind;
        option = (struct help_option){0};
        bool begins = usage.ptr[0] == '-' && read_option(usage, &option, &behind);
        if (begins && is_new(&seen, option.name))
            each(context, &option);
        usage = begins ? behind : skip(usage, 1);
    }
}

void help_each_word(const char *help, void (*each)(void *context, struct slice word), void *context)
{
    struct slice rest, line, usage = help_usage(help, &rest), word, part;
    while (slice_next(&usage, '\n', &line)) {
        struct slice words = slice_trim(line);
        if (slice_starts(words, SLICE("usage:")))
            words = slice_trim(skip(words, 6));
        bool has = slice_next(&words, ' ', &word) && slice_next(&words, ' ', &word) &&
                   slice_next(&words, ' ', &word);
        for (size_t i = 0; has && i < word.len; i++)
            has = (word.ptr[i] >= 'a' && word.ptr[i] <= 'z') || word.ptr[i] == '|';
        while (has && slice_next(&word, '|', &part))
            each(context, part);
    }
}
