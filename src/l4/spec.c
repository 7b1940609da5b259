/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/spec.h"

void l4_node_defaults(struct l4_node *node)
{
    *node = (struct l4_node){
        .pin = SLICE("/sys/fs/bpf/isobar-l4"),
        .mode = L4_NATIVE,
        .table_size = 65537,
        .flow_entries = 1 << 20,
        .max_inserts_per_s = 250000,
        .move_window_s = 300,
        .gue_port = 6080,
        .reply_too_big = true,
        /* Benchmark and discard addresses (RFC 2544, RFC 6666): nobody's, so nothing is ever sent to them. */
        .source4 = {.addr = {.family = 4, .bytes = {198, 18}}, .bits = 16},
        .source6 = {.addr = {.family = 6, .bytes = {0x01}}, .bits = 64},
    };
}

uint32_t l4_set_weight(const struct l4_spec *spec, const struct l4_spec_set *set, uint32_t i)
{
    const struct l4_spec_real *real = &spec->reals[set->reals[i]];
    if (!real->usable)
        return 0;
    return set->weights ? set->weights[i] : real->weight;
}

uint32_t l4_tunnel_bytes(const struct l4_spec *spec)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < spec->n_reals; i++) {
        uint32_t bytes = (spec->reals[i].ip.family == 6 ? 40 : 20) + (spec->reals[i].gue ? 8 : 0);
        if (bytes > most)
            most = bytes;
    }
    return most;
}
