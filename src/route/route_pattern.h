/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of rules (PCRE2, just-in-time compiled where the kernel allows it). Work per match is
 * bounded, so that no client can stall a worker: a pattern gives up on an input where it would need more than
 * the limit, as (a+)+$ does, and one that does not begin with ^ gives up on inputs longer than 2,048 bytes.
 * Compiled patterns are immutable and shared by all workers. */
#ifndef ISOBAR_ROUTE_ROUTE_PATTERN_H
#define ISOBAR_ROUTE_ROUTE_PATTERN_H

#include "core/check.h"
#include "core/err.h"
#include "core/slice.h"

struct pattern;
struct pattern_scratch; /* what matching needs; one per worker */

enum { PATTERN_FAULT_MAX = 160 };

/* ISO_ERR_INVALID when the text is no pattern; `fault` then says what is wrong and where, for a message. The
 * subject is bytes, not UTF-8. Owns: the caller, until pattern_free(). Threads: any. */
iso_err pattern_compile(struct slice text, struct pattern **pattern,
                        char fault[PATTERN_FAULT_MAX]) ISO_MUST_USE;
void pattern_free(struct pattern *pattern);

/* Aborts when memory ends. */
struct pattern_scratch *pattern_scratch_new(void);
void pattern_scratch_free(struct pattern_scratch *scratch);

enum pattern_result {
    PATTERN_NO_MATCH,
    PATTERN_MATCH,
    PATTERN_GAVE_UP, /* at the limit */
};

/* Looks for the pattern anywhere in `subject`; operators anchor it. Never allocates where patterns are
 * compiled just in time. */
enum pattern_result pattern_match(const struct pattern *pattern, struct slice subject,
                                  struct pattern_scratch *scratch);

#endif
