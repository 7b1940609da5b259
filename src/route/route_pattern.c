/* SPDX-License-Identifier: Apache-2.0 */
/* Two limits hold the time of a match down. PCRE2 counts backtracking and stops at MATCH_LIMIT: the patterns
 * that would take exponential time end within 40 us. What it does not count is the new start at each byte
 * that a pattern without ^ makes, which is quadratic in the subject ("[^/]+[.]php$" on one long segment: 33
 * ms for 8,000 bytes), so such a pattern is tried on short subjects only. Figures: bench/route.c. */
#include "route/route_pattern.h"

#include <stdio.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct pattern {
    pcre2_code *code; /* owns */
    bool is_machine_code;
    bool is_anchored;
};

struct pattern_scratch {
    pcre2_match_context *context; /* owns, as all below */
    pcre2_match_data *result;
    pcre2_jit_stack *stack;
};

enum {
    MATCH_LIMIT = 10000,
    FLOATING_SUBJECT_MOST = 2048, /* 2 ms in the worst case found */
    DEPTH_LIMIT = 1000,           /* of the interpreter */
    HEAP_LIMIT_KIB = 256,         /* of the interpreter */
    STACK_FIRST_BYTES = 32 << 10,
    STACK_MOST_BYTES = 256 << 10,
};

iso_err pattern_compile(struct slice text, struct pattern **pattern, char fault[PATTERN_FAULT_MAX])
{
    int error;
    PCRE2_SIZE at;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text.ptr, text.len, PCRE2_NEVER_UTF | PCRE2_DOLLAR_ENDONLY,
                                     &error, &at, NULL);
    if (!code) {
        char why[120];
        if (pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof(why)) < 0)
            why[sizeof(why) - 1] = '\0'; /* cut off */
        snprintf(fault, PATTERN_FAULT_MAX, "%s at offset %zu", why, (size_t)at);
        return ISO_ERR_INVALID;
    }
    *pattern = calloc(1, sizeof(**pattern));
    iso_assert(*pattern != NULL);
    (*pattern)->code = code;
    /* A hardened kernel may refuse writable code pages: the interpreter then does it, within the same limits.
     */
    (*pattern)->is_machine_code = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    uint32_t options = 0;
    pcre2_pattern_info(code, PCRE2_INFO_ALLOPTIONS, &options);
    (*pattern)->is_anchored = options & PCRE2_ANCHORED;
    return ISO_OK;
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

struct pattern_scratch *pattern_scratch_new(void)
{
    struct pattern_scratch *scratch = calloc(1, sizeof(*scratch));
    iso_assert(scratch != NULL);
    scratch->context = pcre2_match_context_create(NULL);
    scratch->result = pcre2_match_data_create(1, NULL);
    scratch->stack = pcre2_jit_stack_create(STACK_FIRST_BYTES, STACK_MOST_BYTES, NULL);
    iso_assert(scratch->context && scratch->result && scratch->stack);
    pcre2_set_match_limit(scratch->context, MATCH_LIMIT);
    pcre2_set_depth_limit(scratch->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(scratch->context, HEAP_LIMIT_KIB);
    pcre2_jit_stack_assign(scratch->context, NULL, scratch->stack);
    return scratch;
}

void pattern_scratch_free(struct pattern_scratch *scratch)
{
    if (!scratch)
        return;
    pcre2_jit_stack_free(scratch->stack);
    pcre2_match_data_free(scratch->result);
    pcre2_match_context_free(scratch->context);
    free(scratch);
}

enum pattern_result pattern_match(const struct pattern *pattern, struct slice subject,
                                  struct pattern_scratch *scratch)
{
    if (!pattern->is_anchored && subject.len > FLOATING_SUBJECT_MOST)
        return PATTERN_GAVE_UP;
    PCRE2_SPTR bytes = (PCRE2_SPTR)(subject.ptr ? subject.ptr : "");
    int rc = pattern->is_machine_code
                 ? pcre2_jit_match(pattern->code, bytes, subject.len, 0, 0, scratch->result, scratch->context)
                 : pcre2_match(pattern->code, bytes, subject.len, 0, 0, scratch->result, scratch->context);
    if (rc >= 0)
        return PATTERN_MATCH;
    return rc == PCRE2_ERROR_NOMATCH ? PATTERN_NO_MATCH : PATTERN_GAVE_UP;
}
