/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/loader.h"
#include "l4/loader_internal.h"

#include "core/clock.h"
#include "core/log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "l4/balancer.skel.h"
#pragma GCC diagnostic pop

enum { VERIFIER_LOG_BYTES = 1 << 24 }; /* with less the kernel reports the full buffer, not the fault */

/* The last thing libbpf had to say; it usually names the call that failed. */
static char last_words[512];

static int listen_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
    if (level == LIBBPF_WARN)
        vsnprintf(last_words, sizeof(last_words), fmt, args);
    return 0;
}

iso_err l4_complain(struct iso_diag *diag, iso_err err, int error, const char *what, const char *name)
{
    const char *advice = "";
    if (error == EPERM || error == EACCES)
        advice = "; the packet tier needs CAP_BPF and CAP_NET_ADMIN (or root)";
    else if (error == ENOSYS)
        advice = "; this kernel has no bpf()";
    else if (error == ENOMEM)
        advice = "; not enough memory, or RLIMIT_MEMLOCK on a kernel before 5.11";
    diag_add(diag, DIAG_ERROR, "", 0, 0, name, "%s: %s%s", what, strerror(error), advice);
    return err;
}

const char *l4_pin_path(struct arena *arena, struct slice pin, const char *name)
{
    return arena_printf(arena, "%.*s/%s", SLICE_ARG(pin), name);
}

/* ---- sizes and switches ---- */

/* Jiffies in a second, by looking twice: only the kernel's build knows. 0: cannot tell. */
static uint32_t measure_hz(void)
{
    const struct bpf_insn insns[] = {
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64},
        {.code = BPF_JMP | BPF_EXIT},
    };
    static const uint32_t known[] = {100, 250, 300, 1000};
    char frame[64] = {0};
    uint32_t at[2];
    int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "l4_hz", "Dual BSD/GPL", insns, iso_countof(insns), NULL);
    if (fd < 0)
        return 0;
    uint64_t start = 0, spent = 0;
    for (int i = 0; i < 2; i++) {
        LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame));
        if (bpf_prog_test_run_opts(fd, &opts)) {
            close(fd);
            return 0;
        }
        at[i] = opts.retval;
        spent = clock_mono_ns() - start;
        start = clock_mono_ns();
        if (i == 0)
            usleep(50000);
    }
    close(fd);
    double rate = (double)(at[1] - at[0]) * 1e9 / (double)spent;
    uint32_t best = known[0];
    for (size_t i = 1; i < iso_countof(known); i++)
        if (__builtin_fabs(rate - known[i]) < __builtin_fabs(rate - best))
            best = known[i];
    return best;
}

/* The shift that turns jiffies into ticks of about a second. */
static uint32_t tick_shift_of(uint32_t hz)
{
    uint32_t shift = 0;
    while ((2u << shift) <= hz + hz / 4)
        shift++;
    return shift;
}

static uint32_t power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static uint32_t address_word(const struct ip_addr *ip)
{
    uint32_t word;
    memcpy(&word, ip->bytes, 4);
    return word;
}

/* What the smallest MTU of the interfaces leaves for a client's packet; 1480 when none can be asked. */
static uint32_t largest_packet(const struct l4_spec *spec)
{
    uint32_t least = 0xffffffff;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (uint32_t i = 0; i < spec->node.n_interfaces && fd >= 0; i++) {
        struct ifreq ask = {0};
        snprintf(ask.ifr_name, sizeof(ask.ifr_name), "%.*s", SLICE_ARG(spec->node.interfaces[i]));
        if (!ioctl(fd, SIOCGIFMTU, &ask) && (uint32_t)ask.ifr_mtu < least)
            least = (uint32_t)ask.ifr_mtu;
    }
    if (fd >= 0)
        close(fd);
    return least == 0xffffffff ? 1480 : least - l4_tunnel_bytes(spec);
}

static void set_switches(struct l4_loader *loader, const struct l4_spec *spec, uint32_t hz,
                         uint64_t flow_seed)
{
    const struct l4_node *node = &spec->node;
    typeof(loader->skel->rodata) ro = loader->skel->rodata;
    ro->l4_slots = node->table_size;
    ro->l4_ring_seed = node->hash_seed;
    ro->l4_flow_seed = flow_seed;
    ro->l4_flow_sets = loader->view.region_sets;
    ro->l4_flow_per_cpu = node->flow_per_cpu;
    ro->l4_max_inserts = node->max_inserts_per_s;
    ro->l4_tick_shift = tick_shift_of(hz);
    ro->l4_max_packet = node->max_packet ? node->max_packet : largest_packet(spec);
    ro->l4_gateway_set = node->gateway_set;
    memcpy((void *)(uintptr_t)ro->l4_gateway, node->gateway, 6);
    ro->l4_source4 = address_word(&node->source4.addr);
    ro->l4_source4_mask = __builtin_bswap32(node->source4.bits >= 32 ? 0 : 0xffffffffu >> node->source4.bits);
    memcpy((void *)(uintptr_t)ro->l4_source6, node->source6.addr.bytes, 16);
    ro->l4_source6_vary = node->source6.bits <= 96;
    memcpy((void *)(uintptr_t)ro->l4_gue_source6, node->gue_source6.bytes, 16);
    ro->l4_gue_source4 = address_word(&node->gue_source4);
    ro->l4_gue_port = __builtin_bswap16(node->gue_port);
    for (uint32_t i = 0; i < spec->n_reals; i++)
        ro->l4_gue |= spec->reals[i].gue;
    ro->l4_reply_too_big = node->reply_too_big;
}

static void set_sizes(struct l4_loader *loader, const struct l4_spec *spec)
{
    struct l4_view *view = &loader->view;
    const struct l4_node *node = &spec->node;
    view->n_cpus = (uint32_t)libbpf_num_possible_cpus();
    view->slots = node->table_size;
    view->n_rings = node->rings ? node->rings : l4_rings_needed(spec);
    uint32_t regions = node->flow_per_cpu ? view->n_cpus : 1;
    view->region_sets = power_of_two((node->flow_entries + L4_WAYS - 1) / L4_WAYS / regions);
    view->flow_sets = view->region_sets * regions;
    view->ring_stride = (sizeof(uint16_t) * view->slots + 7) & ~7ul;
    view->move_stride = sizeof(struct l4_move) * view->slots;

    typeof(loader->skel->maps) *maps = &loader->skel->maps;
    bpf_map__set_max_entries(maps->l4_rings, view->n_rings);
    bpf_map__set_value_size(maps->l4_rings, (uint32_t)sizeof(uint16_t) * view->slots);
    bpf_map__set_max_entries(maps->l4_moves, view->n_rings);
    bpf_map__set_value_size(maps->l4_moves, (uint32_t)view->move_stride);
    bpf_map__set_max_entries(maps->l4_flows, view->flow_sets);
    bpf_map__set_max_entries(maps->l4_vip_count, view->n_cpus * L4_VIPS);
    bpf_map__set_max_entries(maps->l4_real_count, view->n_cpus * L4_REALS);
    bpf_map__set_max_entries(maps->l4_cpus, view->n_cpus);
}

/* ---- taking over ---- */

static bool is_pinned_kind(const char *name)
{
    return !strncmp(name, "l4_", 3) && strcmp(name, "l4_samples") != 0;
}

/* The pinned map of that name if it has the shape that `map` will have; -1 otherwise. */
static int pinned_like(const struct bpf_map *map, const char *path)
{
    struct bpf_map_info info = {0};
    uint32_t bytes = sizeof(info);
    int fd = bpf_obj_get(path);
    if (fd < 0)
        return -1;
    if (!bpf_obj_get_info_by_fd(fd, &info, &bytes) && info.type == bpf_map__type(map) &&
        info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
        info.max_entries == bpf_map__max_entries(map) && info.map_flags == bpf_map__map_flags(map))
        return fd;
    close(fd);
    return -1;
}

/* All maps or none: rings without the reals they name, or flows without their seed, would be worse than new
 * ones. */
static bool reuse_maps(struct l4_loader *loader, uint64_t *flow_seed)
{
    struct bpf_map *map;
    int fds[32];
    size_t n = 0;
    bool fits = true;
    struct l4_control control = {0};
    uint32_t zero = 0;
    bpf_object__for_each_map(map, loader->skel->obj)
    {
        if (!is_pinned_kind(bpf_map__name(map)))
            continue;
        iso_assert(n < iso_countof(fds));
        fds[n] = pinned_like(map, l4_pin_path(&loader->arena, loader->node.pin, bpf_map__name(map)));
        fits = fits && fds[n] >= 0;
        if (fds[n] >= 0 && !strcmp(bpf_map__name(map), "l4_control") &&
            (bpf_map_lookup_elem(fds[n], &zero, &control) || control.abi != L4_ABI))
            fits = false;
        n++;
    }
    n = 0;
    bpf_object__for_each_map(map, loader->skel->obj)
    {
        if (!is_pinned_kind(bpf_map__name(map)))
            continue;
        if (fits && bpf_map__reuse_fd(map, fds[n]))
            fits = false;
        if (fds[n] >= 0)
            close(fds[n]);
        n++;
    }
    if (fits)
        *flow_seed = control.flow_seed;
    return fits;
}

/* ---- mapping ---- */

void *l4_map_memory(struct l4_loader *loader, int fd, bool write, size_t *stride)
{
    struct bpf_map_info info = {0};
    uint32_t bytes = sizeof(info);
    if (bpf_obj_get_info_by_fd(fd, &info, &bytes))
        return NULL;
    size_t each = (info.value_size + 7) & ~7ul, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t all = (each * info.max_entries + page - 1) & ~(page - 1);
    void *at = mmap(NULL, all, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return NULL;
    iso_assert(loader->n_mappings < iso_countof(loader->mappings));
    loader->mappings[loader->n_mappings++] = (struct l4_mapping){at, all};
    if (stride)
        *stride = each;
    return at;
}

static iso_err map_tables(struct l4_loader *loader, struct iso_diag *diag)
{
    struct l4_view *view = &loader->view;
    typeof(loader->skel->maps) *maps = &loader->skel->maps;
    view->control = l4_map_memory(loader, bpf_map__fd(maps->l4_control), true, NULL);
    view->banks = l4_map_memory(loader, bpf_map__fd(maps->l4_vips), true, NULL);
    view->reals = l4_map_memory(loader, bpf_map__fd(maps->l4_reals), true, NULL);
    view->rings = l4_map_memory(loader, bpf_map__fd(maps->l4_rings), true, &view->ring_stride);
    view->moves = l4_map_memory(loader, bpf_map__fd(maps->l4_moves), true, &view->move_stride);
    view->flows = l4_map_memory(loader, bpf_map__fd(maps->l4_flows), true, NULL);
    view->vip_count = l4_map_memory(loader, bpf_map__fd(maps->l4_vip_count), true, NULL);
    view->real_count = l4_map_memory(loader, bpf_map__fd(maps->l4_real_count), true, NULL);
    view->cpus = l4_map_memory(loader, bpf_map__fd(maps->l4_cpus), true, NULL);
    if (!view->control || !view->banks || !view->reals || !view->rings || !view->moves || !view->flows ||
        !view->vip_count || !view->real_count || !view->cpus)
        return l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot map the tables", "/l4");
    return ISO_OK;
}

/* ---- opening ---- */

static iso_err explain_load(struct l4_loader *loader, int error, const char *log, struct iso_diag *diag)
{
    size_t length = strlen(log);
    const char *tail = length > 2000 ? log + length - 2000 : log;
    if (error == EPERM || error == ENOSYS || error == ENOMEM)
        return l4_complain(diag, ISO_ERR_SYSTEM, error, "cannot load the program", "/l4");
    if (*log)
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4",
                 "the kernel's verifier refused the program (%s); Isobar needs Linux 5.15 or newer. The end "
                 "of its "
                 "log:\n%s",
                 strerror(error), tail);
    else
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4", "the kernel refused the program: %s (%s)",
                 strerror(error), last_words);
    return ISO_ERR_SYSTEM;
}

void l4_prepare_libbpf(void)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    libbpf_set_print(listen_libbpf);
    (void)!setrlimit(RLIMIT_MEMLOCK, &all); /* kernels from 5.11 on do not count it */
}

static iso_err load(struct l4_loader *loader, struct iso_diag *diag)
{
    char *log = calloc(1, VERIFIER_LOG_BYTES);
    iso_assert(log != NULL);
    bpf_program__set_log_buf(loader->skel->progs.isobar_l4, log, VERIFIER_LOG_BYTES);
    last_words[0] = 0;
    int refused = balancer_bpf__load(loader->skel);
    iso_err err = refused ? explain_load(loader, -refused, log, diag) : ISO_OK;
    free(log);
    return err;
}

iso_err l4_loader_open(const struct l4_spec *spec, struct l4_loader **out, struct iso_diag *diag)
{
    iso_err err = ISO_ERR_SYSTEM;
    struct l4_loader *loader = calloc(1, sizeof(*loader));
    iso_assert(loader != NULL);
    arena_init(&loader->arena);
    loader->node = spec->node;
    loader->node.pin = arena_slice(&loader->arena, spec->node.pin);
    loader->node.interfaces = arena_array(&loader->arena, struct slice, spec->node.n_interfaces + 1);
    for (uint32_t i = 0; i < spec->node.n_interfaces; i++)
        loader->node.interfaces[i] = arena_slice(&loader->arena, spec->node.interfaces[i]);
    loader->program_fd = loader->clock_fd = loader->samples_fd = loader->ids_fd = -1;
    l4_prepare_libbpf();

    uint32_t hz = measure_hz();
    if (!hz) {
        err = l4_complain(diag, ISO_ERR_UNSUPPORTED, errno, "cannot load any BPF program", "/l4");
        goto fail;
    }
    loader->skel = balancer_bpf__open();
    if (!loader->skel) {
        err = l4_complain(diag, ISO_ERR_UNSUPPORTED, errno, "cannot open the program", "/l4");
        goto fail;
    }
    uint64_t flow_seed;
    if (getrandom(&flow_seed, sizeof(flow_seed), 0) != (ssize_t)sizeof(flow_seed))
        flow_seed = clock_wall_ns();
    set_sizes(loader, spec);
    loader->took_over = loader->node.pin.len && reuse_maps(loader, &flow_seed);
    set_switches(loader, spec, hz, flow_seed);
    loader->view.ring_seed = spec->node.hash_seed;
    loader->view.flow_seed = flow_seed;
    err = load(loader, diag);
    if (!err)
        err = map_tables(loader, diag);
    if (err)
        goto fail;
    loader->view.control->abi = L4_ABI;
    loader->view.control->flow_seed = flow_seed;
    loader->view.control->ring_seed = spec->node.hash_seed;
    loader->view.control->region_sets = loader->view.region_sets;
    loader->program_fd = bpf_program__fd(loader->skel->progs.isobar_l4);
    loader->clock_fd = bpf_program__fd(loader->skel->progs.l4_clock);
    loader->samples_fd = bpf_map__fd(loader->skel->maps.l4_samples);
    loader->ids_fd = bpf_map__fd(loader->skel->maps.l4_server_ids);
    *out = loader;
    return ISO_OK;
fail:
    l4_loader_close(loader);
    return err;
}

static void *peek_map(struct l4_loader *loader, const char *pin, const char *name, size_t *stride,
                      uint32_t *n)
{
    struct bpf_map_info info = {0};
    uint32_t bytes = sizeof(info);
    int fd = bpf_obj_get(l4_pin_path(&loader->arena, slice_str(pin), name));
    if (fd < 0)
        return NULL;
    void *at = l4_map_memory(loader, fd, false, stride);
    if (n && !bpf_obj_get_info_by_fd(fd, &info, &bytes))
        *n = info.max_entries;
    close(fd);
    return at;
}

iso_err l4_loader_peek(const char *pin, struct l4_loader **out, struct iso_diag *diag)
{
    struct l4_loader *loader = calloc(1, sizeof(*loader));
    iso_assert(loader != NULL);
    arena_init(&loader->arena);
    loader->program_fd = loader->clock_fd = loader->samples_fd = loader->ids_fd = -1;
    l4_prepare_libbpf();
    struct l4_view *view = &loader->view;
    view->control = peek_map(loader, pin, "l4_control", NULL, NULL);
    if (!view->control) {
        int error = errno;
        l4_loader_close(loader);
        if (error == ENOENT) {
            diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/pin",
                     "nothing is pinned in %s: isobar l4 was not started there, "
                     "or it left cleanly",
                     pin);
            return ISO_ERR_NOT_FOUND;
        }
        return l4_complain(diag, ISO_ERR_SYSTEM, error, "cannot open the pinned maps", pin);
    }
    view->banks = peek_map(loader, pin, "l4_vips", NULL, NULL);
    view->reals = peek_map(loader, pin, "l4_reals", NULL, NULL);
    view->rings = peek_map(loader, pin, "l4_rings", &view->ring_stride, &view->n_rings);
    view->moves = peek_map(loader, pin, "l4_moves", &view->move_stride, NULL);
    view->flows = peek_map(loader, pin, "l4_flows", NULL, &view->flow_sets);
    view->vip_count = peek_map(loader, pin, "l4_vip_count", NULL, NULL);
    view->real_count = peek_map(loader, pin, "l4_real_count", NULL, NULL);
    view->cpus = peek_map(loader, pin, "l4_cpus", NULL, &view->n_cpus);
    if (!view->banks || !view->reals || !view->rings || !view->moves || !view->flows || !view->vip_count ||
        !view->real_count || !view->cpus || view->control->abi != L4_ABI) {
        l4_loader_close(loader);
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/pin", "%s was pinned by another version of isobar", pin);
        return ISO_ERR_UNSUPPORTED;
    }
    loader->clock_fd = bpf_obj_get(l4_pin_path(&loader->arena, slice_str(pin), "l4_clock_prog"));
    loader->samples_fd = bpf_obj_get(l4_pin_path(&loader->arena, slice_str(pin), "l4_samples"));
    view->slots = (uint32_t)(view->move_stride / sizeof(struct l4_move));
    view->ring_seed = view->control->ring_seed;
    view->flow_seed = view->control->flow_seed;
    view->region_sets = view->control->region_sets;
    *out = loader;
    return ISO_OK;
}

void l4_loader_close(struct l4_loader *loader)
{
    if (!loader)
        return;
    perf_buffer__free(loader->samples);
    if (loader->skel)
        balancer_bpf__destroy(loader->skel);
    for (uint32_t i = 0; i < loader->n_mappings; i++)
        munmap(loader->mappings[i].at, loader->mappings[i].bytes);
    if (!loader->skel && loader->clock_fd >= 0)
        close(loader->clock_fd);
    if (!loader->skel && loader->samples_fd >= 0)
        close(loader->samples_fd);
    arena_fini(&loader->arena);
    free(loader);
}
