/* SPDX-License-Identifier: Apache-2.0 */
/* ns per packet of the packet tier's XDP program, by BPF_PROG_TEST_RUN, with a clean packet and, where asked,
 * another flow at every iteration; floors measured in the same interleaved run. See README.md for what the
 * columns mean.
 *
 *   bench_l4 [-r packets a run] [-n runs] [-c cpu] [-L flow entries] [-R reals] [-s part of a scenario's
 * name]
 *            [-p NAME=/sys/fs/bpf/...: also measure a pinned XDP program that is configured for the same
 * VIPs]
 */
#include "l4/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "wrap.skel.h"
#pragma GCC diagnostic pop

enum { ACK = 0x10, SYN = 0x02, MAX_RUNS = 64, MAX_PROGRAMS = 12 };

struct scenario {
    const char *name;
    const char *vip;
    uint8_t protocol, flags;
    uint16_t port;
    uint32_t flows; /* 0: a new one at every packet */
    bool warm;      /* all flows once before */
};

static const struct scenario scenarios[] = {
    {"v4 tcp, 1 flow", "10.200.1.1", 6, ACK, 80, 1, true},
    {"v4 tcp, 1k flows", "10.200.1.1", 6, ACK, 80, 1000, true},
    {"v4 tcp, 100k flows", "10.200.1.1", 6, ACK, 80, 100000, true},
    {"v4 tcp, 800k flows", "10.200.1.1", 6, ACK, 80, 800000, true},
    {"v4 tcp, new flow (SYN)", "10.200.1.1", 6, SYN, 80, 0, false},
    {"v4 tcp, new flow (ACK)", "10.200.1.1", 6, ACK, 80, 0, false},
    {"v4 tcp tracked, 1 flow", "10.200.1.2", 6, ACK, 80, 1, true},
    {"v4 tcp tracked, 100k flows", "10.200.1.2", 6, ACK, 80, 100000, true},
    {"v4 tcp tracked, 800k flows", "10.200.1.2", 6, ACK, 80, 800000, true},
    {"v4 tcp tracked, new flow (SYN)", "10.200.1.2", 6, SYN, 80, 0, false},
    {"v4 tcp tracked, new flow (ACK)", "10.200.1.2", 6, ACK, 80, 0, false},
    {"v4 udp, 1 flow", "10.200.1.1", 17, 0, 80, 1, true},
    {"v4 udp, 100k flows", "10.200.1.1", 17, 0, 80, 100000, true},
    {"v4 udp, new flow", "10.200.1.1", 17, 0, 80, 0, false},
    {"v6 tcp, 1 flow", "fc00:1::1", 6, ACK, 80, 1, true},
    {"v6 tcp, 100k flows", "fc00:1::1", 6, ACK, 80, 100000, true},
    {"v6 tcp, new flow (SYN)", "fc00:1::1", 6, SYN, 80, 0, false},
    {"v4 vip, v6 reals", "10.200.1.3", 6, ACK, 80, 1, true},
    {"GUE, 1 flow", "10.200.1.6", 6, ACK, 80, 1, true},
    {"QUIC by connection id", "10.200.1.5", 17, 0, 443, 1, true},
    {"all slots moved, 100k flows", "10.200.1.7", 6, ACK, 80, 100000, true},
    {"not a VIP: pass", "10.99.0.1", 6, ACK, 80, 1, false},
    {"VIP, other port: pass", "10.200.1.1", 6, ACK, 81, 1, false},
};

struct program {
    const char *name;
    int fd;
};

static uint32_t packets = 1000000, runs = 11, flow_entries = 1 << 20, n_reals = 16;
static int cpu = 1;
static const char *only = "";
static struct program programs[MAX_PROGRAMS];
static uint32_t n_programs;
static struct wrap_bpf *wrap;

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "l4bench: %s: %s\n", what, why);
    exit(1);
}

/* ---- the program of this repository ---- */

static void fill_spec(struct l4_spec *spec, struct arena *arena)
{
    static const struct {
        const char *ip;
        uint16_t port;
        uint8_t protocol;
        uint16_t flags;
        uint32_t set;
    } vips[] = {
        {"10.200.1.1", 80, 6, 0, 0}, {"10.200.1.1", 80, 17, 0, 0}, {"10.200.1.2", 80, 6, L4_VIP_TRACK, 0},
        {"10.200.1.3", 80, 6, 0, 1}, {"fc00:1::1", 80, 6, 0, 1},   {"10.200.1.5", 443, 17, L4_VIP_QUIC, 0},
        {"10.200.1.6", 80, 6, 0, 2}, {"10.200.1.7", 80, 6, 0, 3}};
    l4_node_defaults(&spec->node);
    spec->node.pin = (struct slice){0};
    spec->node.flow_entries = flow_entries;
    spec->node.max_inserts_per_s =
        0xffffffff; /* a limit would make a bench of new flows one without inserts */
    spec->node.max_packet = 1500;
    spec->node.rings = 12;
    spec->reals = arena_array(arena, struct l4_spec_real, n_reals * 3 + 2);
    spec->sets = arena_array(arena, struct l4_spec_set, 4);
    spec->n_sets = 4;
    for (uint32_t i = 0; i < 4; i++)
        spec->sets[i].reals = arena_array(arena, uint32_t, n_reals);
    for (uint32_t i = 0; i < n_reals * 3; i++) {
        struct l4_spec_real *real = &spec->reals[spec->n_reals];
        uint32_t set = i / n_reals, host = i % n_reals + 1;
        const char *text = set == 1 ? arena_printf(arena, "fc00::%x", host)
                                    : arena_printf(arena, "10.%u.%u.%u", set, host / 256, host % 256);
        *real = (struct l4_spec_real){.name = slice_str(text), .weight = 1, .usable = true, .gue = set == 2};
        real->server_ids[0] = set == 0 ? 1021 + host : 0;
        if (!ip_parse(slice_str(text), &real->ip))
            die(text, "no address");
        spec->sets[set].reals[spec->sets[set].n_reals++] = spec->n_reals++;
    }
    spec->sets[3] = (struct l4_spec_set){spec->sets[0].reals, 1};
    spec->vips = arena_array(arena, struct l4_spec_vip, sizeof(vips) / sizeof(vips[0]));
    for (; spec->n_vips < sizeof(vips) / sizeof(vips[0]); spec->n_vips++) {
        struct l4_spec_vip *vip = &spec->vips[spec->n_vips];
        *vip = (struct l4_spec_vip){.name = slice_str(vips[spec->n_vips].ip),
                                    .port = vips[spec->n_vips].port,
                                    .protocol = vips[spec->n_vips].protocol,
                                    .flags = vips[spec->n_vips].flags,
                                    .set = vips[spec->n_vips].set};
        if (!ip_prefix_parse(vip->name, &vip->prefix))
            die(vips[spec->n_vips].ip, "no address");
    }
}

static void publish(struct l4_loader *loader, struct l4_tables *tables, const struct l4_spec *spec,
                    struct iso_diag *diag)
{
    if (l4_tables_publish(tables, spec, l4_loader_tick(loader), diag))
        die("publish", diag->first ? diag->first->message : "failed");
}

static int own_program(void)
{
    static struct arena arena;
    static struct l4_spec spec;
    static struct l4_tables tables;
    static struct iso_diag diag;
    struct l4_loader *loader;
    arena_init(&arena);
    diag_init(&diag);
    fill_spec(&spec, &arena);
    spec.node.move_window_s = 3600;
    if (l4_loader_open(&spec, &loader, &diag))
        die("isobar", diag.first ? diag.first->message : "cannot load");
    l4_tables_init(&tables, l4_loader_view(loader));
    publish(loader, &tables, &spec, &diag);
    spec.sets[3].reals++; /* another real for all slots of 10.200.1.7 */
    publish(loader, &tables, &spec, &diag);
    if (l4_loader_server_ids(loader, &spec))
        die("server ids", "failed");
    return l4_loader_program(loader);
}

/* ---- packets ---- */

static uint16_t header_sum(const uint8_t *b, int n)
{
    uint32_t sum = 0;
    for (int i = 0; i < n; i += 2)
        sum += (uint32_t)(b[i] << 8 | b[i + 1]);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static uint32_t make_packet(uint8_t *p, const struct scenario *s)
{
    static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
    struct ip_addr vip;
    uint32_t transport = s->protocol == 6 ? 20 : 8, payload = 64, at;
    memset(p, 0, 256);
    memcpy(p, macs, 12);
    if (!ip_parse(slice_str(s->vip), &vip))
        die(s->vip, "no address");
    uint8_t *ip = p + 14;
    if (vip.family == 6) {
        p[12] = 0x86, p[13] = 0xdd;
        ip[0] = 0x60, ip[5] = (uint8_t)(transport + payload), ip[6] = s->protocol, ip[7] = 64;
        ip[8] = 0xfc, ip[11] = 2, ip[23] = 1;
        memcpy(ip + 24, vip.bytes, 16);
        at = 54;
    } else {
        p[12] = 8;
        ip[0] = 0x45, ip[3] = (uint8_t)(20 + transport + payload), ip[8] = 64, ip[9] = s->protocol;
        ip[12] = 100, ip[13] = 64;
        memcpy(ip + 16, vip.bytes, 4);
        uint16_t sum = header_sum(ip, 20);
        ip[10] = (uint8_t)(sum >> 8), ip[11] = (uint8_t)sum;
        at = 34;
    }
    p[at + 2] = (uint8_t)(s->port >> 8), p[at + 3] = (uint8_t)s->port;
    if (s->protocol == 6)
        p[at + 12] = 0x50, p[at + 13] = s->flags;
    else
        p[at + 5] = (uint8_t)(8 + payload);
    if (s->port == 443) { /* short header, 16-bit server id 1022 */
        uint8_t *quic = p + at + 8;
        quic[0] = 0x40, quic[1] = 0x40 | 1022 >> 10, quic[2] = 1022 >> 2 & 0xff, quic[3] = (1022 & 3) << 6;
    }
    return at + transport + payload;
}

/* ---- measuring ---- */

static double run(int fd, const uint8_t *packet, uint32_t bytes, uint32_t n, uint32_t *verdict,
                  uint32_t *out_bytes)
{
    uint8_t out[1024];
    struct timespec a, b;
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = bytes, .data_out = out,
                .data_size_out = sizeof(out), .repeat = (int)n);
    /* CPU time: the machine may be shared. */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    int failed = bpf_prog_test_run_opts(fd, &opts);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    if (failed)
        die("test run", strerror(errno));
    *verdict = opts.retval;
    *out_bytes = opts.data_size_out;
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void aim(uint32_t i)
{
    uint32_t zero = 0;
    if (bpf_map_update_elem(bpf_map__fd(wrap->maps.target), &zero, &programs[i].fd, BPF_ANY))
        die(programs[i].name, strerror(errno));
}

static void measure(const struct scenario *s)
{
    static double ns[MAX_PROGRAMS][MAX_RUNS];
    uint32_t verdict[MAX_PROGRAMS], out_bytes[MAX_PROGRAMS];
    uint8_t packet[512];
    uint32_t bytes = make_packet(packet, s);
    int fd = bpf_program__fd(wrap->progs.wrap);
    wrap->bss->clean_bytes = bytes;
    memcpy((void *)(uintptr_t)wrap->bss->ethernet, packet, 14);
    wrap->bss->is_v6 = strchr(s->vip, ':') != NULL;
    wrap->bss->flows = s->flows;
    wrap->bss->stride = s->flows > 1000 ? 7919 : 1; /* coprime: neighbours in time are far apart in memory */
    for (uint32_t p = 0; p < n_programs && s->warm; p++) {
        aim(p);
        run(fd, packet, bytes, 2 * s->flows + 10, &verdict[p], &out_bytes[p]);
    }
    for (uint32_t r = 0; r < runs; r++)
        for (uint32_t p = 0; p < n_programs; p++) {
            aim(p);
            ns[p][r] = run(fd, packet, bytes, packets, &verdict[p], &out_bytes[p]);
        }
    double floor_min = 0, floor_median = 0;
    for (uint32_t p = 0; p < n_programs; p++) {
        qsort(ns[p], runs, sizeof(double), ascending);
        double min = ns[p][0], median = ns[p][runs / 2];
        if (p == 0)
            floor_min = min, floor_median = median;
        printf("%-31s %-13s %u %+4d | %7.1f %7.1f | %7.1f %7.1f | %6.2f\n", s->name, programs[p].name,
               verdict[p], (int)(out_bytes[p] - bytes), min, median, min - floor_min, median - floor_median,
               min / floor_min);
    }
    fflush(stdout);
}

static void add_program(const char *name, int fd)
{
    if (fd < 0)
        die(name, strerror(errno));
    if (n_programs == MAX_PROGRAMS)
        die(name, "too many programs");
    programs[n_programs++] = (struct program){name, fd};
}

static void add_pinned(char *text)
{
    char *path = strchr(text, '=');
    if (!path)
        die(text, "NAME=PATH expected");
    *path++ = 0;
    add_program(text, bpf_obj_get(path));
}

int main(int argc, char **argv)
{
    int option;
    cpu_set_t set;
    char *pinned[MAX_PROGRAMS];
    uint32_t n_pinned = 0;
    while ((option = getopt(argc, argv, "r:n:c:L:R:s:p:")) != -1)
        switch (option) {
        case 'r':
            packets = (uint32_t)atoi(optarg);
            break;
        case 'n':
            runs = (uint32_t)atoi(optarg);
            break;
        case 'c':
            cpu = atoi(optarg);
            break;
        case 'L':
            flow_entries = (uint32_t)atoi(optarg);
            break;
        case 'R':
            n_reals = (uint32_t)atoi(optarg);
            break;
        case 's':
            only = optarg;
            break;
        case 'p':
            if (n_pinned < MAX_PROGRAMS)
                pinned[n_pinned++] = optarg;
            break;
        default:
            die("usage", "the head of bench/l4/l4bench.c says it");
        }
    if (runs < 1 || runs > MAX_RUNS)
        die("-n", "1 to 64");
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
    int own = own_program();
    wrap = wrap_bpf__open_and_load();
    if (!wrap)
        die("wrap.bpf.c", strerror(errno));
    add_program("floor", bpf_program__fd(wrap->progs.floor_tx));
    add_program("floor encap4", bpf_program__fd(wrap->progs.floor_encap4));
    add_program("floor encap6", bpf_program__fd(wrap->progs.floor_encap6));
    add_program("isobar", own);
    for (uint32_t i = 0; i < n_pinned; i++)
        add_pinned(pinned[i]);
    printf("%u packets a run, %u runs, cpu %d, %u reals, %u flow entries\n", packets, runs, cpu, n_reals,
           flow_entries);
    printf("%-31s %-13s %s %s | %7s %7s | %7s %7s | %s\n", "scenario", "program", "v", " out", "min",
           "median", "net min", "net med", "x floor");
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (strstr(scenarios[i].name, only))
            measure(&scenarios[i]);
    return 0;
}
