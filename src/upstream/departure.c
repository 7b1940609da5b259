/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/departure.h"

#include "core/clock.h"
#include "health/health.h"

#include <stdlib.h>

enum { OVERDUE_MS = 5000 }; /* workers cut what is left at the deadline; it may take them a while */

static bool is_at_work(const struct backend *backend)
{
    return atomic_load_explicit(&((struct backend *)backend)->in_flight, memory_order_relaxed) > 0;
}

static void remove_backend(struct registry *registry, struct backend **backend)
{
    health_end_drain(&(*backend)->health, slice_str((*backend)->group_name), slice_str((*backend)->name),
                     is_at_work(*backend) ? HEALTH_REASON_DEADLINE : HEALTH_REASON_EMPTY);
    registry_backend_forget(registry, *backend);
    registry_backend_unref(registry, backend);
}

void departures_add(struct departures *departures, struct registry *registry, struct backend *backend,
                    uint32_t delay_ms)
{
    struct backend *held = registry_backend_ref(backend);
    if (!is_at_work(backend)) {
        remove_backend(registry, &held);
        return;
    }
    struct departure *departure = calloc(1, sizeof(*departure));
    iso_assert(departure != NULL);
    backend->drain_until_wall_ns = clock_wall_ns() + delay_ms * NS_PER_MS;
    *departure = (struct departure){
        .backend = held, .until_ns = clock_mono_ns() + delay_ms * NS_PER_MS, .next = departures->first};
    departures->first = departure;
}

void departures_cancel(struct departures *departures, struct registry *registry,
                       const struct backend *backend)
{
    for (struct departure **at = &departures->first; *at; at = &(*at)->next) {
        struct departure *departure = *at;
        if (departure->backend != backend)
            continue;
        *at = departure->next;
        departure->backend->drain_until_wall_ns = 0;
        registry_backend_unref(registry, &departure->backend);
        free(departure);
        return;
    }
}

bool departures_poll(struct departures *departures, struct registry *registry)
{
    uint64_t now_ns = clock_mono_ns();
    for (struct departure **at = &departures->first; *at;) {
        struct departure *departure = *at;
        if (is_at_work(departure->backend) && now_ns < departure->until_ns + OVERDUE_MS * NS_PER_MS) {
            at = &departure->next;
            continue;
        }
        *at = departure->next;
        remove_backend(registry, &departure->backend);
        free(departure);
    }
    return departures->first != NULL;
}

void departures_fini(struct departures *departures, struct registry *registry)
{
    while (departures->first) {
        struct departure *departure = departures->first;
        departures->first = departure->next;
        registry_backend_unref(registry, &departure->backend);
        free(departure);
    }
}
