/* SPDX-License-Identifier: Apache-2.0 */
/* The process log: one line per event on stderr, for people and journald. Events of the system only (start,
 * reload, a target changed state), never one per request: that is observe/accesslog. */
#ifndef ISOBAR_CORE_LOG_H
#define ISOBAR_CORE_LOG_H

#include "core/check.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_DEBUG };

/* Lines above `level` are not written. Threads: before others start. */
void log_set_level(enum log_level level);
/* Writes one line with time and level in one write(2). Threads: any; never from a worker's request path. */
void log_line(enum log_level level, const char *fmt, ...) ISO_PRINTF(2, 3);

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
