/* SPDX-License-Identifier: Apache-2.0 */
#include "core/log.h"

#include "core/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum log_level highest = LOG_LEVEL_NOTICE; /* set once before threads start */

void log_set_level(enum log_level level)
{
    highest = level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "notice", "debug"};
    char line[2048];
    if (level > highest)
        return;
    uint64_t wall_ns = clock_wall_ns();
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    len += (size_t)snprintf(line + len, sizeof(line) - len,
                            ".%03uZ %s: ", (unsigned)(wall_ns % NS_PER_S / NS_PER_MS), names[level]);
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, args);
    va_end(args);
    if (n > 0)
        len += (size_t)n < sizeof(line) - len - 1 ? (size_t)n : sizeof(line) - len - 2;
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nowhere left to say it */
}
