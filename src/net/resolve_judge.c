/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer changes, and when to ask again. */
#include "net/resolve_internal.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_FIRST_MS = 1000, RETRY_MAX_MS = 30000 };

uint32_t resolve_next_ms(const struct resolve_settings *settings, uint32_t ttl_s, uint32_t n_failures)
{
    uint64_t ms = (uint64_t)ttl_s * 1000;
    if (n_failures)
        ms = n_failures < 6 ? (uint64_t)RETRY_FIRST_MS << (n_failures - 1) : RETRY_MAX_MS;
    if (ms > settings->max_ttl_ms)
        ms = settings->max_ttl_ms;
    return (uint32_t)(ms < settings->min_ttl_ms ? settings->min_ttl_ms : ms);
}

/* ---- what is shown ---- */

static int addr_compare(const void *a, const void *b)
{
    const struct resolve_addr *x = a, *y = b;
    int order = (int)x->ip.family - (int)y->ip.family;
    if (!order)
        order = memcmp(x->ip.bytes, y->ip.bytes, sizeof(x->ip.bytes));
    return order ? order : (int)x->port - (int)y->port;
}

/* Two records that lead to the same place are one address with both weights, of the better priority. */
static uint32_t merge_twins(struct resolve_addr *addrs, uint32_t n)
{
    uint32_t kept = 0;
    qsort(addrs, n, sizeof(*addrs), addr_compare);
    for (uint32_t i = 0; i < n; i++) {
        struct resolve_addr *last = kept ? &addrs[kept - 1] : NULL;
        if (!last || addr_compare(last, &addrs[i])) {
            addrs[kept++] = addrs[i];
            continue;
        }
        uint32_t weight = (uint32_t)last->weight + addrs[i].weight;
        last->weight = (uint16_t)(weight > UINT16_MAX ? UINT16_MAX : weight);
        last->priority = last->priority < addrs[i].priority ? last->priority : addrs[i].priority;
    }
    return kept;
}

static bool is_same(const struct resolve_addr *a, uint32_t n_a, const struct resolve_addr *b, uint32_t n_b)
{
    for (uint32_t i = 0; n_a == n_b && i < n_a; i++)
        if (addr_compare(&a[i], &b[i]) || a[i].weight != b[i].weight || a[i].priority != b[i].priority)
            return false;
    return n_a == n_b;
}

static void show(struct entry *entry, struct resolve_addr *addrs, uint32_t n)
{
    struct resolve *resolve = entry->resolve;
    n = merge_twins(addrs, n);
    if (is_same(addrs, n, entry->view, entry->n_view)) {
        free(addrs);
        return;
    }
    free(entry->view);
    entry->view = addrs;
    entry->n_view = n;
    if (!entry->is_wanted || resolve->is_settling || resolve->has_changed)
        return;
    resolve->has_changed = true;
    loop_timer_set(resolve->loop, &resolve->told, clock_mono_ns());
}

static void show_host(struct entry *entry)
{
    uint32_t n = entry->n_addrs[0] + entry->n_addrs[1], at = 0;
    struct resolve_addr *addrs = calloc(n + 1, sizeof(*addrs));
    iso_assert(addrs != NULL);
    for (int f = 0; f < FAMILIES; f++)
        for (uint32_t i = 0; i < entry->n_addrs[f]; i++)
            addrs[at++] = entry->addrs[f][i];
    show(entry, addrs, n);
}

static void show_service(struct entry *entry)
{
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < entry->now.n; i++)
        n += entry->now.records[i].host->n_view;
    n = n < RESOLVE_ADDRS_MAX ? n : RESOLVE_ADDRS_MAX;
    struct resolve_addr *addrs = calloc(n + 1, sizeof(*addrs));
    iso_assert(addrs != NULL);
    for (uint32_t i = 0; i < entry->now.n; i++) {
        const struct service_record *record = &entry->now.records[i];
        for (uint32_t k = 0; k < record->host->n_view && at < n; k++)
            addrs[at++] = (struct resolve_addr){.ip = record->host->view[k].ip,
                                                .port = record->port,
                                                .priority = record->priority,
                                                .weight = record->weight};
    }
    show(entry, addrs, n);
}

/* New records count once every host of theirs has been asked. */
static void adopt_next(struct entry *entry)
{
    for (uint32_t i = 0; entry->has_next && i < entry->next.n; i++)
        if (!entry->next.records[i].host->is_settled)
            return;
    if (entry->has_next) {
        struct service old = entry->now;
        entry->now = entry->next;
        entry->next = (struct service){0};
        entry->has_next = false;
        show_service(entry);
        resolve_release_service(&old);
    } else {
        show_service(entry);
    }
    entry->is_settled = true;
}

/* A host's addresses or first answer may matter to services. */
static void tell_services(struct resolve *resolve)
{
    for (int i = 0; i < RESOLVE_HASH_SLOTS; i++)
        list_for_each (node, &resolve->entries[i]) {
            struct entry *entry = container_of(node, struct entry, node);
            if (entry->kind == RESOLVE_SRV && (entry->has_next || entry->now.n))
                adopt_next(entry);
        }
}

/* ---- the end of a lookup ---- */

static void note(struct entry *entry, const char *why)
{
    bool was_good = entry->why == NULL, is_first = !entry->is_settled;
    entry->lookups++;
    entry->failures += why != NULL;
    entry->n_failures = why ? entry->n_failures + 1 : 0;
    entry->why = why;
    if (why && (was_good || is_first))
        log_warning("dns: %s: %s; %s", entry->name, why,
                    entry->n_view || entry->now.n ? "what was known before is kept" : "nothing is known yet");
    else if (!why && !was_good && !is_first)
        log_notice("dns: %s: answered again", entry->name);
}

static void ask_again(struct entry *entry, uint32_t ttl_s)
{
    struct resolve *resolve = entry->resolve;
    uint64_t ms = resolve_next_ms(&resolve->settings, ttl_s, entry->n_failures);
    loop_timer_set(resolve->loop, &entry->again, clock_mono_ns() + ms * NS_PER_MS);
}

/* Of two families the one that was answered replaces, the one that failed keeps, and an empty one goes when
 * the other has something. */
static void judge_host(struct entry *entry)
{
    uint32_t n = 0, ttl_s = UINT32_MAX;
    const char *why = NULL;
    for (int f = 0; f < FAMILIES; f++) {
        const struct result *result = &entry->results[f];
        n += result->n;
        if (result->n && result->ttl_s < ttl_s)
            ttl_s = result->ttl_s;
        if (!result->n && result->why && (!why || result->status == DNS_FAILED))
            why = result->why;
    }
    note(entry, n ? NULL : why ? why : "no address family is asked for");
    for (int f = 0; f < FAMILIES; f++) {
        struct result *result = &entry->results[f];
        if (n && result->status != DNS_FAILED) {
            free(entry->addrs[f]);
            entry->addrs[f] = result->addrs;
            entry->n_addrs[f] = result->n;
        } else {
            free(result->addrs);
        }
        *result = (struct result){0};
    }
    show_host(entry);
    ask_again(entry, ttl_s);
    entry->is_settled = true;
    if (entry->n_users)
        tell_services(entry->resolve);
}

static void judge_service(struct entry *entry)
{
    struct result *result = &entry->results[0];
    note(entry, result->status == DNS_OK ? NULL : result->why);
    ask_again(entry, result->ttl_s);
    *result = (struct result){0};
    if (!entry->has_next)
        entry->is_settled = true;
    else
        adopt_next(entry);
}

void resolve_judge(struct entry *entry)
{
    if (entry->kind == RESOLVE_HOST)
        judge_host(entry);
    else
        judge_service(entry);
}
