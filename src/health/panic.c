/* SPDX-License-Identifier: Apache-2.0 */
#include "health/panic.h"

#include "core/clock.h"

uint32_t panic_total(const struct panic_census *census)
{
    uint32_t known = census->active + census->unhealthy;
    return known ? known : census->failed;
}

bool panic_is_low(const struct panic_census *census, uint32_t pct)
{
    uint64_t total = panic_total(census);
    return !census->has_backup && total > 0 && (uint64_t)census->active * 100 < pct * total;
}

/* Every target that still serves fails its requests too, and the others are out for nothing else: ejections
 * have told nothing, and only crowd the requests. Source: case C-113. */
static bool is_ejecting_pointless(const struct panic_census *census, uint32_t pct)
{
    return pct > 0 && !census->has_backup && census->active > 0 && census->doubtful == census->active &&
           census->unhealthy == census->ejected;
}

bool panic_update(struct panic *panic, const struct panic_census *census, uint32_t pct, uint64_t now_ns)
{
    bool is_called_for = panic_is_low(census, pct) || is_ejecting_pointless(census, pct);
    uint32_t clear_pct = pct + PANIC_MARGIN_PCT < 100 ? pct + PANIC_MARGIN_PCT : 100;
    if (is_called_for) {
        panic->calm_since_ns = 0;
        if (panic->is_on)
            return false;
        panic->is_on = true;
        panic->is_low = panic_is_low(census, pct);
        return true;
    }
    if (!panic->is_on)
        return false;
    if (!panic->calm_since_ns)
        panic->calm_since_ns = now_ns;
    bool is_calm = now_ns - panic->calm_since_ns >= PANIC_CALM_MS * NS_PER_MS;
    bool is_clear = panic->is_low && !panic_is_low(census, clear_pct);
    if (pct && !is_clear && !is_calm)
        return false;
    *panic = (struct panic){0};
    return true;
}
