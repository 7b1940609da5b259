/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of some names to a misspelt one. */
#ifndef ISOBAR_CONFIG_SUGGEST_H
#define ISOBAR_CONFIG_SUGGEST_H

#include "core/slice.h"

/* How far two names are apart: edits (insert, delete, replace, swap neighbours) after case, "_" and "-" are
 * ignored; 0 when only those differ; at most 1 when one is a beginning of the other, of three letters or
 * more. SUGGEST_FAR when they have too little in common to suggest one for the other. */
enum { SUGGEST_FAR = 1000 };
unsigned suggest_distance(struct slice a, struct slice b);

/* The best candidate so far; start with {0}. */
struct suggestion {
    const char *name; /* NULL: none */
    unsigned distance;
};
void suggest_offer(struct suggestion *best, struct slice typed, const char *candidate);

#endif
