/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of reals: stable while a real is known, given again only when nothing refers to them. */
#include "l4/publication.h"

static void real_fill(struct l4_real *real, const struct ip_addr *ip, bool gue)
{
    struct l4_real r = {0};
    if (ip->family == 4) {
        memcpy(r.addr, ip->bytes, 4);
        r.addr_sum = (r.addr[0] & 0xffff) + (r.addr[0] >> 16);
    } else {
        memcpy(r.addr, ip->bytes, 16);
        r.flags |= L4_REAL_V6;
    }
    if (gue)
        r.flags |= L4_REAL_GUE;
    *real = r;
}

static bool real_is_used(const struct l4_real *real)
{
    return real->addr[0] | real->addr[1] | real->addr[2] | real->addr[3];
}

uint32_t l4_real_id(const struct l4_view *view, const struct ip_addr *ip, bool gue)
{
    struct l4_real wanted;
    real_fill(&wanted, ip, gue);
    for (uint32_t id = 1; id < L4_REALS; id++) {
        const struct l4_real *real = &view->reals[id];
        if (!memcmp(real->addr, wanted.addr, sizeof(wanted.addr)) &&
            (real->flags & ~(uint32_t)L4_REAL_USABLE) == wanted.flags)
            return id;
    }
    return 0;
}

void l4_real_address(const struct l4_real *real, struct ip_addr *ip)
{
    *ip = (struct ip_addr){.family = real->flags & L4_REAL_V6 ? 6 : 4};
    memcpy(ip->bytes, real->addr, ip->family == 6 ? 16 : 4);
}

/* Entries of an id that now means another real would send old flows there. */
static void forget_flows(struct l4_tables *tables, uint32_t id)
{
    for (uint32_t set = 0; set < tables->view.flow_sets; set++)
        for (uint32_t i = 0; i < L4_WAYS; i++) {
            struct l4_flow *flow = &tables->view.flows[set].way[i];
            if ((flow->word & (L4_REALS - 1)) == id)
                __atomic_store_n(&flow->state, L4_FLOW_NONE, __ATOMIC_RELAXED);
        }
}

/* A fresh id: never used ones first, then one whose real is gone. 0: none left. */
static uint32_t real_id_new(struct publication *pub)
{
    struct l4_view *view = &pub->tables->view;
    for (uint32_t id = 1; id < L4_REALS; id++)
        if (!real_is_used(&view->reals[id]))
            return id;
    for (uint32_t i = 0; i < L4_REALS - 1; i++) {
        uint32_t id = 1 + (pub->tables->next_real - 1 + i) % (L4_REALS - 1);
        if (view->reals[id].flags & L4_REAL_USABLE || pub->known[id / 64] >> (id % 64) & 1)
            continue;
        pub->tables->next_real = 1 + id % (L4_REALS - 1);
        forget_flows(pub->tables, id);
        for (uint32_t cpu = 0; cpu < view->n_cpus; cpu++)
            view->real_count[cpu * L4_REALS + id] = (struct l4_traffic){0};
        return id;
    }
    return 0;
}

static uint32_t real_bucket(const struct l4_real *real)
{
    __u64 words[2];
    memcpy(words, real->addr, sizeof(words));
    return (uint32_t)(l4_mix(words[0] ^ l4_mix(words[1] ^ (real->flags & ~(uint32_t)L4_REAL_USABLE))) %
                      REAL_BUCKETS);
}

static bool is_same_real(const struct l4_real *a, const struct l4_real *b)
{
    return !memcmp(a->addr, b->addr, sizeof(a->addr)) && !((a->flags ^ b->flags) & ~(uint32_t)L4_REAL_USABLE);
}

/* The id of a real among those indexed, 0 if new; `*bucket` is where it stands or would. */
static uint32_t real_find(struct publication *pub, const struct l4_real *real, uint32_t *bucket)
{
    *bucket = real_bucket(real);
    for (; pub->by_address[*bucket]; *bucket = (*bucket + 1) % REAL_BUCKETS)
        if (is_same_real(&pub->tables->view.reals[pub->by_address[*bucket]], real))
            return pub->by_address[*bucket];
    return 0;
}

void l4_reals_index(struct publication *pub)
{
    for (uint32_t id = 1; id < L4_REALS; id++) {
        uint32_t bucket;
        const struct l4_real *real = &pub->tables->view.reals[id];
        if (real_is_used(real) && !real_find(pub, real, &bucket))
            pub->by_address[bucket] = (uint16_t)id;
    }
}

static iso_err fail_twice(struct publication *pub, uint32_t index)
{
    diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/nodes", "%.*s: a second real with the same address",
             SLICE_ARG(pub->spec->reals[index].name));
    return ISO_ERR_INVALID;
}

iso_err l4_reals_assign(struct publication *pub)
{
    const struct l4_spec *spec = pub->spec;
    struct l4_view *view = &pub->tables->view;
    if (spec->n_reals >= L4_REALS) {
        diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/nodes", "at most %d reals, there are %u", L4_REALS - 1,
                 spec->n_reals);
        return ISO_ERR_LIMIT;
    }
    for (uint32_t i = 0; i < spec->n_reals; i++) {
        struct l4_real real;
        uint32_t bucket;
        real_fill(&real, &spec->reals[i].ip, spec->reals[i].gue);
        uint32_t id = real_find(pub, &real, &bucket);
        pub->real_ids[i] = (uint16_t)id;
        if (id && pub->known[id / 64] >> (id % 64) & 1)
            return fail_twice(pub, i);
        if (id)
            pub->known[id / 64] |= 1ull << (id % 64);
    }
    for (uint32_t i = 0; i < spec->n_reals; i++) {
        struct l4_real real;
        uint32_t bucket;
        real_fill(&real, &spec->reals[i].ip, spec->reals[i].gue);
        if (pub->real_ids[i])
            continue;
        if (real_find(pub, &real, &bucket))
            return fail_twice(pub, i);
        uint32_t id = real_id_new(pub);
        if (!id)
            return ISO_ERR_LIMIT;
        pub->real_ids[i] = (uint16_t)id;
        pub->known[id / 64] |= 1ull << (id % 64);
        pub->by_address[bucket] = (uint16_t)id;
        view->reals[id] = real;
    }
    for (uint32_t i = 0; i < spec->n_reals; i++)
        pub->usable[pub->real_ids[i]] = spec->reals[i].usable;
    return ISO_OK;
}

void l4_reals_admit(struct publication *pub)
{
    struct l4_real *reals = pub->tables->view.reals;
    for (uint32_t i = 0; i < pub->spec->n_reals; i++) {
        uint32_t number = pub->spec->reals[i].server_ids[0];
        reals[pub->real_ids[i]].number = number <= 0xffff ? number : 0;
    }
    for (uint32_t id = 1; id < L4_REALS; id++)
        if (pub->usable[id])
            reals[id].flags |= L4_REAL_USABLE;
}

void l4_reals_retire(struct publication *pub)
{
    for (uint32_t id = 1; id < L4_REALS; id++)
        if (!pub->usable[id])
            pub->tables->view.reals[id].flags &= ~(uint32_t)L4_REAL_USABLE;
}
