/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that come from tables of the code: a part of a file in docs/ between `<!-- table NAME -->` and
 * `<!-- end NAME -->` must be what the test makes of the table. With ISOBAR_WRITE_DOCS=1 in the environment
 * the test writes it instead: ISOBAR_WRITE_DOCS=1 meson test -C build --suite unit */
#ifndef ISOBAR_TESTS_GOLDEN_H
#define ISOBAR_TESTS_GOLDEN_H

#include "core/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static inline void golden_read(const char *path, struct text *out)
{
    char buffer[4096];
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), file)) > 0;)
        text_add(out, slice_of(buffer, n));
    fclose(file);
}

/* The part `name` of `file` (from the root of the source) is `want`. */
static inline void golden_check(const char *file, const char *name, struct slice want)
{
    const char *root = getenv("ISOBAR_SOURCE_ROOT");
    char path[1024], begin[128], end[128];
    struct text text, whole;
    if (!root)
        skip();
    snprintf(path, sizeof(path), "%s/%s", root, file);
    snprintf(begin, sizeof(begin), "<!-- table %s -->\n", name);
    snprintf(end, sizeof(end), "<!-- end %s -->\n", name);
    text_init(&text);
    golden_read(path, &text);
    char *from = strstr(text.data, begin), *to = strstr(text.data, end);
    if (!from || !to || to < from)
        fail_msg("%s has no part between %s and %s", file, begin, end);
    from += strlen(begin);
    bool is_same = slice_eq(slice_of(from, (size_t)(to - from)), want);
    if (!is_same && getenv("ISOBAR_WRITE_DOCS")) {
        text_init(&whole);
        text_add(&whole, slice_of(text.data, (size_t)(from - text.data)));
        text_add(&whole, want);
        text_add(&whole, slice_str(to));
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(whole.data, 1, whole.len, out), whole.len);
        fclose(out);
        text_fini(&whole);
        is_same = true;
    }
    text_fini(&text);
    if (!is_same)
        fail_msg("%s is not what the tables say: ISOBAR_WRITE_DOCS=1 meson test writes it", file);
}

#endif
