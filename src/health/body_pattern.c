/* SPDX-License-Identifier: Apache-2.0 */
#include "health/body_pattern.h"

#include "core/check.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

/* 100,000 steps of a pattern that goes back and forth over 64 KiB are some milliseconds. */
enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 1000, HEAP_LIMIT_KIB = 1024 };

struct body_pattern {
    pcre2_code *code;             /* owns, as all below */
    pcre2_match_context *context; /* health thread only, like the next */
    pcre2_match_data *result;
};

struct body_pattern *body_pattern_new(struct slice text)
{
    struct body_pattern *pattern = calloc(1, sizeof(*pattern));
    int error;
    PCRE2_SIZE offset;
    iso_assert(pattern != NULL);
    pattern->code = pcre2_compile((PCRE2_SPTR)text.ptr, text.len, PCRE2_NEVER_UTF | PCRE2_DOLLAR_ENDONLY,
                                  &error, &offset, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    pattern->result = pcre2_match_data_create(1, NULL);
    iso_assert(pattern->code && pattern->context && pattern->result);
    pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
    pcre2_set_depth_limit(pattern->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
    return pattern;
}

void body_pattern_free(struct body_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_data_free(pattern->result);
    pcre2_match_context_free(pattern->context);
    pcre2_code_free(pattern->code);
    free(pattern);
}

bool body_pattern_matches(const struct body_pattern *pattern, struct slice body)
{
    PCRE2_SPTR bytes = (PCRE2_SPTR)(body.ptr ? body.ptr : "");
    return pcre2_match(pattern->code, bytes, body.len, 0, 0, pattern->result, pattern->context) >= 0;
}
