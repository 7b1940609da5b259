/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "core/clock.h"

#include <stdio.h>
#include <time.h>

struct slice worker_date(struct worker *worker)
{
    uint64_t now_s = worker->loop.wall_ns / NS_PER_S;
    if (now_s != worker->date_s) {
        static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
        time_t t = (time_t)now_s;
        struct tm tm;
        gmtime_r(&t, &tm);
        snprintf(worker->date, sizeof(worker->date), "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                 days + 3 * tm.tm_wday, (unsigned)tm.tm_mday % 100, months + 3 * tm.tm_mon,
                 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
                 (unsigned)tm.tm_sec % 100);
        worker->date_s = now_s;
    }
    return slice_of(worker->date, 29);
}
