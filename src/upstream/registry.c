/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: runtimes by name. Lists, since only the control thread walks them and only when a
 * configuration is applied; a hash per kind keeps a reload with thousands of targets linear. */
#include "upstream/backend.h"

#include "core/hash.h"
#include "core/log.h"
#include "net/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { HASH_SLOTS = 4096 };

struct registry {
    uint32_t n_workers;
    uint64_t stamps;
    bool is_detached; /* binds nothing */
    struct list backends[HASH_SLOTS], groups[HASH_SLOTS], listeners[HASH_SLOTS], limits[HASH_SLOTS];
};

struct registry *registry_new(uint32_t n_workers)
{
    struct registry *registry = malloc(sizeof(*registry));
    iso_assert(registry != NULL && n_workers > 0);
    registry->n_workers = n_workers;
    registry->stamps = 0;
    registry->is_detached = false;
    for (int i = 0; i < HASH_SLOTS; i++) {
        list_init(&registry->backends[i]);
        list_init(&registry->groups[i]);
        list_init(&registry->listeners[i]);
        list_init(&registry->limits[i]);
    }
    return registry;
}

struct registry *registry_new_detached(uint32_t n_workers)
{
    struct registry *registry = registry_new(n_workers);
    registry->is_detached = true;
    return registry;
}

uint64_t registry_stamp(struct registry *registry)
{
    return ++registry->stamps;
}

void registry_free(struct registry *registry)
{
    for (int i = 0; i < HASH_SLOTS; i++)
        iso_assert(list_is_empty(&registry->backends[i]) && list_is_empty(&registry->groups[i]) &&
                   list_is_empty(&registry->listeners[i]) && list_is_empty(&registry->limits[i]));
    free(registry);
}

static struct list *slot_of(struct list *slots, struct slice a, struct slice b)
{
    return &slots[iso_hash64(a, iso_hash64(b, 0)) % HASH_SLOTS];
}

static char *copy(struct slice s)
{
    char *out = strndup(s.ptr ? s.ptr : "", s.len);
    iso_assert(out != NULL);
    return out;
}

/* Zeroed, each element on cache lines of its own. */
static void *lines(size_t size, uint32_t n)
{
    iso_assert(size % ISO_CACHE_LINE == 0);
    void *out = aligned_alloc(ISO_CACHE_LINE, size * n);
    iso_assert(out != NULL);
    return memset(out, 0, size * n);
}

static void draw_salt(struct siphash_key *salt)
{
    if (getrandom(salt, sizeof(*salt), 0) != sizeof(*salt))
        log_warning("no random numbers from the kernel: %m");
}

struct group_runtime *registry_group(struct registry *registry, struct slice name)
{
    struct list *slot = slot_of(registry->groups, name, SLICE(""));
    list_for_each (node, slot) {
        struct group_runtime *group = container_of(node, struct group_runtime, node);
        if (slice_eq(slice_str(group->name), name)) {
            group->refs++;
            return group;
        }
    }
    struct group_runtime *group = lines(sizeof(*group), 1);
    group->name = copy(name);
    group->n_workers = registry->n_workers;
    group->workers = lines(sizeof(*group->workers), registry->n_workers);
    draw_salt(&group->session_salt);
    group->refs = 1;
    list_push_back(slot, &group->node);
    return group;
}

void registry_group_unref(struct registry *registry, struct group_runtime **taken)
{
    struct group_runtime *group = *taken;
    *taken = NULL;
    if (!group || --group->refs > 0)
        return;
    list_remove(&group->node);
    local_sessions_free(&group->sessions);
    free(group->workers);
    free(group->name);
    free(group);
}

struct backend *registry_backend(struct registry *registry, struct slice group, struct slice name,
                                 const struct net_addr *addr, struct group_runtime *runtime)
{
    struct list *slot = slot_of(registry->backends, group, name);
    list_for_each (node, slot) {
        struct backend *backend = container_of(node, struct backend, node);
        if (slice_eq(slice_str(backend->name), name) && slice_eq(slice_str(backend->group_name), group)) {
            backend->refs++;
            return backend;
        }
    }
    struct backend *backend = lines(sizeof(*backend), 1);
    backend->group_name = copy(group);
    backend->name = copy(name);
    backend->addr = *addr;
    backend->n_workers = registry->n_workers;
    backend->workers = lines(sizeof(*backend->workers), registry->n_workers);
    for (uint32_t w = 0; w < registry->n_workers; w++) {
        list_init(&backend->workers[w].idle);
        list_init(&backend->workers[w].kept);
        list_init(&backend->workers[w].muxes);
    }
    backend->health.epoch = &runtime->epoch;
    backend->refs = 1;
    list_push_back(slot, &backend->node);
    return backend;
}

struct backend *registry_backend_ref(struct backend *backend)
{
    backend->refs++;
    return backend;
}

void registry_backend_forget(struct registry *registry, struct backend *backend)
{
    list_remove(&backend->node);
}

void registry_backend_unref(struct registry *registry, struct backend **taken)
{
    struct backend *backend = *taken;
    *taken = NULL;
    if (!backend || --backend->refs > 0)
        return;
    list_remove(&backend->node);
    for (uint32_t w = 0; w < backend->n_workers; w++)
        tls_session_fini(&backend->workers[w].session);
    free(backend->workers);
    free(backend->group_name);
    free(backend->name);
    free(backend);
}

struct limit_runtime *registry_limit(struct registry *registry, struct slice name,
                                     const struct limiter_policy *policy, uint32_t clients)
{
    struct list *slot = slot_of(registry->limits, name, SLICE(""));
    list_for_each (node, slot) {
        struct limit_runtime *limit = container_of(node, struct limit_runtime, node);
        if (slice_eq(slice_str(limit->name), name)) {
            limit->refs++;
            return limit;
        }
    }
    struct limit_runtime *limit = calloc(1, sizeof(*limit));
    iso_assert(limit != NULL);
    limit->name = copy(name);
    limit->n_workers = registry->n_workers;
    limit->workers = lines(sizeof(*limit->workers), registry->n_workers);
    limit->limiter = limiter_new(policy, clients);
    draw_salt(&limit->salt);
    limit->refs = 1;
    list_push_back(slot, &limit->node);
    return limit;
}

void registry_limit_unref(struct registry *registry, struct limit_runtime **taken)
{
    struct limit_runtime *limit = *taken;
    *taken = NULL;
    if (!limit || --limit->refs > 0)
        return;
    list_remove(&limit->node);
    limiter_free(&limit->limiter);
    free(limit->workers);
    free(limit->name);
    free(limit);
}

static void close_sockets(struct listener_runtime *listener)
{
    for (uint32_t w = 0; w < listener->n_workers; w++)
        if (listener->fds[w] >= 0)
            close(listener->fds[w]);
}

/* One socket per worker (SO_REUSEPORT), so that workers share no accept queue; a unix socket cannot be bound
 * twice, there all workers accept from one. */
static int bind_sockets(struct listener_runtime *listener, enum listener_kind kind)
{
    struct listen_options options = {.reuse_port = true,
                                     .defer_accept = kind == LISTENER_STREAM_CLIENT_FIRST,
                                     .datagrams = kind == LISTENER_DATAGRAMS,
                                     .backlog = 4096};
    bool is_unix = listener->addr.sa.sa_family == AF_UNIX;
    for (uint32_t w = 0; w < listener->n_workers; w++) {
        int err = 0;
        if (w > 0 && is_unix) {
            listener->fds[w] = dup(listener->fds[0]);
            err = listener->fds[w] < 0 ? errno : 0;
        } else {
            err = listen_open(&listener->addr, &options, &listener->fds[w]);
        }
        if (err)
            return err;
        if (w == 0 && !is_unix && net_addr_port(&listener->addr) == 0)
            listener->addr.in6.sin6_port =
                htons(listen_port(listener->fds[0])); /* same place in sockaddr_in */
    }
    return 0;
}

/* SO_REUSEPORT would let a second process share the address unnoticed, so ask without it first. */
static int check_address_free(const struct net_addr *addr, bool datagrams)
{
    int fd, err;
    if (addr->sa.sa_family == AF_UNIX || listen_is_inherited(addr, datagrams))
        return 0;
    err = listen_open(addr, &(struct listen_options){.backlog = 1, .datagrams = datagrams}, &fd);
    if (!err)
        close(fd);
    return err;
}

struct listener_runtime *registry_listener(struct registry *registry, struct slice name,
                                           struct slice endpoint, const struct net_addr *addr,
                                           uint64_t version, enum listener_kind kind, int *why)
{
    struct list *slot = slot_of(registry->listeners, endpoint, SLICE(""));
    list_for_each (node, slot) {
        struct listener_runtime *listener = container_of(node, struct listener_runtime, node);
        /* One that the snapshot in force does not name is closing, though an old connection may keep it. */
        if (listener->last_version + 1 >= version && slice_eq(slice_str(listener->endpoint), endpoint) &&
            listener->datagrams == (kind == LISTENER_DATAGRAMS)) {
            for (uint32_t w = 0; w < listener->n_workers && !listener->datagrams; w++)
                listen_defer_accept(listener->fds[w], kind == LISTENER_STREAM_CLIENT_FIRST);
            listener->refs++;
            return listener;
        }
    }
    struct listener_runtime *listener = lines(sizeof(*listener), 1);
    listener->name = copy(name);
    listener->endpoint = copy(endpoint);
    listener->addr = *addr;
    listener->datagrams = kind == LISTENER_DATAGRAMS;
    listener->n_workers = registry->n_workers;
    listener->workers = lines(sizeof(*listener->workers), registry->n_workers);
    listener->fds = malloc(sizeof(int) * registry->n_workers);
    iso_assert(listener->fds != NULL);
    for (uint32_t w = 0; w < registry->n_workers; w++)
        listener->fds[w] = -1;
    listener->refs = 1;
    list_init(&listener->node);

    int err = registry->is_detached ? 0 : check_address_free(&listener->addr, listener->datagrams);
    if (!err && !registry->is_detached)
        err = bind_sockets(listener, kind);
    if (err) {
        *why = err;
        registry_listener_unref(registry, &listener);
        return NULL;
    }
    list_push_back(slot, &listener->node);
    return listener;
}

void registry_listener_unref(struct registry *registry, struct listener_runtime **taken)
{
    struct listener_runtime *listener = *taken;
    *taken = NULL;
    if (!listener || --listener->refs > 0)
        return;
    list_remove(&listener->node);
    close_sockets(listener);
    if (!registry->is_detached) /* the file would be another process's */
        listen_remove_file(&listener->addr);
    free(listener->fds);
    free(listener->workers);
    free(listener->endpoint);
    free(listener->name);
    free(listener);
}
