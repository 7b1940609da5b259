/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a running packet tier through its pinned maps, whichever process made them; works just as well
 * when that process is gone. Prints tables for people; numbers are sums over CPUs at one moment. */
#include "cli/cmd_l4.h"

#include "config/load.h"
#include "core/text.h"
#include "l4/decap.h"
#include "l4/explain.h"
#include "l4/loader.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shown {
    struct iso_diag diag;
    struct config *config; /* owns; NULL without --config */
    const char *pin;
    struct l4_loader *loader; /* owns */
    const struct l4_view *view;
    bool syn;
    uint32_t every, count;
    char **rest; /* arguments that are no options */
    int n_rest;
};

static bool read_number(const char *text, uint64_t most, uint32_t *out)
{
    uint64_t value;
    if (!slice_u64(slice_str(text), &value) || value > most)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* False after saying how it is called. */
static bool read_options(struct shown *shown, int argc, char **argv, const char *usage)
{
    static const struct option options[] = {
        {"pin", required_argument, NULL, 'p'},   {"config", required_argument, NULL, 'c'},
        {"syn", no_argument, NULL, 's'},         {"every", required_argument, NULL, 'e'},
        {"count", required_argument, NULL, 'n'}, {0}};
    *shown = (struct shown){.pin = "/sys/fs/bpf/isobar-l4", .every = 1, .count = 10};
    diag_init(&shown->diag);
    int option;
    bool right = true;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'p':
            shown->pin = optarg;
            break;
        case 'c':
            if (config_load_file(optarg, &shown->config, &shown->diag)) {
                diag_print(&shown->diag);
                return false;
            }
            if (shown->config->l4.set)
                shown->pin = shown->config->l4.pin.ptr;
            break;
        case 's':
            shown->syn = true;
            break;
        case 'e':
            right = right && read_number(optarg, 0xffffffff, &shown->every) && shown->every > 0;
            break;
        case 'n':
            right = right && read_number(optarg, 0xffffffff, &shown->count);
            break;
        default:
            right = false;
        }
    shown->rest = argv + optind;
    shown->n_rest = argc - optind;
    if (!right)
        fprintf(stderr, "usage: isobar l4 %s\n", usage);
    return right;
}

static bool peek(struct shown *shown)
{
    if (l4_loader_peek(shown->pin, &shown->loader, &shown->diag)) {
        diag_print(&shown->diag);
        return false;
    }
    shown->view = l4_loader_view(shown->loader);
    return true;
}

static int finish(struct shown *shown, int status)
{
    l4_loader_close(shown->loader);
    config_free(shown->config);
    diag_fini(&shown->diag);
    return status;
}

static struct l4_traffic sum(const struct l4_traffic *rows, uint32_t stride, uint32_t id, uint32_t n_cpus)
{
    struct l4_traffic all = {0};
    for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
        all.packets += rows[cpu * stride + id].packets;
        all.bytes += rows[cpu * stride + id].bytes;
    }
    return all;
}

static uint64_t sum_event(const struct l4_view *view, uint32_t event)
{
    uint64_t all = 0;
    for (uint32_t cpu = 0; cpu < view->n_cpus; cpu++)
        all += view->cpus[cpu].events[event];
    return all;
}

static struct slice name_of_node(const struct config *config, const struct ip_addr *ip)
{
    for (uint32_t i = 0; config && i < config->n_nodes; i++)
        if (ip_eq(&config->nodes[i].ip, ip))
            return config->nodes[i].name;
    return SLICE("");
}

static const char *real_text(const struct shown *shown, uint32_t id)
{
    static char texts[4][IP_TEXT_MAX + 160];
    static unsigned next;
    char *out = texts[next++ % 4], ip_text[IP_TEXT_MAX];
    struct ip_addr ip;
    if (!id)
        return "none";
    l4_real_address(&shown->view->reals[id], &ip);
    int n = (int)ip_print(&ip, ip_text);
    struct slice name = name_of_node(shown->config, &ip);
    snprintf(out, sizeof(texts[0]), "%.*s%s%.*s%s", n, ip_text, name.len ? " (" : "", SLICE_ARG(name),
             name.len ? ")" : "");
    return out;
}

int cmd_l4_status(int argc, char **argv)
{
    struct shown shown;
    struct l4_attachment found[64];
    if (!read_options(&shown, argc, argv, "status [--pin FOLDER | --config FILE]"))
        return finish(&shown, 2);
    if (!peek(&shown))
        return finish(&shown, 1);
    const struct l4_view *view = shown.view;
    uint32_t vips = 0, moved = 0, entries = 0, drops = 0;
    const struct l4_vip_bank *bank = l4_bank(view);
    uint64_t seen[L4_MAX_RINGS / 64] = {0};
    for (uint32_t i = 0; i < L4_VIP_SLOTS; i++) {
        const struct l4_vip *vip = &bank->slots[i];
        if (!vip->key || !(vip->key >> 8 & 0xff))
            continue;
        vips++;
        if (seen[vip->ring / 64] >> (vip->ring % 64) & 1)
            continue;
        seen[vip->ring / 64] |= 1ull << (vip->ring % 64);
        for (uint32_t slot = 0; slot < view->slots; slot++)
            moved += l4_ring(view, vip->ring)[slot] >> 15;
    }
    for (uint32_t set = 0; set < view->flow_sets; set++)
        for (uint32_t i = 0; i < L4_WAYS; i++)
            entries += view->flows[set].way[i].state != L4_FLOW_NONE;
    uint32_t n = l4_loader_attachments(shown.pin, found, (uint32_t)iso_countof(found));
    for (uint32_t i = 0; i < n; i++)
        printf("interface   %s: %s, program %u\n", found[i].interface,
               !found[i].ifindex ? "gone"
               : found[i].native ? "native XDP"
                                 : "generic XDP",
               found[i].program);
    if (n == 0)
        printf("interface   none: nothing is attached\n");
    printf("generation  %llu\n", (unsigned long long)view->control->generation);
    printf("vips        %u\n", vips);
    printf("table size  %u slots, %u of the rings in force marked as moved\n", view->slots, moved);
    printf("flow table  %u of %u entries in use\n", entries, view->flow_sets * L4_WAYS);
    for (uint32_t i = L4_DROP_NO_REAL; i <= L4_DROP_HEADROOM; i++)
        drops += sum_event(view, i) != 0;
    printf("drops       %u kinds counted (isobar l4 counters)\n", drops);
    return finish(&shown, 0);
}

static void print_vip_address(const struct l4_vip_bank *bank, const struct l4_vip *vip)
{
    char text[IP_TEXT_MAX];
    struct ip_addr ip = {.family = vip->key & 0xff};
    const __u64 *words = vip->addr;
    unsigned bits = 0;
    if (vip->addr[1] == ~0ull)
        for (uint32_t i = 0; i < bank->n_prefixes; i++)
            if (bank->prefixes[i].name == vip->addr[0]) {
                words = bank->prefixes[i].addr;
                bits = (unsigned)(__builtin_popcountll(bank->prefixes[i].mask[0]) +
                                  __builtin_popcountll(bank->prefixes[i].mask[1]));
            }
    memcpy(ip.bytes, words, ip.family == 6 ? 16 : 4);
    int n = (int)ip_print(&ip, text);
    char whole[IP_TEXT_MAX + 24];
    if (bits)
        n = snprintf(whole, sizeof(whole), "%.*s/%u", n, text, bits);
    else
        n = snprintf(whole, sizeof(whole), "%.*s", n, text);
    printf("%-24.*s", n, whole);
}

int cmd_l4_vips(int argc, char **argv)
{
    struct shown shown;
    if (!read_options(&shown, argc, argv, "vips [--pin FOLDER | --config FILE]"))
        return finish(&shown, 2);
    if (!peek(&shown))
        return finish(&shown, 1);
    const struct l4_vip_bank *bank = l4_bank(shown.view);
    printf("%-24s %-5s %5s %-24s %14s %18s\n", "vip", "proto", "port", "flags", "packets", "bytes");
    for (uint32_t i = 0; i < L4_VIP_SLOTS; i++) {
        const struct l4_vip *vip = &bank->slots[i];
        uint8_t protocol = vip->key >> 8 & 0xff;
        if (!vip->key || !protocol)
            continue;
        struct l4_traffic t = sum(shown.view->vip_count, L4_VIPS, vip->id, shown.view->n_cpus);
        char flags[64];
        snprintf(flags, sizeof(flags), "%s%s%s%s%s%s", vip->flags & L4_VIP_TRACK ? "always " : "",
                 vip->flags & L4_VIP_NO_TABLE ? "never " : "",
                 vip->flags & L4_VIP_HASH_SOURCE ? "source " : "",
                 vip->flags & L4_VIP_HASH_PORT ? "port " : "", vip->flags & L4_VIP_QUIC ? "quic " : "",
                 vip->flags & L4_VIP_FRAGMENTS ? "fragments" : "");
        print_vip_address(bank, vip);
        printf(" %-5s %5u %-24s %14llu %18llu\n", protocol == 6 ? "tcp" : "udp",
               __builtin_bswap16((uint16_t)(vip->key >> 16)), flags[0] ? flags : "-",
               (unsigned long long)t.packets, (unsigned long long)t.bytes);
    }
    return finish(&shown, 0);
}

int cmd_l4_counters(int argc, char **argv)
{
    struct shown shown;
    if (!read_options(&shown, argc, argv, "counters [--pin FOLDER | --config FILE]"))
        return finish(&shown, 2);
    uint64_t decap[L4_EVENTS];
    if (l4_decap_is_pinned(shown.pin)) {
        if (l4_decap_events(shown.pin, decap, &shown.diag)) {
            diag_print(&shown.diag);
            return finish(&shown, 1);
        }
        for (uint32_t i = L4_DECAP; i < L4_EVENTS; i++)
            printf("%-24s %llu\n", l4_event_name(i), (unsigned long long)decap[i]);
        return finish(&shown, 0);
    }
    if (!peek(&shown))
        return finish(&shown, 1);
    for (uint32_t i = 0; i < L4_DECAP; i++)
        printf("%-24s %llu\n", l4_event_name(i), (unsigned long long)sum_event(shown.view, i));
    for (uint32_t id = 1; id < L4_REALS; id++) {
        struct l4_traffic t = sum(shown.view->real_count, L4_REALS, id, shown.view->n_cpus);
        if (shown.view->reals[id].flags & L4_REAL_USABLE || t.packets)
            printf("real %-40s packets %llu bytes %llu%s\n", real_text(&shown, id),
                   (unsigned long long)t.packets, (unsigned long long)t.bytes,
                   shown.view->reals[id].flags & L4_REAL_USABLE ? "" : " (down)");
    }
    return finish(&shown, 0);
}

int cmd_l4_flows(int argc, char **argv)
{
    enum { STATES = L4_FLOW_CLOSING + 1 };
    struct shown shown;
    if (!read_options(&shown, argc, argv, "flows [--pin FOLDER | --config FILE]"))
        return finish(&shown, 2);
    if (!peek(&shown))
        return finish(&shown, 1);
    uint32_t(*count)[STATES] = calloc(L4_REALS, sizeof(*count));
    iso_assert(count != NULL);
    for (uint32_t set = 0; set < shown.view->flow_sets; set++)
        for (uint32_t i = 0; i < L4_WAYS; i++) {
            const struct l4_flow *flow = &shown.view->flows[set].way[i];
            if (flow->state < STATES)
                count[flow->word & (L4_REALS - 1)][flow->state]++;
        }
    printf("%-40s %10s %10s %10s\n", "real", "syn", "open", "closing");
    for (uint32_t id = 1; id < L4_REALS; id++)
        if (count[id][L4_FLOW_SYN] + count[id][L4_FLOW_OPEN] + count[id][L4_FLOW_CLOSING])
            printf("%-40s %10u %10u %10u\n", real_text(&shown, id), count[id][L4_FLOW_SYN],
                   count[id][L4_FLOW_OPEN], count[id][L4_FLOW_CLOSING]);
    free(count);
    return finish(&shown, 0);
}

static bool read_tuple(struct shown *shown, struct l4_tuple *tuple)
{
    uint32_t sport, dport;
    if (shown->n_rest != 5)
        return false;
    *tuple = (struct l4_tuple){.syn = shown->syn};
    tuple->protocol = !strcmp(shown->rest[0], "tcp") ? 6 : !strcmp(shown->rest[0], "udp") ? 17 : 0;
    if (!tuple->protocol || !ip_parse(slice_str(shown->rest[1]), &tuple->src) ||
        !read_number(shown->rest[2], 65535, &sport) || !ip_parse(slice_str(shown->rest[3]), &tuple->dst) ||
        !read_number(shown->rest[4], 65535, &dport) || tuple->src.family != tuple->dst.family)
        return false;
    tuple->sport = (uint16_t)sport;
    tuple->dport = (uint16_t)dport;
    return true;
}

static int look_up(int argc, char **argv, bool explain)
{
    static const char usage[] =
        "lookup|explain tcp|udp SOURCE SPORT VIP PORT [--syn] [--pin FOLDER | --config FILE]";
    struct shown shown;
    struct l4_tuple tuple;
    struct l4_verdict v;
    if (!read_options(&shown, argc, argv, usage))
        return finish(&shown, 2);
    if (!read_tuple(&shown, &tuple)) {
        fprintf(stderr, "usage: isobar l4 %s\n", usage);
        return finish(&shown, 2);
    }
    if (!peek(&shown))
        return finish(&shown, 1);
    l4_explain(shown.view, &tuple, l4_loader_tick(shown.loader), &v);
    bool sent = v.why != L4_WHY_NO_VIP && v.why != L4_WHY_NO_REAL;
    printf("%s\n", v.why == L4_WHY_NO_VIP    ? "pass"
                   : v.why == L4_WHY_NO_REAL ? "drop"
                                             : real_text(&shown, v.real));
    if (explain) {
        printf("why:      %s\n", l4_why_text(v.why));
        if (v.why != L4_WHY_NO_VIP) {
            printf("ring:     %u, slot %u of %u\n", v.vip.ring, v.slot, shown.view->slots);
            printf("current:  %s\n", real_text(&shown, v.current));
            if (v.previous)
                printf("previous: %s, for another %d s or so\n", real_text(&shown, v.previous), v.move_left);
            else
                printf("previous: none\n");
            if (v.found)
                printf("flow:     %s\n", real_text(&shown, (uint32_t)(v.flow.word & (L4_REALS - 1))));
            else
                printf("flow:     not in the table\n");
        }
    }
    return finish(&shown, sent ? 0 : 1);
}

int cmd_l4_lookup(int argc, char **argv)
{
    return look_up(argc, argv, false);
}

int cmd_l4_explain(int argc, char **argv)
{
    return look_up(argc, argv, true);
}

static void print_sample(void *arg, const struct l4_sample *head, const void *bytes, uint32_t n)
{
    struct shown *shown = arg;
    const uint8_t *b = bytes;
    if (!shown->count)
        return;
    shown->count--;
    printf("vip %u real %s frame %u bytes:", head->vip, real_text(shown, head->real), head->frame_bytes);
    for (uint32_t i = 0; i < n && i < head->frame_bytes; i++)
        printf("%s%02x", i % 4 ? "" : " ", b[i]);
    printf("\n");
    fflush(stdout);
}

int cmd_l4_sample(int argc, char **argv)
{
    struct shown shown;
    uint64_t lost = 0;
    if (!read_options(&shown, argc, argv, "sample [--every N] [--count N] [--pin FOLDER | --config FILE]"))
        return finish(&shown, 2);
    if (!peek(&shown))
        return finish(&shown, 1);
    iso_err err = l4_loader_set_sampling(shown.loader, shown.pin, shown.every, &shown.diag);
    while (!err && shown.count)
        err = l4_loader_samples(shown.loader, 1000, print_sample, &shown, &lost);
    iso_err off = l4_loader_set_sampling(shown.loader, shown.pin, 0, &shown.diag);
    if (lost)
        fprintf(stderr, "%llu samples were lost: sample fewer\n", (unsigned long long)lost);
    if (err || off)
        diag_print(&shown.diag);
    return finish(&shown, err || off ? 1 : 0);
}

int cmd_l4_detach(int argc, char **argv)
{
    struct shown shown;
    if (!read_options(&shown, argc, argv, "detach [--pin FOLDER | --config FILE]"))
        return finish(&shown, 2);
    iso_err err = l4_loader_detach(shown.pin, &shown.diag);
    if (err == ISO_ERR_NOT_FOUND)
        fprintf(stderr, "nothing is pinned in %s\n", shown.pin);
    diag_print(&shown.diag);
    return finish(&shown, err ? 1 : 0);
}
