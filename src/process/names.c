/* SPDX-License-Identifier: Apache-2.0 */
#include "process/names.h"

#include "core/clock.h"
#include "core/log.h"
#include "snapshot/targets.h"

#include <stdlib.h>

enum {
    FIRST_ANSWERS_MS = 2000,
    GATHER_MS = 50,     /* names of one TTL change within one turn or a few */
    DISTANCE_MS = 1000, /* a change costs a snapshot, and waits for the new targets' first checks */
};

struct names {
    struct loop *loop; /* borrows */
    void (*on_change)(void *owner);
    void *owner;
    struct resolve *resolve; /* owns */
    struct loop_timer timer;
    uint64_t told_ns; /* when on_change was called last */
};

static void tell_soon(struct names *names)
{
    uint64_t now_ns = clock_mono_ns(), due_ns = now_ns + GATHER_MS * NS_PER_MS;
    uint64_t least_ns = names->told_ns + DISTANCE_MS * NS_PER_MS;
    if (!names->timer.due_ns)
        loop_timer_set(names->loop, &names->timer, due_ns > least_ns ? due_ns : least_ns);
}

static void on_resolved(void *owner)
{
    tell_soon(owner);
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct names *names = container_of(timer, struct names, timer);
    names->on_change(names->owner);
    names->told_ns = clock_mono_ns();
}

struct names *names_new(struct loop *loop, void (*on_change)(void *owner), void *owner)
{
    struct names *names = calloc(1, sizeof(*names));
    iso_assert(names != NULL);
    *names = (struct names){.loop = loop, .on_change = on_change, .owner = owner};
    names->resolve = resolve_new(loop, on_resolved, names);
    loop_timer_init(&names->timer, on_due);
    return names;
}

void names_free(struct names **taken)
{
    struct names *names = *taken;
    *taken = NULL;
    if (!names)
        return;
    resolve_free(&names->resolve);
    loop_timer_remove(names->loop, &names->timer);
    free(names);
}

/* The number of names. */
static uint32_t apply(struct names *names, const struct config *config, bool with_others, iso_err *err)
{
    struct arena arena;
    const struct resolve_name *all;
    arena_init(&arena);
    uint32_t n = targets_names(config, &arena, &all);
    struct resolve_settings settings = targets_resolve_settings(config, &arena);
    if (n)
        *err = resolve_configure(names->resolve, &settings);
    if (n && !*err)
        resolve_add(names->resolve, all, n);
    if (!with_others)
        resolve_retain(names->resolve, all, n);
    arena_fini(&arena);
    return n;
}

iso_err names_take(struct names *names, const struct config *config)
{
    iso_err err = ISO_OK;
    if (apply(names, config, true, &err) == 0)
        return ISO_OK;
    if (!err && !resolve_settle(names->resolve, FIRST_ANSWERS_MS))
        log_warning(
            "dns: some names have not been answered within %d ms; they have no targets until they are",
            FIRST_ANSWERS_MS);
    return err;
}

void names_keep(struct names *names, const struct config *config)
{
    iso_err err = ISO_OK;
    uint32_t n = apply(names, config, false, &err);
    if (err)
        log_error("dns: the name servers of the configuration in force cannot be asked");
    if (n)
        tell_soon(names); /* answers that came meanwhile were meant for the other configuration */
}

const struct resolve *names_resolve(const struct names *names)
{
    return names->resolve;
}
