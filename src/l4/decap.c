/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/decap.h"
#include "l4/loader_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "l4/decap.skel.h"
#pragma GCC diagnostic pop

static struct decap_bpf *load(const struct l4_decap *decap, struct iso_diag *diag)
{
    l4_prepare_libbpf();
    struct decap_bpf *skel = decap_bpf__open();
    if (!skel) {
        (void)!l4_complain(diag, ISO_ERR_UNSUPPORTED, errno, "cannot open the program", "/l4");
        return NULL;
    }
    skel->rodata->l4_gue_port = __builtin_bswap16(decap->gue_port);
    bpf_map__set_max_entries(skel->maps.l4_cpus, (uint32_t)libbpf_num_possible_cpus());
    int refused = decap_bpf__load(skel);
    if (refused) {
        (void)!l4_complain(diag, ISO_ERR_UNSUPPORTED, -refused, "the kernel refused the program", "/l4");
        decap_bpf__destroy(skel);
        return NULL;
    }
    for (uint32_t i = 0; i < decap->n_vips; i++) {
        struct l4_local key = {.family = decap->vips[i].family == 6 ? L4_V6 : L4_V4};
        uint32_t value = 1;
        memcpy(key.addr, decap->vips[i].bytes, decap->vips[i].family == 6 ? 16 : 4);
        if (bpf_map__update_elem(skel->maps.l4_local, &key, sizeof(key), &value, sizeof(value), BPF_ANY)) {
            (void)!l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot enter a VIP", "/l4");
            decap_bpf__destroy(skel);
            return NULL;
        }
    }
    for (uint32_t i = 0; i < decap->n_hops; i++) {
        const struct l4_spec_real *real = &decap->hops[i];
        struct l4_hop hop = {.family = real->ip.family == 6 ? L4_V6 : L4_V4};
        memcpy(hop.addr, real->ip.bytes, real->ip.family == 6 ? 16 : 4);
        if (real->server_ids[0] && real->server_ids[0] <= 0xffff &&
            bpf_map__update_elem(skel->maps.l4_hops, &real->server_ids[0], sizeof(uint32_t), &hop,
                                 sizeof(hop), BPF_ANY)) {
            (void)!l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot enter a node", "/nodes");
            decap_bpf__destroy(skel);
            return NULL;
        }
    }
    return skel;
}

iso_err l4_decap_attach(const struct l4_decap *decap, struct iso_diag *diag)
{
    struct decap_bpf *skel = load(decap, diag);
    if (!skel)
        return ISO_ERR_SYSTEM;
    struct arena arena;
    arena_init(&arena);
    uint32_t replaced = 0;
    iso_err err = l4_make_pin_folder(&arena, decap->pin, diag);
    if (!err)
        err = l4_pin(&arena, decap->pin, "l4_cpus", bpf_map__fd(skel->maps.l4_cpus), diag);
    if (!err)
        err = l4_pin(&arena, decap->pin, "l4_local", bpf_map__fd(skel->maps.l4_local), diag);
    for (uint32_t i = 0; i < decap->n_interfaces && !err; i++)
        err = l4_attach_program(&arena, decap->pin, decap->interfaces[i].ptr,
                                bpf_program__fd(skel->progs.isobar_decap), decap->mode, &replaced, diag);
    arena_fini(&arena);
    decap_bpf__destroy(skel);
    return err;
}

void l4_decap_leave_others(const char *pin, const struct slice *interfaces, uint32_t n)
{
    enum { MANY = 256 };
    struct l4_attachment found[MANY];
    uint32_t n_found = l4_loader_attachments(pin, found, MANY);
    for (uint32_t i = 0; i < n_found; i++) {
        bool is_kept = false;
        for (uint32_t j = 0; j < n && !is_kept; j++)
            is_kept = slice_eq(slice_str(found[i].interface), interfaces[j]);
        if (!is_kept)
            l4_detach_interface(pin, found[i].interface);
    }
}

bool l4_decap_is_pinned(const char *pin)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/l4_local", pin);
    return access(path, F_OK) == 0;
}

iso_err l4_decap_events(const char *pin, uint64_t events[L4_EVENTS], struct iso_diag *diag)
{
    struct arena arena;
    arena_init(&arena);
    int fd = bpf_obj_get(l4_pin_path(&arena, slice_str(pin), "l4_cpus"));
    arena_fini(&arena);
    if (fd < 0)
        return l4_complain(diag, ISO_ERR_NOT_FOUND, errno, "nothing to read", pin);
    memset(events, 0, sizeof(uint64_t) * L4_EVENTS);
    struct l4_cpu row;
    for (uint32_t cpu = 0; !bpf_map_lookup_elem(fd, &cpu, &row); cpu++)
        for (uint32_t i = 0; i < L4_EVENTS; i++)
            events[i] += row.events[i];
    close(fd);
    return ISO_OK;
}

iso_err l4_decap_run(const struct l4_decap *decap, const void *frame, uint32_t bytes, void *out,
                     uint32_t out_cap, uint32_t *out_bytes, uint32_t *verdict, struct iso_diag *diag)
{
    struct decap_bpf *skel = load(decap, diag);
    if (!skel)
        return ISO_ERR_SYSTEM;
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = bytes, .data_out = out,
                .data_size_out = out_cap, .repeat = 1);
    int failed = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.isobar_decap), &opts);
    decap_bpf__destroy(skel);
    *out_bytes = opts.data_size_out;
    *verdict = opts.retval;
    return failed ? ISO_ERR_SYSTEM : ISO_OK;
}
