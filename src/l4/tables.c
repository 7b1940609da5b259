/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/publication.h"

#include "core/clock.h"
#include "core/hash.h"

#include "balance/maglev.h"

#include <stdlib.h>

void l4_tables_init(struct l4_tables *tables, const struct l4_view *view)
{
    *tables = (struct l4_tables){.view = *view, .next_real = 1};
    iso_assert(view->n_rings <= L4_MAX_RINGS);
    uint64_t free_at = clock_mono_ns() + L4_GRACE_MS * NS_PER_MS;
    for (uint32_t i = 0; i < view->n_rings; i++)
        tables->ring_free_ns[i] = view->control->generation ? free_at : 0;
    tables->bank_free_ns = free_at;
    tables->slots_scratch = malloc(sizeof(uint32_t) * view->slots);
    iso_assert(tables->slots_scratch != NULL);
}

void l4_tables_fini(struct l4_tables *tables)
{
    free(tables->slots_scratch);
    tables->slots_scratch = NULL;
}

uint32_t l4_rings_needed(const struct l4_spec *spec)
{
    uint32_t needed = 2 * spec->n_sets + 6;
    return needed > L4_MAX_RINGS ? L4_MAX_RINGS : needed;
}

/* ---- rings ---- */

static void ring_mark_used(struct publication *pub, uint32_t ring)
{
    pub->ring_used[ring / 64] |= 1ull << (ring % 64);
}

static void mark_rings_in_force(struct publication *pub)
{
    for (uint32_t i = 0; i < L4_VIP_SLOTS; i++)
        if (pub->old->slots[i].key)
            ring_mark_used(pub, pub->old->slots[i].ring);
}

static void wait_until(uint64_t due_ns)
{
    uint64_t now = clock_mono_ns();
    if (due_ns <= now)
        return;
    struct timespec wait = {.tv_nsec = (long)(due_ns - now)};
    nanosleep(&wait, NULL);
}

/* A ring that nobody reads; waits out the grace time if that is all there is. 0: none. */
static uint32_t ring_take(struct publication *pub)
{
    struct l4_tables *tables = pub->tables;
    uint32_t best = 0;
    for (uint32_t ring = 1; ring < tables->view.n_rings; ring++)
        if (!(pub->ring_used[ring / 64] >> (ring % 64) & 1) &&
            (!best || tables->ring_free_ns[ring] < tables->ring_free_ns[best]))
            best = ring;
    if (best)
        wait_until(tables->ring_free_ns[best]);
    return best;
}

/* What `slot` remembers when its owner becomes `owner`: the last owner that still lives, if any. */
static uint16_t write_slot(struct publication *pub, uint32_t slot, uint16_t owner, const uint16_t *old,
                           const struct l4_move *old_moves, struct l4_move *moves)
{
    uint16_t was = old ? old[slot] & L4_SLOT_REAL : 0;
    uint16_t previous = 0;
    uint32_t until = 0;
    if (was != owner && was && pub->usable[was]) {
        previous = was;
        until = pub->now + pub->window;
    } else if (old && old[slot] & L4_SLOT_MOVED && (int32_t)(old_moves[slot].until - pub->now) > 0 &&
               pub->usable[old_moves[slot].previous] && old_moves[slot].previous != owner) {
        previous = old_moves[slot].previous;
        until = old_moves[slot].until;
    }
    if (was != owner)
        pub->tables->moved++;
    if (!previous)
        return owner;
    moves[slot] = (struct l4_move){.until = until, .previous = previous};
    return owner | L4_SLOT_MOVED;
}

/* Of everything that decides who owns which slot of a set's ring. Never 0. */
static uint64_t print_of(const struct publication *pub, uint32_t set_index)
{
    const struct l4_spec_set *set = &pub->spec->sets[set_index];
    uint64_t print = set->n_reals;
    for (uint32_t i = 0; i < set->n_reals; i++) {
        const uint32_t numbers[] = {l4_set_weight(pub->spec, set, i), pub->real_ids[set->reals[i]]};
        print = iso_hash64(pub->spec->reals[set->reals[i]].name, print);
        print = iso_hash64(slice_of((const char *)numbers, sizeof(numbers)), print);
    }
    return print ? print : 1;
}

static bool has_moves(const struct l4_view *view, uint32_t ring)
{
    const uint16_t *slots = l4_ring(view, ring);
    uint16_t any = 0;
    for (uint32_t slot = 0; slot < view->slots; slot++)
        any |= slots[slot];
    return any & L4_SLOT_MOVED;
}

/* The ring would come out as it is. One with moves is written again, since they may name reals that are gone.
 */
static bool stays(const struct publication *pub, uint32_t ring, uint64_t print)
{
    return ring && pub->tables->ring_print[ring] == print && !has_moves(&pub->tables->view, ring);
}

static iso_err build_owners(struct publication *pub, uint32_t set_index, uint16_t *owners)
{
    pub->tables->computed++;
    const struct l4_spec_set *set = &pub->spec->sets[set_index];
    struct l4_tables *tables = pub->tables;
    struct arena arena;
    arena_init(&arena);
    struct slice *names = arena_array(&arena, struct slice, set->n_reals + 1);
    uint32_t *weights = arena_array(&arena, uint32_t, set->n_reals + 1);
    for (uint32_t i = 0; i < set->n_reals; i++) {
        names[i] = pub->spec->reals[set->reals[i]].name;
        weights[i] = l4_set_weight(pub->spec, set, i);
    }
    iso_err err = maglev_build(names, weights, set->n_reals, tables->view.slots, tables->slots_scratch);
    arena_fini(&arena);
    if (err) {
        diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/nodes",
                 "no table of %u slots for these %u reals: more reals than slots, or two of one name",
                 tables->view.slots, set->n_reals);
        return err;
    }
    for (uint32_t slot = 0; slot < tables->view.slots; slot++) {
        uint32_t index = tables->slots_scratch[slot];
        owners[slot] = index == 0xffffffffu ? 0 : pub->real_ids[set->reals[index]];
    }
    return ISO_OK;
}

/* The ring of a group: the old one where nothing changes, otherwise a new one with moves against it. */
static iso_err build_ring(struct publication *pub, struct ring_group *group)
{
    struct l4_view *view = &pub->tables->view;
    uint64_t print = print_of(pub, group->set);
    if (stays(pub, group->old_ring, print)) {
        group->new_ring = group->old_ring;
        return ISO_OK;
    }
    uint32_t ring = ring_take(pub);
    if (!ring) {
        diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/l4/rings", "all %u rings are in use", view->n_rings);
        return ISO_ERR_LIMIT;
    }
    uint16_t *fresh = l4_ring(view, ring);
    const uint16_t *old = group->old_ring ? l4_ring(view, group->old_ring) : NULL;
    iso_err err = build_owners(pub, group->set, fresh);
    if (err)
        return err;
    struct l4_move *moves = l4_ring_moves(view, ring);
    const struct l4_move *old_moves = l4_ring_moves(view, group->old_ring);
    bool same = old != NULL;
    for (uint32_t slot = 0; slot < view->slots; slot++) {
        fresh[slot] = write_slot(pub, slot, fresh[slot], old, old_moves, moves);
        if (same && fresh[slot] != old[slot])
            same = false;
    }
    if (same) {
        group->new_ring = group->old_ring;
        pub->tables->ring_print[group->old_ring] = print;
        return ISO_OK;
    }
    pub->tables->ring_print[ring] = print;
    group->new_ring = ring;
    group->fresh = true;
    ring_mark_used(pub, ring);
    pub->tables->rebuilt++;
    return ISO_OK;
}

static struct ring_group *group_get(struct publication *pub, uint32_t set, uint32_t old_ring, iso_err *err)
{
    size_t ring_bytes = sizeof(uint16_t) * pub->tables->view.slots;
    for (uint32_t i = 0; i < pub->n_groups; i++) {
        struct ring_group *group = &pub->groups[i];
        if (group->set != set)
            continue;
        if (group->old_ring == old_ring)
            return group;
        /* Rings that became alike and have no moves left are one. */
        if (!group->fresh && old_ring && group->old_ring &&
            !memcmp(l4_ring(&pub->tables->view, old_ring), l4_ring(&pub->tables->view, group->old_ring),
                    ring_bytes))
            return group;
    }
    if (pub->n_groups == L4_MAX_RINGS) {
        *err = ISO_ERR_LIMIT;
        return NULL;
    }
    struct ring_group *group = &pub->groups[pub->n_groups];
    *group = (struct ring_group){.set = set, .old_ring = old_ring};
    *err = build_ring(pub, group);
    if (*err)
        return NULL;
    pub->n_groups++;
    return group;
}

/* ---- VIPs ---- */

struct l4_vip *l4_bank_find(struct l4_vip_bank *bank, const __u64 addr[2], __u32 key)
{
    uint32_t home = l4_vip_home(addr[0], addr[1], key);
    for (uint32_t i = 0; i < L4_VIP_PROBES; i++) {
        struct l4_vip *vip = &bank->slots[(home + i) & (L4_VIP_SLOTS - 1)];
        if (vip->key == key && vip->addr[0] == addr[0] && vip->addr[1] == addr[1])
            return vip;
    }
    return NULL;
}

static iso_err bank_add(struct publication *pub, const struct l4_vip *vip)
{
    uint32_t home = l4_vip_home(vip->addr[0], vip->addr[1], vip->key);
    for (uint32_t i = 0; i < L4_VIP_PROBES; i++) {
        struct l4_vip *slot = &pub->bank->slots[(home + i) & (L4_VIP_SLOTS - 1)];
        if (slot->key)
            continue;
        *slot = *vip;
        return ISO_OK;
    }
    diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/load_balancers", "the VIP table is too full");
    return ISO_ERR_LIMIT;
}

static uint8_t family_of(const struct ip_prefix *prefix)
{
    return prefix->addr.family == 6 ? L4_V6 : L4_V4;
}

static bool is_whole_address(const struct ip_prefix *prefix)
{
    return prefix->bits == (prefix->addr.family == 6 ? 128 : 32);
}

static void addr_words(const struct ip_addr *ip, __u64 out[2])
{
    out[0] = out[1] = 0;
    memcpy(out, ip->bytes, ip->family == 6 ? 16 : 4);
}

static void mask_words(uint8_t bits, __u64 out[2])
{
    uint8_t bytes[16] = {0};
    for (unsigned i = 0; i < bits; i++)
        bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
    memcpy(out, bytes, 16);
}

/* The address under which the VIP table knows a prefix of `bank`; false when it has none like it. */
static bool prefix_words(const struct l4_vip_bank *bank, const struct ip_prefix *prefix, __u64 out[2])
{
    __u64 addr[2], mask[2];
    addr_words(&prefix->addr, addr);
    mask_words(prefix->bits, mask);
    for (uint32_t i = 0; i < bank->n_prefixes; i++) {
        const struct l4_prefix *p = &bank->prefixes[i];
        if (p->family != family_of(prefix) || memcmp(p->addr, addr, 16) || memcmp(p->mask, mask, 16))
            continue;
        out[0] = p->name;
        out[1] = ~0ull;
        return true;
    }
    return false;
}

static int longest_first(const void *a, const void *b)
{
    const struct ip_prefix *x = a, *y = b;
    return (int)y->bits - (int)x->bits;
}

static iso_err add_prefixes(struct publication *pub)
{
    struct ip_prefix prefixes[L4_PREFIXES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < pub->spec->n_vips; i++) {
        const struct ip_prefix *prefix = &pub->spec->vips[i].prefix;
        uint32_t known = 0;
        while (known < n &&
               (prefixes[known].bits != prefix->bits || !ip_eq(&prefixes[known].addr, &prefix->addr)))
            known++;
        if (is_whole_address(prefix) || known < n)
            continue;
        if (n == L4_PREFIXES) {
            diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/load_balancers", "at most %d prefix VIPs",
                     L4_PREFIXES);
            return ISO_ERR_LIMIT;
        }
        prefixes[n++] = *prefix;
    }
    qsort(prefixes, n, sizeof(prefixes[0]), longest_first);
    for (uint32_t i = 0; i < n; i++) {
        struct l4_prefix *p = &pub->bank->prefixes[i];
        addr_words(&prefixes[i].addr, p->addr);
        mask_words(prefixes[i].bits, p->mask);
        p->family = family_of(&prefixes[i]);
        p->name = i + 1;
    }
    pub->bank->n_prefixes = n;
    return ISO_OK;
}

static bool vip_words(const struct l4_vip_bank *bank, const struct ip_prefix *prefix, __u64 out[2])
{
    if (!is_whole_address(prefix))
        return prefix_words(bank, prefix, out);
    addr_words(&prefix->addr, out);
    return true;
}

static __u32 vip_key_of(const struct l4_spec_vip *vip)
{
    return l4_vip_key(__builtin_bswap16(vip->port), vip->protocol, family_of(&vip->prefix));
}

/* The same on every node, whatever else is configured there. */
static uint32_t salt_of(const struct ip_prefix *prefix)
{
    uint8_t text[18] = {prefix->addr.family, prefix->bits};
    memcpy(text + 2, prefix->addr.bytes, prefix->addr.family == 6 ? 16 : 4);
    return (uint32_t)iso_hash64(slice_of((const char *)text, sizeof(text)), 0);
}

static uint16_t vip_id_new(struct publication *pub, uint64_t *taken)
{
    struct l4_view *view = &pub->tables->view;
    for (uint32_t id = 0; id < L4_VIPS; id++) {
        if (taken[id / 64] >> (id % 64) & 1)
            continue;
        taken[id / 64] |= 1ull << (id % 64);
        for (uint32_t cpu = 0; cpu < view->n_cpus; cpu++)
            view->vip_count[cpu * L4_VIPS + id] = (struct l4_traffic){0};
        return (uint16_t)id;
    }
    return 0; /* n_vips was checked: there is always one */
}

/* The entry that stands for the address itself, made on first use: it answers pings and judges fragments. */
static iso_err serve_address(struct publication *pub, const struct l4_vip *vip, uint8_t family,
                             uint8_t protocol)
{
    __u32 key = l4_vip_key(0, 0, family);
    struct l4_vip *address = l4_bank_find(pub->bank, vip->addr, key);
    uint16_t serves = protocol == 6 ? L4_SERVES_TCP : L4_SERVES_UDP;
    if (vip->flags & L4_VIP_FRAGMENTS)
        serves |= L4_SERVES_FRAGMENTS;
    if (address) {
        address->flags |= serves;
        return ISO_OK;
    }
    struct l4_vip entry = *vip;
    entry.key = key;
    entry.flags = serves;
    return bank_add(pub, &entry);
}

static iso_err add_vips(struct publication *pub)
{
    const struct l4_spec *spec = pub->spec;
    uint64_t taken[L4_VIPS / 64] = {0};
    static const uint16_t NO_ID = 0xffff;
    if (spec->n_vips > L4_VIPS) {
        diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/load_balancers", "at most %d VIPs, there are %u", L4_VIPS,
                 spec->n_vips);
        return ISO_ERR_LIMIT;
    }
    iso_err err = ISO_OK;
    for (uint32_t i = 0; i < spec->n_vips && !err; i++) {
        __u64 addr[2];
        struct l4_vip *was = NULL;
        if (vip_words(pub->old, &spec->vips[i].prefix, addr))
            was = l4_bank_find(pub->old, addr, vip_key_of(&spec->vips[i]));
        struct ring_group *group = group_get(pub, spec->vips[i].set, was ? was->ring : 0, &err);
        if (!group)
            break;
        if (was)
            taken[was->id / 64] |= 1ull << (was->id % 64);
        struct l4_vip vip = {.key = vip_key_of(&spec->vips[i]),
                             .id = was ? was->id : NO_ID,
                             .flags = spec->vips[i].flags,
                             .ring = group->new_ring,
                             .salt = salt_of(&spec->vips[i].prefix)};
        if (vip.flags & L4_VIP_FRAGMENTS)
            vip.flags |= L4_VIP_HASH_SOURCE; /* so that pieces and whole packets meet */
        if (!vip_words(pub->bank, &spec->vips[i].prefix, vip.addr))
            iso_unreachable("add_prefixes() knows every prefix");
        if (l4_bank_find(pub->bank, vip.addr, vip.key)) {
            diag_add(pub->diag, DIAG_ERROR, "", 0, 0, "/load_balancers",
                     "%.*s: a second VIP of the same address, port and protocol",
                     SLICE_ARG(spec->vips[i].name));
            err = ISO_ERR_INVALID;
            break;
        }
        err = bank_add(pub, &vip);
        if (!err && spec->vips[i].port == 0)
            pub->bank->any_port = 1;
    }
    for (uint32_t i = 0; i < spec->n_vips && !err; i++) {
        __u64 addr[2];
        if (!vip_words(pub->bank, &spec->vips[i].prefix, addr))
            iso_unreachable("add_prefixes() knows every prefix");
        struct l4_vip *vip = l4_bank_find(pub->bank, addr, vip_key_of(&spec->vips[i]));
        if (vip->id == NO_ID)
            vip->id = vip_id_new(pub, taken);
        err = serve_address(pub, vip, family_of(&spec->vips[i].prefix), spec->vips[i].protocol);
    }
    return err;
}

iso_err l4_tables_publish(struct l4_tables *tables, const struct l4_spec *spec, uint32_t now_tick,
                          struct iso_diag *diag)
{
    struct l4_view *view = &tables->view;
    uint32_t bank = view->control->bank & 1;
    struct publication *pub = calloc(1, sizeof(*pub));
    iso_assert(pub != NULL);
    pub->tables = tables;
    pub->spec = spec;
    pub->diag = diag;
    pub->old = &view->banks[bank];
    pub->bank = &view->banks[!bank];
    pub->now = now_tick;
    pub->window = spec->node.move_window_s; /* a tick is about a second */
    tables->moved = tables->rebuilt = tables->computed = 0;
    wait_until(tables->bank_free_ns);
    memset(pub->bank, 0, sizeof(*pub->bank));
    mark_rings_in_force(pub);
    l4_reals_index(pub);

    iso_err err = l4_reals_assign(pub);
    if (!err)
        err = add_prefixes(pub);
    if (!err)
        err = add_vips(pub);
    if (!err) {
        uint64_t free_at = clock_mono_ns() + L4_GRACE_MS * NS_PER_MS;
        l4_reals_admit(pub);
        __atomic_store_n(&view->control->bank, !bank, __ATOMIC_RELEASE);
        __atomic_add_fetch(&view->control->generation, 1, __ATOMIC_RELEASE);
        l4_reals_retire(pub);
        tables->bank_free_ns = free_at;
        for (uint32_t i = 0; i < pub->n_groups; i++)
            if (pub->groups[i].new_ring != pub->groups[i].old_ring)
                tables->ring_free_ns[pub->groups[i].old_ring] = free_at;
    }
    free(pub);
    return err;
}

uint32_t l4_tables_sweep(struct l4_tables *tables, uint32_t now_tick)
{
    struct l4_view *view = &tables->view;
    struct l4_vip_bank *bank = l4_bank(view);
    uint64_t done[L4_MAX_RINGS / 64] = {0};
    uint32_t marked = 0;
    for (uint32_t i = 0; i < L4_VIP_SLOTS; i++) {
        uint32_t ring = bank->slots[i].ring;
        if (!bank->slots[i].key || !ring || ring >= view->n_rings || done[ring / 64] >> (ring % 64) & 1)
            continue;
        done[ring / 64] |= 1ull << (ring % 64);
        uint16_t *slots = l4_ring(view, ring);
        const struct l4_move *moves = l4_ring_moves(view, ring);
        for (uint32_t slot = 0; slot < view->slots; slot++) {
            if (!(slots[slot] & L4_SLOT_MOVED))
                continue;
            if ((int32_t)(moves[slot].until - now_tick) > 0)
                marked++;
            else
                __atomic_store_n(&slots[slot], slots[slot] & L4_SLOT_REAL, __ATOMIC_RELAXED);
        }
    }
    return marked;
}
