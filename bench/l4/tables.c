/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to build a table, to publish a change, and how many slots of others a change moves (I2, B4).
 * CPU milliseconds, minimum of several; tables in plain memory, so it needs no rights. */
#include "l4/tables.h"

#include "balance/maglev.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 15, RINGS = 8 };

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *zeroed(size_t bytes)
{
    void *at = aligned_alloc(4096, (bytes + 4095) & ~4095ul);
    iso_assert(at != NULL);
    return memset(at, 0, bytes);
}

static void make_view(struct l4_view *view, uint32_t slots)
{
    *view =
        (struct l4_view){.n_rings = RINGS, .slots = slots, .n_cpus = 1, .flow_sets = 64, .region_sets = 64};
    view->ring_stride = (2ul * slots + 7) & ~7ul;
    view->move_stride = 8ul * slots;
    view->control = zeroed(sizeof(*view->control));
    view->banks = zeroed(2 * sizeof(*view->banks));
    view->reals = zeroed(L4_REALS * sizeof(*view->reals));
    view->rings = zeroed(RINGS * view->ring_stride);
    view->moves = zeroed(RINGS * view->move_stride);
    view->flows = zeroed(64 * sizeof(*view->flows));
    view->vip_count = zeroed(L4_VIPS * sizeof(*view->vip_count));
    view->real_count = zeroed(L4_REALS * sizeof(*view->real_count));
    view->cpus = zeroed(sizeof(*view->cpus));
}

static void make_spec(struct l4_spec *spec, struct arena *arena, uint32_t n)
{
    *spec = (struct l4_spec){0};
    l4_node_defaults(&spec->node);
    spec->reals = arena_array(arena, struct l4_spec_real, n);
    spec->sets = arena_array(arena, struct l4_spec_set, 1);
    spec->vips = arena_array(arena, struct l4_spec_vip, 1);
    spec->sets[0].reals = arena_array(arena, uint32_t, n);
    spec->n_reals = spec->sets[0].n_reals = n;
    spec->n_sets = spec->n_vips = 1;
    for (uint32_t i = 0; i < n; i++) {
        struct l4_spec_real *real = &spec->reals[i];
        *real = (struct l4_spec_real){
            .name = slice_str(arena_printf(arena, "l7-%04u", i)), .weight = 1, .usable = true};
        real->ip = (struct ip_addr){.family = 4, .bytes = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}};
        spec->sets[0].reals[i] = i;
    }
    spec->vips[0] =
        (struct l4_spec_vip){.name = SLICE("vip"),
                             .port = 80,
                             .protocol = 6,
                             .prefix = {.addr = {.family = 4, .bytes = {10, 200, 1, 1}}, .bits = 32}};
}

static void build_only(uint32_t slots, uint32_t n)
{
    struct arena arena;
    struct l4_spec spec;
    arena_init(&arena);
    make_spec(&spec, &arena, n);
    struct slice *names = arena_array(&arena, struct slice, n);
    uint32_t *weights = arena_array(&arena, uint32_t, n), *table = arena_array(&arena, uint32_t, slots);
    double best = 1e9;
    for (uint32_t i = 0; i < n; i++)
        names[i] = spec.reals[i].name, weights[i] = 1;
    for (int run = 0; run < RUNS; run++) {
        double start = cpu_ms();
        iso_err err = maglev_build(names, weights, n, slots, table);
        double spent = cpu_ms() - start;
        iso_assert(!err);
        if (spent < best)
            best = spent;
    }
    printf("build %6u slots, %4u reals: %6.2f ms\n", slots, n, best);
    arena_fini(&arena);
}

/* Fails and restores a real, through the whole publication. */
static void change_one(uint32_t slots, uint32_t n)
{
    struct arena arena;
    struct l4_spec spec;
    struct l4_view view;
    struct l4_tables tables;
    struct iso_diag diag;
    arena_init(&arena);
    diag_init(&diag);
    make_spec(&spec, &arena, n);
    make_view(&view, slots);
    l4_tables_init(&tables, &view);
    double best = 1e9, worst_others = 0;
    iso_assert(!l4_tables_publish(&tables, &spec, 1, &diag));
    for (int run = 0; run < RUNS; run++) {
        uint32_t victim = (uint32_t)run * 7 % n, owned = 0;
        uint16_t id = (uint16_t)l4_real_id(&view, &spec.reals[victim].ip, false);
        const uint16_t *ring = l4_ring(
            &view, l4_bank(&view)->slots[l4_vip_home(0x0101c80aull, 0, l4_vip_key(0x5000, 6, 4))].ring);
        for (uint32_t slot = 0; slot < slots; slot++)
            owned += (ring[slot] & L4_SLOT_REAL) == id;
        for (int back = 0; back < 2; back++) {
            spec.reals[victim].usable = back;
            double start = cpu_ms();
            iso_err err = l4_tables_publish(&tables, &spec, 1, &diag);
            double spent = cpu_ms() - start;
            iso_assert(!err);
            if (spent < best)
                best = spent;
            double others = 100.0 * (tables.moved - owned) / slots;
            if (others > worst_others)
                worst_others = others;
        }
    }
    printf("one of %4u reals leaves or comes back, %6u slots: published in %.2f ms; other slots moved: at "
           "most %.2f %%\n",
           n, slots, best, worst_others);
    l4_tables_fini(&tables);
    arena_fini(&arena);
}

int main(void)
{
    build_only(65537, 16);
    build_only(65537, 256);
    build_only(65537, 1000);
    build_only(655373, 1000);
    change_one(65537, 16);
    change_one(65537, 256);
    change_one(65537, 1000);
    return 0;
}
