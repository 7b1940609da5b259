/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/shape.h"

#include "snapshot/snapshot.h"

#include <stdlib.h>

bool shape_is_same(const struct shape_targets *a, const struct shape_targets *b)
{
    if (a->n != b->n || a->algorithm != b->algorithm)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct config_target *x = &a->settings[i], *y = &b->settings[i];
        if (x->weight != y->weight || x->enabled != y->enabled || x->backup != y->backup ||
            x->order != y->order || !slice_eq(x->endpoint.text, y->endpoint.text))
            return false;
    }
    return true;
}

iso_err shape_build(const struct shape_targets *targets, struct slice group, struct registry *registry,
                    struct group_runtime *runtime, uint64_t stamp, struct snap_shape **out)
{
    struct snap_shape *shape = calloc(1, sizeof(*shape));
    iso_assert(shape != NULL);
    struct arena *arena = &shape->arena;
    arena_init(arena);
    uint32_t n = targets->n;
    uint32_t *weights = arena_array(arena, uint32_t, n + 1);
    struct slice *names = arena_array(arena, struct slice, n + 1);
    _Atomic uint32_t **in_flight = arena_alloc(arena, sizeof(*in_flight) * (n + 1));
    shape->refs = 1;
    shape->born = shape->stamp = stamp;
    shape->algorithm = targets->algorithm;
    shape->targets = arena_array(arena, struct backend *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct config_target *target = &targets->settings[i];
        struct net_addr addr;
        snapshot_endpoint_addr(&target->endpoint, &addr);
        struct backend *backend = registry_backend(registry, group, target->endpoint.text, &addr, runtime);
        backend->stamp = stamp;
        shape->targets[i] = backend;
        weights[i] = target->weight;
        names[i] = slice_str(backend->name);
        in_flight[i] = &backend->in_flight;
    }
    shape->n = n;
    shape->pool = (struct balance_pool){.n = n, .weights = weights, .names = names, .in_flight = in_flight};
    iso_err err = balance_method_get(targets->algorithm)->build(&shape->pool, arena, &shape->table);
    if (err)
        shape_unref(&shape, registry);
    else
        *out = shape;
    return err;
}

struct snap_shape *shape_ref(struct snap_shape *shape, uint64_t stamp)
{
    shape->refs++;
    shape->stamp = stamp;
    return shape;
}

void shape_unref(struct snap_shape **taken, struct registry *registry)
{
    struct snap_shape *shape = *taken;
    *taken = NULL;
    if (!shape || --shape->refs > 0)
        return;
    for (uint32_t i = 0; i < shape->n; i++)
        registry_backend_unref(registry, &shape->targets[i]);
    arena_fini(&shape->arena);
    free(shape);
}
