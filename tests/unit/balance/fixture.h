/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of targets "10.0.X.Y:80" with one method, for the tests of src/balance: weights, loads and
 * eligibility are plain arrays to write into; seeds are fixed, so every run is the same. */
#ifndef ISOBAR_TESTS_BALANCE_FIXTURE_H
#define ISOBAR_TESTS_BALANCE_FIXTURE_H

#include "balance/method.h"
#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct fixture {
    struct arena arena;
    const struct balance_method *method;
    struct balance_pool pool;
    struct balance_table *table;
    struct balance_state *state;
    struct balance_pick how;
    struct rng rng;
    uint32_t *weights;
    struct slice *names;
    _Atomic uint32_t *loads;
    uint64_t *eligible;
    uint16_t *ramp; /* used once how.ramp points to it; all full */
};

/* Before fixture_build(): the caller may still change weights and names. `weight` is for all. */
static inline void fixture_init(struct fixture *f, enum balance_method_id id, uint32_t n, uint32_t weight)
{
    *f = (struct fixture){.method = balance_method_get(id)};
    arena_init(&f->arena);
    rng_init(&f->rng, 1);
    f->weights = arena_array(&f->arena, uint32_t, n);
    f->names = arena_array(&f->arena, struct slice, n);
    f->loads = arena_array(&f->arena, _Atomic uint32_t, n);
    f->eligible = arena_array(&f->arena, uint64_t, n / 64 + 1);
    f->ramp = arena_array(&f->arena, uint16_t, n);
    _Atomic uint32_t **in_flight = arena_array(&f->arena, _Atomic uint32_t *, n);
    for (uint32_t i = 0; i < n; i++) {
        f->weights[i] = weight;
        f->names[i] = slice_str(arena_printf(&f->arena, "10.0.%u.%u:80", i / 250, i % 250));
        f->eligible[i / 64] |= 1ull << (i % 64);
        f->ramp[i] = BALANCE_RAMP_FULL;
        in_flight[i] = &f->loads[i];
    }
    f->pool = (struct balance_pool){.n = n, .weights = f->weights, .names = f->names, .in_flight = in_flight};
    f->how = (struct balance_pick){.eligible = f->eligible, .rng = &f->rng};
}

static inline iso_err fixture_try_build(struct fixture *f)
{
    iso_err err = f->method->build(&f->pool, &f->arena, &f->table);
    if (!err)
        f->state = (struct balance_state *)arena_alloc(&f->arena, f->method->state_bytes(&f->pool));
    return err;
}

static inline void fixture_build(struct fixture *f)
{
    assert_int_equal(fixture_try_build(f), ISO_OK);
}

/* Init, weights, build. */
static inline void fixture_open(struct fixture *f, enum balance_method_id id, uint32_t n,
                                const uint32_t *weights)
{
    fixture_init(f, id, n, 1);
    for (uint32_t i = 0; weights && i < n; i++)
        f->weights[i] = weights[i];
    fixture_build(f);
}

static inline void fixture_close(struct fixture *f)
{
    arena_fini(&f->arena);
}

static inline uint32_t fixture_pick(struct fixture *f)
{
    return f->method->pick(&f->pool, f->table, f->state, &f->how);
}

static inline uint32_t fixture_pick_key(struct fixture *f, uint64_t key)
{
    f->how.hash = hash_mix64(key + 0x9e3779b97f4a7c15ull);
    return fixture_pick(f);
}

static inline void fixture_set_eligible(struct fixture *f, uint32_t i, bool eligible)
{
    uint64_t bit = 1ull << (i % 64);
    f->eligible[i / 64] = eligible ? f->eligible[i / 64] | bit : f->eligible[i / 64] & ~bit;
}

/* The next picks as letters: "AABA". */
static inline void fixture_expect(struct fixture *f, const char *letters)
{
    for (const char *c = letters; *c; c++)
        assert_int_equal(fixture_pick(f), *c - 'A');
}

/* Counts `picks` picks per target; keys 0, 1, 2... for methods with a hash. */
static inline void fixture_count(struct fixture *f, uint32_t picks, uint32_t *counts)
{
    memset(counts, 0, sizeof(counts[0]) * f->pool.n);
    for (uint32_t k = 0; k < picks; k++) {
        uint32_t i = fixture_pick_key(f, k);
        assert_in_range(i, 0, f->pool.n - 1);
        counts[i]++;
    }
}

static inline void assert_within(double value, double expected, double part)
{
    if (value < expected * (1 - part) || value > expected * (1 + part))
        fail_msg("%g is not within %g%% of %g", value, part * 100, expected);
}

#endif
