/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/select.h"
#include "world.h"

#include "compile/build.h"
#include "config/load.h"
#include "core/clock.h"
#include "health/passive.h"
#include "proxy/exchange.h"
#include "virtual.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STEP_MS = 5,
    STEPS_PER_S = 1000 / STEP_MS,
    QUEUE_STEPS = 4096, /* an answer takes less than that */
    TRIES_MAX = 4,
};

struct answer_due {
    uint32_t target, latency_us;
    bool is_good;
};

struct sim_queue {
    struct answer_due *due; /* owns */
    uint32_t n, cap;
};

static const struct world *the_world; /* of the simulated probe, which knows an address only */

const struct sim_target *world_target_at(const struct net_addr *addr)
{
    struct ip_addr ip = net_addr_to_ip(addr);
    uint32_t index = (uint32_t)ip.bytes[2] << 8 | ip.bytes[3];
    iso_assert(index < the_world->n);
    return &the_world->targets[index];
}

/* ---- making it ---- */

static struct config *load(uint32_t n, const char *settings)
{
    struct text yaml;
    struct iso_diag diag;
    struct config *config = NULL;
    text_init(&yaml);
    text_printf(&yaml, "admin: { listen: \"off\" }\ntarget_groups:\n  - name: web\n    %s\n    targets:\n",
                settings);
    for (uint32_t i = 0; i < n; i++)
        text_printf(&yaml, "      - { ip: 10.%u.%u.%u, port: 80, tags: {zone: %c} }\n", 1 + i % WORLD_ZONES,
                    i >> 8, i & 255, 'a' + (char)(i % WORLD_ZONES));
    diag_init(&diag);
    if (config_load_text(text_slice(&yaml), "sim.yaml", ".", &config, &diag))
        for (const struct diag_entry *entry = diag.first; entry; entry = entry->next)
            fprintf(stderr, "%u: %s: %s\n", entry->line, entry->path, entry->message);
    iso_assert(config != NULL);
    diag_fini(&diag);
    text_fini(&yaml);
    return config;
}

static void watch(struct world *world)
{
    const struct snap_group *group = world->group;
    struct health_spec *specs = calloc(world->n, sizeof(*specs));
    iso_assert(specs != NULL);
    for (uint32_t i = 0; i < world->n; i++) {
        struct backend *backend = group->targets[i];
        specs[i] = (struct health_spec){.group = slice_str(backend->group_name),
                                        .name = slice_str(backend->name),
                                        .addr = backend->addr,
                                        .check = &group->config->health_check,
                                        .status = &backend->health,
                                        .enabled = true,
                                        .outlier = &group->config->outlier,
                                        .panic_threshold_pct = group->config->panic_threshold_pct,
                                        .shared = &group->runtime->health,
                                        .runs = &backend->runs,
                                        .passive = &backend->workers[0].passive,
                                        .passive_stride = sizeof(backend->workers[0]),
                                        .n_workers = 1};
    }
    virtual_begin_call();
    health_apply(world->health, specs, world->n);
    virtual_end_call();
    free(specs);
}

struct world *world_new(uint32_t n, uint32_t rate, const char *settings)
{
    struct world *world = calloc(1, sizeof(*world));
    struct iso_diag diag;
    iso_assert(world != NULL);
    world->n = n;
    world->rate = rate;
    world->attempts = 1;
    world->targets = calloc(n, sizeof(*world->targets));
    world->is_watched = calloc(n, sizeof(*world->is_watched));
    world->queue = calloc(QUEUE_STEPS, sizeof(*world->queue));
    iso_assert(world->targets && world->is_watched && world->queue);
    for (uint32_t i = 0; i < n; i++)
        world->targets[i] = (struct sim_target){.zone = i % WORLD_ZONES, .latency_us = 10000};
    rng_init(&world->rng, 1);
    the_world = world;

    struct config *config = load(n, settings);
    world->registry = registry_new_detached(1);
    diag_init(&diag);
    const struct snapshot_parts parts = {.registry = world->registry, .n_workers = 1, .version = 1};
    iso_err err = snapshot_build(&config, &parts, &world->snapshot, &diag);
    iso_assert(!err);
    diag_fini(&diag);
    world->group = &world->snapshot->groups[0];
    err = health_start(&world->health);
    iso_assert(!err);
    watch(world);
    virtual_advance(virtual_now_ns() + NS_PER_S);
    return world;
}

void world_free(struct world *world)
{
    virtual_begin_call();
    health_stop(&world->health);
    snapshot_free(world->snapshot, world->registry);
    registry_free(world->registry);
    for (uint32_t i = 0; i < QUEUE_STEPS; i++)
        free(world->queue[i].due);
    free(world->queue);
    free(world->is_watched);
    free(world->targets);
    free(world);
}

/* ---- requests ---- */

static struct sim_second *second_of(struct world *world)
{
    return &world->seconds[world->n_seconds];
}

static void note(struct world *world, uint32_t target, enum passive_sign sign)
{
    struct backend *backend = world->group->targets[target];
    if (passive_note(&backend->runs, &backend->workers[0].passive, &world->group->config->outlier, sign))
        health_ring(world->health);
}

static void enqueue(struct world *world, uint32_t target)
{
    const struct sim_target *sim = &world->targets[target];
    uint32_t spread = sim->latency_us / 5;
    struct answer_due due = {.target = target,
                             .latency_us = sim->latency_us - spread + rng_below(&world->rng, 2 * spread + 1),
                             .is_good = rng_below(&world->rng, 100) >= sim->failing_pct};
    uint64_t steps = due.latency_us / 1000 / STEP_MS + 1;
    iso_assert(steps < QUEUE_STEPS);
    struct sim_queue *queue = &world->queue[(world->step + steps) % QUEUE_STEPS];
    if (queue->n == queue->cap) {
        queue->cap = queue->cap * 2 + 64;
        queue->due = realloc(queue->due, queue->cap * sizeof(*queue->due));
        iso_assert(queue->due != NULL);
    }
    queue->due[queue->n++] = due;
    atomic_fetch_add_explicit(&world->group->targets[target]->in_flight, 1, memory_order_relaxed);
}

static void begin_request(struct world *world)
{
    struct sim_second *second = second_of(world);
    uint16_t tried[TRIES_MAX];
    second->requests++;
    for (uint32_t n_tried = 0; n_tried < world->attempts; n_tried++) {
        uint32_t target = select_in(world->group, &world->group->workers[0], virtual_now_ns(), &world->rng,
                                    rng_next(&world->rng), tried, n_tried);
        if (target == BALANCE_NONE) {
            second->no_target++;
            second->failed++;
            return;
        }
        second->watched += world->is_watched[target];
        second->retried += n_tried > 0;
        if (!world->targets[target].refuses) {
            enqueue(world, target);
            return;
        }
        note(world, target, PASSIVE_GATEWAY);
        tried[n_tried] = (uint16_t)target;
    }
    second->failed++;
}

static void end_requests(struct world *world)
{
    struct sim_queue *queue = &world->queue[world->step % QUEUE_STEPS];
    struct sim_second *second = second_of(world);
    for (uint32_t i = 0; i < queue->n; i++) {
        const struct answer_due *due = &queue->due[i];
        atomic_fetch_sub_explicit(&world->group->targets[due->target]->in_flight, 1, memory_order_relaxed);
        second->good += due->is_good;
        second->failed += !due->is_good;
        if (due->latency_us > second->slowest_us)
            second->slowest_us = due->latency_us;
        note(world, due->target, due->is_good ? PASSIVE_GOOD : PASSIVE_5XX);
    }
    queue->n = 0;
}

static void end_second(struct world *world)
{
    struct sim_second *second = second_of(world);
    for (uint32_t i = 0; i < world->n; i++) {
        struct health_status *health = &world->group->targets[i]->health;
        second->usable += health_is_usable(health);
        second->ejected += atomic_load_explicit(&health->is_ejected, memory_order_relaxed);
        second->unhealthy += atomic_load_explicit(&health->state, memory_order_relaxed) == TARGET_UNHEALTHY;
    }
    second->is_panicking =
        atomic_load_explicit(&world->group->runtime->health.is_panicking, memory_order_relaxed);
    world->n_seconds++;
    iso_assert(world->n_seconds < WORLD_SECONDS_MAX);
}

void world_run(struct world *world, uint32_t seconds)
{
    for (uint32_t s = 0; s < seconds; s++) {
        for (uint32_t i = 0; i < STEPS_PER_S; i++) {
            end_requests(world);
            world->owed += (double)world->rate / STEPS_PER_S;
            for (; world->owed >= 1; world->owed--)
                begin_request(world);
            world->step++;
            virtual_advance(virtual_now_ns() + STEP_MS * NS_PER_MS);
        }
        end_second(world);
    }
}

/* ---- what came of it ---- */

uint64_t world_transitions(const struct world *world)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < world->n; i++)
        sum += atomic_load_explicit(&world->group->targets[i]->health.transitions, memory_order_relaxed);
    return sum;
}

static double ratio(uint64_t part, uint64_t of)
{
    return of ? (double)part / (double)of : 1;
}

double world_goodput(const struct world *world, uint32_t from, uint32_t to)
{
    uint64_t good = 0, requests = 0;
    for (uint32_t i = from; i < to; i++) {
        good += world->seconds[i].good;
        requests += world->seconds[i].requests;
    }
    return ratio(good, requests);
}

double world_worst_second(const struct world *world, uint32_t from, uint32_t to)
{
    double worst = 1;
    for (uint32_t i = from; i < to; i++) {
        double now = world_goodput(world, i, i + 1);
        worst = now < worst ? now : worst;
    }
    return worst;
}

double world_watched_share(const struct world *world, uint32_t from, uint32_t to)
{
    uint64_t watched = 0, requests = 0;
    for (uint32_t i = from; i < to; i++) {
        watched += world->seconds[i].watched;
        requests += world->seconds[i].requests;
    }
    return ratio(watched, requests);
}

void world_print(const struct world *world, uint32_t every, struct text *out)
{
    enum { BAR = 40 };
    text_printf(out, "```\nsecond   good  failed  usable  unhealthy  ejected  panic  watched\n");
    for (uint32_t i = 0; i + every <= world->n_seconds; i += every) {
        const struct sim_second *last = &world->seconds[i + every - 1];
        double good = world_goodput(world, i, i + every);
        uint32_t failed = 0;
        for (uint32_t k = i; k < i + every; k++)
            failed += world->seconds[k].failed;
        text_printf(out, "%6u %5.1f%%  %6u  %6u  %9u  %7u  %5s  %6.2f%%", i + every, 100 * good, failed,
                    last->usable, last->unhealthy, last->ejected, last->is_panicking ? "panic" : "",
                    100 * world_watched_share(world, i, i + every));
        for (int b = 0; b < (int)(good * BAR + 0.5); b++)
            text_printf(out, b ? "#" : "  #");
        text_printf(out, "\n");
    }
    text_printf(out, "```\n");
}
