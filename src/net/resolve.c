/* SPDX-License-Identifier: Apache-2.0 */
#include "net/resolve_internal.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/slice.h"

#include <stdlib.h>

enum {
    LOOKUPS_MAX = 64, /* at the same time: all answers must fit a socket's buffer */
};

/* ---- entries ---- */

static struct list *slot_of(const struct resolve *resolve, const char *name)
{
    return (struct list *)&resolve->entries[iso_hash64(slice_str(name), 0) % RESOLVE_HASH_SLOTS];
}

static struct entry *find(const struct resolve *resolve, enum resolve_kind kind, const char *name)
{
    struct list *slot = slot_of(resolve, name);
    list_for_each (node, slot) {
        struct entry *entry = container_of(node, struct entry, node);
        if (entry->kind == kind && strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static void pump(struct resolve *resolve);

static void ask_soon(struct entry *entry)
{
    loop_timer_clear(&entry->again);
    if (list_is_empty(&entry->waiting) && entry->n_open == 0)
        list_push_back(&entry->resolve->waiting, &entry->waiting);
}

static void on_again(struct loop *loop, struct loop_timer *timer)
{
    struct entry *entry = container_of(timer, struct entry, again);
    ask_soon(entry);
    pump(entry->resolve);
}

static struct entry *get(struct resolve *resolve, enum resolve_kind kind, const char *name)
{
    struct entry *entry = find(resolve, kind, name);
    if (entry)
        return entry;
    entry = calloc(1, sizeof(*entry));
    iso_assert(entry != NULL);
    entry->resolve = resolve;
    entry->kind = kind;
    entry->name = strdup(name);
    iso_assert(entry->name != NULL);
    entry->why = "not asked yet";
    list_init(&entry->waiting);
    loop_timer_init(&entry->again, on_again);
    list_push_back(slot_of(resolve, name), &entry->node);
    ask_soon(entry);
    return entry;
}

static void free_entry(struct entry *entry)
{
    struct service now = entry->now, next = entry->next;
    loop_timer_remove(entry->resolve->loop, &entry->again);
    for (int f = 0; f < FAMILIES; f++) {
        free(entry->addrs[f]);
        free(entry->results[f].addrs);
    }
    free(entry->view);
    free(entry->name);
    free(entry);
    resolve_release_service(&now);
    resolve_release_service(&next);
}

/* Out of the table now; its memory when its lookup has ended. */
void resolve_drop_unused(struct entry *entry)
{
    if (entry->is_wanted || entry->n_users || entry->is_abandoned)
        return;
    list_remove(&entry->node);
    list_remove(&entry->waiting);
    entry->is_abandoned = true;
    if (entry->n_open == 0)
        free_entry(entry);
}

void resolve_release_service(struct service *service)
{
    for (uint32_t i = 0; i < service->n; i++) {
        service->records[i].host->n_users--;
        resolve_drop_unused(service->records[i].host);
    }
    free(service->records);
    *service = (struct service){0};
}

static void end_question(struct entry *entry)
{
    struct resolve *resolve = entry->resolve;
    if (--entry->n_open > 0)
        return;
    resolve->n_lookups--;
    if (entry->is_abandoned)
        free_entry(entry);
    else if (!resolve->is_closing)
        resolve_judge(entry);
    pump(resolve);
}

static void take_addresses(struct result *result, const struct dns_answer *answer)
{
    *result = (struct result){.status = answer->status, .why = answer->why, .ttl_s = answer->ttl_s};
    if (answer->status != DNS_OK)
        return;
    result->why = NULL;
    result->n = answer->n;
    result->addrs = calloc(answer->n, sizeof(*result->addrs));
    iso_assert(result->addrs != NULL);
    for (uint32_t i = 0; i < answer->n; i++)
        result->addrs[i].ip = answer->records[i].ip;
}

static void on_a(void *arg, const struct dns_answer *answer)
{
    struct entry *entry = arg;
    take_addresses(&entry->results[0], answer);
    end_question(entry);
}

static void on_aaaa(void *arg, const struct dns_answer *answer)
{
    struct entry *entry = arg;
    take_addresses(&entry->results[1], answer);
    end_question(entry);
}

static void on_srv(void *arg, const struct dns_answer *answer)
{
    struct entry *entry = arg;
    struct resolve *resolve = entry->resolve;
    entry->results[0] = (struct result){.status = answer->status, .why = answer->why, .ttl_s = answer->ttl_s};
    if (answer->status == DNS_OK && !entry->is_abandoned && !resolve->is_closing) {
        struct service old = entry->next, next = {.n = answer->n};
        next.records = calloc(answer->n, sizeof(*next.records));
        iso_assert(next.records != NULL);
        for (uint32_t i = 0; i < answer->n; i++) {
            const struct dns_record *record = &answer->records[i];
            next.records[i] = (struct service_record){get(resolve, RESOLVE_HOST, record->host), record->port,
                                                      record->priority, record->weight};
            next.records[i].host->n_users++;
        }
        entry->next = next;
        entry->has_next = true;
        resolve_release_service(&old);
    }
    end_question(entry);
}

/* ---- asking ---- */

static void ask(struct resolve *resolve, struct entry *entry)
{
    const struct resolve_settings *settings = &resolve->settings;
    list_remove(&entry->waiting);
    resolve->n_lookups++;
    entry->n_open = 1; /* ours, so that the lookup does not end before all is asked */
    if (entry->kind == RESOLVE_SRV) {
        entry->n_open++;
        dns_ask(resolve->dns, DNS_SRV, entry->name, on_srv, entry);
    }
    if (entry->kind == RESOLVE_HOST && settings->with_ipv4) {
        entry->n_open++;
        dns_ask(resolve->dns, DNS_A, entry->name, on_a, entry);
    }
    if (entry->kind == RESOLVE_HOST && settings->with_ipv6) {
        entry->n_open++;
        dns_ask(resolve->dns, DNS_AAAA, entry->name, on_aaaa, entry);
    }
    end_question(entry);
}

/* Lookups that can end at once (a hosts file) would otherwise nest in each other. */
static void pump(struct resolve *resolve)
{
    if (resolve->is_pumping || resolve->is_closing || !resolve->dns)
        return;
    resolve->is_pumping = true;
    while (resolve->n_lookups < LOOKUPS_MAX && !list_is_empty(&resolve->waiting))
        ask(resolve, container_of(resolve->waiting.next, struct entry, waiting));
    resolve->is_pumping = false;
}

/* ---- for the owner ---- */

static void on_told(struct loop *loop, struct loop_timer *timer)
{
    struct resolve *resolve = container_of(timer, struct resolve, told);
    resolve->has_changed = false;
    resolve->on_change(resolve->owner);
}

struct resolve *resolve_new(struct loop *loop, resolve_changed_fn *on_change, void *owner)
{
    struct resolve *resolve = calloc(1, sizeof(*resolve));
    iso_assert(resolve != NULL);
    resolve->loop = loop;
    resolve->on_change = on_change;
    resolve->owner = owner;
    list_init(&resolve->waiting);
    loop_timer_init(&resolve->told, on_told);
    for (int i = 0; i < RESOLVE_HASH_SLOTS; i++)
        list_init(&resolve->entries[i]);
    return resolve;
}

/* Ends every lookup without a judgement. */
static void close_dns(struct resolve *resolve)
{
    resolve->is_closing = true;
    dns_close(&resolve->dns);
    resolve->is_closing = false;
    for (int i = 0; i < RESOLVE_HASH_SLOTS; i++)
        list_for_each (node, &resolve->entries[i])
            for (int f = 0; f < FAMILIES; f++) {
                struct result *result = &container_of(node, struct entry, node)->results[f];
                free(result->addrs);
                *result = (struct result){0};
            }
}

void resolve_free(struct resolve **taken)
{
    struct resolve *resolve = *taken;
    *taken = NULL;
    if (!resolve)
        return;
    close_dns(resolve);
    resolve_retain(resolve, NULL, 0);
    loop_timer_remove(resolve->loop, &resolve->told);
    free(resolve->servers);
    free(resolve);
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void ask_all(struct resolve *resolve)
{
    for (int i = 0; i < RESOLVE_HASH_SLOTS; i++)
        list_for_each (node, &resolve->entries[i])
            ask_soon(container_of(node, struct entry, node));
    pump(resolve);
}

iso_err resolve_configure(struct resolve *resolve, const struct resolve_settings *settings)
{
    const struct resolve_settings *old = &resolve->settings;
    bool is_same_asking = resolve->dns && is_same_text(resolve->servers, settings->servers) &&
                          old->with_ipv4 == settings->with_ipv4 && old->with_ipv6 == settings->with_ipv6;
    struct dns *dns = NULL;
    if (!is_same_asking && dns_open(resolve->loop, settings->servers, &dns))
        return ISO_ERR_SYSTEM;
    char *servers = settings->servers ? strdup(settings->servers) : NULL;
    free(resolve->servers);
    resolve->servers = servers;
    resolve->settings = *settings;
    resolve->settings.servers = servers;
    if (dns) {
        close_dns(resolve);
        resolve->dns = dns;
        ask_all(resolve);
    }
    return ISO_OK;
}

void resolve_add(struct resolve *resolve, const struct resolve_name *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        get(resolve, names[i].kind, names[i].name)->is_wanted = true;
    pump(resolve);
}

static bool is_named(const struct entry *entry, const struct resolve_name *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (names[i].kind == entry->kind && strcmp(names[i].name, entry->name) == 0)
            return true;
    return false;
}

void resolve_retain(struct resolve *resolve, const struct resolve_name *names, uint32_t n)
{
    struct list unused; /* a service that goes may take hosts of any slot along, so not while walking */
    list_init(&unused);
    for (int i = 0; i < RESOLVE_HASH_SLOTS; i++)
        list_for_each_safe (node, after, &resolve->entries[i]) {
            struct entry *entry = container_of(node, struct entry, node);
            entry->is_wanted = entry->is_wanted && is_named(entry, names, n);
            if (!entry->is_wanted && !entry->n_users) {
                list_remove(&entry->node);
                list_push_back(&unused, &entry->node);
            }
        }
    while (!list_is_empty(&unused))
        resolve_drop_unused(container_of(unused.next, struct entry, node));
}

static bool is_settled(const struct resolve *resolve)
{
    for (int i = 0; i < RESOLVE_HASH_SLOTS; i++)
        list_for_each (node, &resolve->entries[i])
            if (!container_of(node, struct entry, node)->is_settled)
                return false;
    return true;
}

bool resolve_settle(struct resolve *resolve, uint32_t timeout_ms)
{
    uint64_t until_ns = clock_mono_ns() + timeout_ms * NS_PER_MS, now_ns;
    resolve->is_settling = true;
    while (!is_settled(resolve) && (now_ns = clock_mono_ns()) < until_ns)
        dns_wait(resolve->dns, (uint32_t)((until_ns - now_ns) / NS_PER_MS) + 1);
    resolve->is_settling = false;
    return is_settled(resolve);
}

bool resolve_find(const struct resolve *resolve, enum resolve_kind kind, const char *name,
                  struct resolve_view *out)
{
    const struct entry *entry = find(resolve, kind, name);
    if (!entry)
        return false;
    *out = (struct resolve_view){.addrs = entry->view,
                                 .n = entry->n_view,
                                 .has_failed = entry->why != NULL,
                                 .why = entry->why,
                                 .lookups = entry->lookups,
                                 .failures = entry->failures};
    return true;
}
