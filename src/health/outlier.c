/* SPDX-License-Identifier: Apache-2.0 */
#include "health/outlier.h"

#include "core/clock.h"

void outlier_forget(struct outlier *outlier, const struct outlier_sums *sums)
{
    for (uint32_t i = 0; i < OUTLIER_SLOTS; i++) {
        outlier->past[i].attempts = sums->attempts;
        outlier->past[i].failures = sums->failures;
    }
}

void outlier_slide(struct outlier *outlier, const struct outlier_sums *sums)
{
    outlier->past[outlier->oldest].attempts = sums->attempts;
    outlier->past[outlier->oldest].failures = sums->failures;
    outlier->oldest = (outlier->oldest + 1) % OUTLIER_SLOTS;
}

enum health_reason outlier_cause(const struct outlier *outlier, const struct config_outlier *limits,
                                 const struct outlier_sums *sums)
{
    uint64_t attempts = sums->attempts - outlier->past[outlier->oldest].attempts;
    uint64_t failures = sums->failures - outlier->past[outlier->oldest].failures;
    if (limits->consecutive_gateway_errors && sums->run_gateway >= limits->consecutive_gateway_errors)
        return HEALTH_REASON_GATEWAY_ERRORS;
    if (limits->consecutive_5xx && sums->run_5xx >= limits->consecutive_5xx)
        return HEALTH_REASON_ERRORS_5XX;
    if (limits->error_rate_pct && attempts >= limits->min_requests &&
        failures * 100 >= attempts * limits->error_rate_pct)
        return HEALTH_REASON_ERROR_RATE;
    return HEALTH_REASON_NONE;
}

void outlier_eject(struct outlier *outlier, const struct config_outlier *limits, uint64_t now_ns)
{
    uint64_t base_ns = limits->base_ejection_ms * NS_PER_MS, max_ns = limits->max_ejection_ms * NS_PER_MS;
    uint64_t forgiven = outlier->back_ns ? (now_ns - outlier->back_ns) / base_ns : 0;
    outlier->level = forgiven < outlier->level ? outlier->level - (uint32_t)forgiven : 0;
    outlier->level++;
    uint64_t ns = outlier->level * base_ns;
    if (ns >= max_ns) {
        ns = max_ns > base_ns ? max_ns : base_ns;
        outlier->level = (uint32_t)((ns + base_ns - 1) / base_ns);
    }
    outlier->until_ns = now_ns + ns;
}

void outlier_return(struct outlier *outlier, uint64_t now_ns)
{
    outlier->until_ns = 0;
    outlier->back_ns = now_ns;
}

uint32_t outlier_cap(const struct config_outlier *limits, uint32_t n)
{
    uint32_t cap = (uint32_t)((uint64_t)n * limits->max_ejection_pct / 100);
    return cap > 0 ? cap : 1;
}
