/* SPDX-License-Identifier: Apache-2.0 */
/* A regular expression over the body of a check's answer. A pattern that needs more than its share of work or
 * memory has not matched: a target cannot keep the health thread busy. */
#ifndef ISOBAR_HEALTH_BODY_PATTERN_H
#define ISOBAR_HEALTH_BODY_PATTERN_H

#include "core/slice.h"

struct body_pattern;

/* Of a text that config/checks has compiled once already. Aborts when memory ends. */
struct body_pattern *body_pattern_new(struct slice text);
void body_pattern_free(struct body_pattern *pattern);
bool body_pattern_matches(const struct body_pattern *pattern, struct slice body);

#endif
