/* SPDX-License-Identifier: Apache-2.0 */
/* One access log line as bytes. Written by hand because a worker does it for every request: the date is made
 * once a second, text that needs no escape is copied eight bytes at a time, JSON keys are constants. What a
 * line holds is the table accesslog_fields.def. No allocation, no system call. */
#ifndef ISOBAR_OBSERVE_ACCESSLOG_LINE_H
#define ISOBAR_OBSERVE_ACCESSLOG_LINE_H

#include "observe/accesslog.h"

/* Longer texts are cut in a line, so that a line has a largest size: 7 texts of a request, 6 bytes for each
 * byte in the worst case, are less than half a ring. */
enum { ACCESSLOG_TEXT_MAX = 8192 };

/* The dates of the second that was logged last. One per worker; zeroed is fine. */
struct accesslog_clock {
    uint64_t second;
    char iso[20]; /* "2026-01-31T12:00:00." */
    char clf[26]; /* "31/Jan/2026:12:00:00 +0000" */
};

/* Bytes that accesslog_line() may need at most for this entry. */
size_t accesslog_line_bound(const struct accesslog_format *format, const struct accesslog_entry *entry);
/* Writes the line with its '\n' at `out` and returns its end. */
char *accesslog_line(char *out, struct accesslog_clock *clock, const struct accesslog_format *format,
                     const struct accesslog_entry *entry);

#endif
