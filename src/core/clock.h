/* SPDX-License-Identifier: Apache-2.0 */
/* Time on a worker is monotonic nanoseconds, read once per loop turn. Wall clock appears in logs,
 * certificates and the API only. */
#ifndef ISOBAR_CORE_CLOCK_H
#define ISOBAR_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

#endif
