/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded program at work: its clock, the ids of servers that it looks up, samples of what it sees. */
#include "l4/loader_internal.h"

#include "core/log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

const struct l4_view *l4_loader_view(const struct l4_loader *loader)
{
    return &loader->view;
}

bool l4_loader_took_over(const struct l4_loader *loader)
{
    return loader->took_over;
}

int l4_loader_program(const struct l4_loader *loader)
{
    return loader->program_fd;
}

uint32_t l4_loader_tick(struct l4_loader *loader)
{
    char frame[64] = {0};
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame));
    if (loader->clock_fd >= 0 && bpf_prog_test_run_opts(loader->clock_fd, &opts))
        log_warning("l4: the clock program did not run: %s", strerror(errno));
    return __atomic_load_n(&loader->view.control->tick, __ATOMIC_RELAXED);
}

iso_err l4_loader_run(struct l4_loader *loader, const void *frame, uint32_t bytes, void *out,
                      uint32_t out_cap, uint32_t *out_bytes, uint32_t *verdict)
{
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = bytes, .data_out = out,
                .data_size_out = out_cap, .repeat = 1);
    if (bpf_prog_test_run_opts(l4_loader_program(loader), &opts))
        return ISO_ERR_SYSTEM;
    *out_bytes = opts.data_size_out;
    *verdict = opts.retval;
    return ISO_OK;
}

static bool names_server_id(const struct l4_spec *spec, uint32_t id)
{
    for (uint32_t i = 0; i < spec->n_reals; i++)
        if (spec->reals[i].server_ids[0] == id || spec->reals[i].server_ids[1] == id)
            return true;
    return false;
}

iso_err l4_loader_server_ids(struct l4_loader *loader, const struct l4_spec *spec)
{
    /* New ones first: an id that stays is never missing in between. */
    for (uint32_t i = 0; i < spec->n_reals; i++) {
        uint32_t real = l4_real_id(&loader->view, &spec->reals[i].ip, spec->reals[i].gue);
        for (size_t j = 0; j < iso_countof(spec->reals[i].server_ids); j++)
            if (spec->reals[i].server_ids[j] && real &&
                bpf_map_update_elem(loader->ids_fd, &spec->reals[i].server_ids[j], &real, BPF_ANY))
                return ISO_ERR_SYSTEM;
    }
    uint32_t key, next, *at = NULL;
    while (!bpf_map_get_next_key(loader->ids_fd, at, &next)) {
        if (names_server_id(spec, next)) {
            key = next;
            at = &key;
        } else {
            bpf_map_delete_elem(loader->ids_fd, &next);
        }
    }
    return ISO_OK;
}

/* ---- samples ---- */

iso_err l4_loader_set_sampling(struct l4_loader *loader, const char *pin, uint32_t every,
                               struct iso_diag *diag)
{
    int fd = bpf_obj_get(l4_pin_path(&loader->arena, slice_str(pin), "l4_control"));
    struct l4_control *control = fd < 0 ? NULL : l4_map_memory(loader, fd, true, NULL);
    if (fd >= 0)
        close(fd);
    if (!control)
        return l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot write the pinned control map", pin);
    __atomic_store_n(&control->sample_every, every, __ATOMIC_RELAXED);
    return ISO_OK;
}

static void on_sample(void *arg, int cpu, void *data, uint32_t size)
{
    struct l4_loader *loader = arg;
    const struct l4_sample *head = data;
    if (size > sizeof(*head))
        loader->sample_fn(loader->sample_arg, head, head + 1, size - (uint32_t)sizeof(*head));
}

static void on_lost(void *arg, int cpu, unsigned long long n)
{
    ((struct l4_loader *)arg)->samples_lost += n;
}

iso_err l4_loader_samples(struct l4_loader *loader, int timeout_ms, l4_sample_fn *fn, void *arg,
                          uint64_t *lost)
{
    loader->sample_fn = fn;
    loader->sample_arg = arg;
    if (!loader->samples)
        loader->samples = perf_buffer__new(loader->samples_fd, 16, on_sample, on_lost, loader, NULL);
    if (!loader->samples)
        return ISO_ERR_SYSTEM;
    int n = perf_buffer__poll(loader->samples, timeout_ms);
    *lost = loader->samples_lost;
    return n < 0 && n != -EINTR ? ISO_ERR_SYSTEM : ISO_OK;
}
