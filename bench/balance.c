/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision costs and how even it is: nanoseconds of CPU per pick for every method at several pool
 * sizes (B3), the deviation from the weighted share (B5), and the time to build Maglev tables (I2).
 *
 * A pick is measured with the work around it: the key's mixing, and the in-flight counts, one cache line each
 * as in the proxy, raised for the picked target and lowered for the one picked 4 * n picks before. The best
 * of several runs counts, since the machine may be busy with other things.
 */
#include "balance/maglev.h"
#include "balance/method.h"
#include "core/check.h"
#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct counter {
    _Atomic uint32_t in_flight;
} ISO_CACHE_ALIGN;

struct setup {
    struct arena arena;
    struct balance_pool pool;
    struct balance_table *table;
    struct balance_state *state;
    struct balance_pick how;
    struct rng rng;
    uint64_t *eligible;
    uint32_t *weights;
    struct counter *counters;
};

enum pool_kind { EQUAL, MIXED, MIXED_TENTH_OUT, KIND_COUNT };

static void name_targets(struct arena *arena, struct slice *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        names[i] = slice_str(arena_printf(arena, "10.%u.%u.%u:8080", i >> 16, i >> 8 & 255, i & 255));
}

static void setup_open(struct setup *s, const struct balance_method *method, uint32_t n, enum pool_kind kind)
{
    *s = (struct setup){0};
    arena_init(&s->arena);
    rng_init(&s->rng, 7);
    struct slice *names = arena_array(&s->arena, struct slice, n);
    _Atomic uint32_t **in_flight = arena_array(&s->arena, _Atomic uint32_t *, n);
    s->weights = arena_array(&s->arena, uint32_t, n);
    s->eligible = arena_array(&s->arena, uint64_t, n / 64 + 1);
    s->counters = arena_alloc_line(&s->arena, sizeof(struct counter) * n);
    name_targets(&s->arena, names, n);
    for (uint32_t i = 0; i < n; i++) {
        s->weights[i] = kind == EQUAL ? 1 : 1 + i % 4;
        if (kind != MIXED_TENTH_OUT || i % 10 != 2)
            s->eligible[i / 64] |= 1ull << (i % 64);
        in_flight[i] = &s->counters[i].in_flight;
    }
    s->pool = (struct balance_pool){.n = n, .weights = s->weights, .names = names, .in_flight = in_flight};
    s->how = (struct balance_pick){.eligible = s->eligible, .rng = &s->rng};
    iso_assert(method->build(&s->pool, &s->arena, &s->table) == ISO_OK);
    s->state = (struct balance_state *)arena_alloc(&s->arena, method->state_bytes(&s->pool));
}

/* Makes `picks` picks, of which n * `each` are in flight, and counts them per target where `counts` is given.
 */
static void run_picks(struct setup *s, const struct balance_method *method, uint32_t picks, uint32_t each,
                      uint32_t *counts)
{
    uint32_t depth = s->pool.n * each, at = 0;
    uint32_t *open = arena_array(&s->arena, uint32_t, depth);
    memset(open, 0xff, sizeof(open[0]) * depth);
    for (uint32_t k = 0; k < picks; k++) {
        s->how.hash = hash_mix64(rng_next(&s->rng));
        uint32_t i = method->pick(&s->pool, s->table, s->state, &s->how);
        if (open[at] != BALANCE_NONE)
            atomic_fetch_sub_explicit(&s->counters[open[at]].in_flight, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->counters[i].in_flight, 1, memory_order_relaxed);
        open[at] = i;
        at = at + 1 == depth ? 0 : at + 1;
        if (counts)
            counts[i]++;
    }
    for (uint32_t k = 0; k < depth; k++)
        if (open[k] != BALANCE_NONE)
            atomic_fetch_sub_explicit(&s->counters[open[k]].in_flight, 1, memory_order_relaxed);
}

static const uint32_t sizes[] = {3, 50, 500, 5000};

static double ns_per_pick(const struct balance_method *method, uint32_t n, enum pool_kind kind)
{
    double best = 1e9;
    struct setup s;
    setup_open(&s, method, n, kind);
    uint32_t picks = 4 * n < 20000 ? 20000 : 4 * n;
    run_picks(&s, method, picks, 4, NULL);
    for (int round = 0; round < 7; round++) {
        uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        run_picks(&s, method, picks, 4, NULL);
        double ns = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / picks;
        best = ns < best ? ns : best;
    }
    arena_fini(&s.arena);
    return best;
}

static void print_costs(void)
{
    static const char *const kinds[KIND_COUNT] = {"equal weights", "weights 1 to 4",
                                                  "weights 1 to 4, one target in ten out"};
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        printf("\nns per pick, %s\n%-22s", kinds[kind], "targets");
        for (size_t i = 0; i < iso_countof(sizes); i++)
            printf("%10u", sizes[i]);
        for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
            const struct balance_method *method = balance_method_get((enum balance_method_id)id);
            printf("\n%-22s", method->name);
            for (size_t i = 0; i < iso_countof(sizes); i++) {
                printf("%10.1f", ns_per_pick(method, sizes[i], (enum pool_kind)kind));
                fflush(stdout);
            }
        }
        puts("");
    }
}

/* Largest deviation of a target from its weighted share, in percent. Of 50 random
 * draws of this size the worst is off by about 0.8%. */
static double share_error(const struct balance_method *method, uint32_t n, enum pool_kind kind)
{
    const uint32_t picks = 300000 * n;
    struct setup s;
    setup_open(&s, method, n, kind);
    bool by_weight = method != balance_method_get(BALANCE_ROUND_ROBIN);
    uint32_t *counts = arena_array(&s.arena, uint32_t, n);
    run_picks(&s, method, picks, 64, counts);
    double sum = 0, worst = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += balance_is_eligible(s.eligible, i) ? by_weight ? s.weights[i] : 1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!balance_is_eligible(s.eligible, i))
            continue;
        double share = (by_weight ? s.weights[i] : 1) / sum, off = counts[i] / share / picks - 1;
        worst = off > worst ? off : -off > worst ? -off : worst;
    }
    arena_fini(&s.arena);
    return worst * 100;
}

static void print_shares(void)
{
    static const uint32_t few[] = {3, 10, 50};
    printf("\nlargest deviation from the weighted share in %%, weights 1 to 4; in brackets: one in ten out\n"
           "%-22s",
           "targets");
    for (size_t i = 0; i < iso_countof(few); i++)
        printf("%17u", few[i]);
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        const struct balance_method *method = balance_method_get((enum balance_method_id)id);
        printf("\n%-22s", method->name);
        for (size_t i = 0; i < iso_countof(few); i++) {
            printf("%8.2f (%6.2f)", share_error(method, few[i], MIXED),
                   share_error(method, few[i], MIXED_TENTH_OUT));
            fflush(stdout);
        }
    }
    puts("");
}

static double maglev_ms(uint32_t n, uint32_t m, bool weighted)
{
    struct arena arena;
    arena_init(&arena);
    struct slice *names = arena_array(&arena, struct slice, n);
    uint32_t *weights = arena_array(&arena, uint32_t, n), *slots = arena_array(&arena, uint32_t, m);
    name_targets(&arena, names, n);
    for (uint32_t i = 0; i < n; i++)
        weights[i] = weighted ? 1 + i % 4 : 1;
    double best = 1e9;
    for (int round = 0; round < 11; round++) {
        uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        iso_assert(maglev_build(names, weights, n, m, slots) == ISO_OK);
        double ms = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / NS_PER_MS;
        best = ms < best ? ms : best;
    }
    arena_fini(&arena);
    return best;
}

static void print_maglev(void)
{
    static const uint32_t counts[] = {16, 256, 1000};
    printf("\nms to build a Maglev table (the paper: 1.8 and 22.9)\n%-22s%10s%10s%14s%14s\n", "targets",
           "65537", "655373", "65537 mixed", "655373 mixed");
    for (size_t i = 0; i < iso_countof(counts); i++)
        printf("%-22u%10.2f%10.2f%14.2f%14.2f\n", counts[i], maglev_ms(counts[i], MAGLEV_SIZE_DEFAULT, false),
               maglev_ms(counts[i], MAGLEV_SIZE_LARGE, false),
               maglev_ms(counts[i], MAGLEV_SIZE_DEFAULT, true),
               maglev_ms(counts[i], MAGLEV_SIZE_LARGE, true));
}

static void print_builds(void)
{
    printf("\nms to build a table, weights 1 to 4\n%-22s", "targets");
    for (size_t i = 0; i < iso_countof(sizes); i++)
        printf("%10u", sizes[i]);
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        const struct balance_method *method = balance_method_get((enum balance_method_id)id);
        printf("\n%-22s", method->name);
        for (size_t i = 0; i < iso_countof(sizes); i++) {
            double best = 1e9;
            struct setup s;
            setup_open(&s, method, sizes[i], MIXED);
            for (int round = 0; round < 5; round++) {
                struct arena arena;
                arena_init(&arena);
                uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                iso_assert(method->build(&s.pool, &arena, &s.table) == ISO_OK);
                double ms = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / NS_PER_MS;
                best = ms < best ? ms : best;
                arena_fini(&arena);
            }
            arena_fini(&s.arena);
            printf("%10.3f", best);
        }
    }
    puts("");
}

/* bench_balance [cost|share|maglev|build]: all parts, or one. */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } parts[] = {
        {"cost", print_costs}, {"share", print_shares}, {"maglev", print_maglev}, {"build", print_builds}};
    for (size_t i = 0; i < iso_countof(parts); i++)
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0)
            parts[i].print();
    return 0;
}
