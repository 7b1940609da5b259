/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 1100 };

void rig_init(struct rig *rig)
{
    *rig = (struct rig){0};
    arena_init(&rig->arena);
    diag_init(&rig->diag);
    l4_node_defaults(&rig->spec.node);
    rig->spec.node.pin = (struct slice){0};
    rig->spec.node.flow_entries = 1 << 15;
    rig->spec.node.max_packet = 1500;
    rig->spec.node.rings = 12;
    rig->spec.reals = arena_array(&rig->arena, struct l4_spec_real, ROOM);
    rig->spec.sets = arena_array(&rig->arena, struct l4_spec_set, ROOM);
    rig->spec.vips = arena_array(&rig->arena, struct l4_spec_vip, ROOM);
}

uint32_t rig_real(struct rig *rig, const char *ip, uint32_t weight)
{
    uint32_t i = rig->spec.n_reals++;
    rig->spec.reals[i] = (struct l4_spec_real){
        .name = arena_slice(&rig->arena, slice_str(ip)), .weight = weight, .usable = true};
    assert_true(ip_parse(slice_str(ip), &rig->spec.reals[i].ip));
    return i;
}

uint32_t rig_set(struct rig *rig, uint32_t n, ...)
{
    struct l4_spec_set *set = &rig->spec.sets[rig->spec.n_sets];
    set->reals = arena_array(&rig->arena, uint32_t, n + 1);
    va_list args;
    va_start(args, n);
    for (uint32_t i = 0; i < n; i++)
        set->reals[set->n_reals++] = va_arg(args, uint32_t);
    va_end(args);
    return rig->spec.n_sets++;
}

struct l4_spec_vip *rig_vip(struct rig *rig, const char *prefix, uint16_t port, uint8_t protocol,
                            uint16_t flags, uint32_t set)
{
    struct l4_spec_vip *vip = &rig->spec.vips[rig->spec.n_vips++];
    *vip = (struct l4_spec_vip){.name = arena_slice(&rig->arena, slice_str(prefix)),
                                .port = port,
                                .protocol = protocol,
                                .flags = flags,
                                .set = set};
    assert_true(ip_prefix_parse(slice_str(prefix), &vip->prefix));
    return vip;
}

void rig_start(struct rig *rig)
{
    if (geteuid() != 0) {
        print_message("skipped, because loading XDP programs needs root\n");
        skip();
    }
    iso_err err = l4_loader_open(&rig->spec, &rig->loader, &rig->diag);
    if (err) {
        const char *why = rig->diag.first ? rig->diag.first->message : iso_err_text(err);
        if (err == ISO_ERR_UNSUPPORTED && !getenv("ISOBAR_L4_REQUIRED")) {
            print_message("skipped, because %s\n", why);
            skip();
        }
        fail_msg("%s", why);
    }
    rig->view = l4_loader_view(rig->loader);
    l4_tables_init(&rig->tables, rig->view);
    rig_publish(rig);
}

void rig_publish(struct rig *rig)
{
    iso_err err = l4_tables_publish(&rig->tables, &rig->spec, l4_loader_tick(rig->loader), &rig->diag);
    if (err)
        fail_msg("%s: %s", iso_err_text(err), rig->diag.first ? rig->diag.first->message : "");
    assert_int_equal(l4_loader_server_ids(rig->loader, &rig->spec), ISO_OK);
}

void rig_stop(struct rig *rig)
{
    l4_tables_fini(&rig->tables);
    l4_loader_close(rig->loader);
    diag_fini(&rig->diag);
    arena_fini(&rig->arena);
}

uint32_t rig_run(struct rig *rig, const struct frame *in, struct frame *out)
{
    struct frame scratch;
    uint32_t verdict;
    if (!out)
        out = &scratch;
    assert_int_equal(l4_loader_run(rig->loader, in->b, in->n, out->b, sizeof(out->b), &out->n, &verdict),
                     ISO_OK);
    return verdict;
}

uint64_t rig_event(struct rig *rig, enum l4_event event)
{
    uint64_t sum = 0;
    for (uint32_t cpu = 0; cpu < rig->view->n_cpus; cpu++)
        sum += rig->view->cpus[cpu].events[event];
    return sum;
}

int rig_real_of(struct rig *rig, const struct frame *out)
{
    struct ip_addr to = {0};
    uint32_t l2 = 14;
    while (frame_u16(out, l2 - 2) == 0x8100 || frame_u16(out, l2 - 2) == 0x88a8)
        l2 += 4;
    if (frame_u16(out, l2 - 2) == 0x0800) {
        to.family = 4;
        memcpy(to.bytes, out->b + l2 + 16, 4);
    } else {
        to.family = 6;
        memcpy(to.bytes, out->b + l2 + 24, 16);
    }
    for (uint32_t i = 0; i < rig->spec.n_reals; i++)
        if (ip_eq(&rig->spec.reals[i].ip, &to))
            return (int)i;
    return -1;
}

int rig_target(struct rig *rig, const struct frame *in)
{
    struct frame out;
    return rig_run(rig, in, &out) == XDP_TX_ ? rig_real_of(rig, &out) : -1;
}

/* ---- packets ---- */

uint16_t frame_u16(const struct frame *frame, uint32_t at)
{
    return (uint16_t)(frame->b[at] << 8 | frame->b[at + 1]);
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static uint32_t sum16(const uint8_t *b, uint32_t n, uint32_t sum)
{
    for (uint32_t i = 0; i < n; i++)
        sum += i % 2 ? b[i] : (uint32_t)b[i] << 8;
    return sum;
}

static uint16_t fold16(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

void frame_insert(struct frame *frame, uint32_t at, const void *what, uint32_t bytes)
{
    memmove(frame->b + at + bytes, frame->b + at, frame->n - at);
    memcpy(frame->b + at, what, bytes);
    frame->n += bytes;
}

void frame_fix_ip(struct frame *frame)
{
    uint8_t *ip = frame->b + 14;
    if (ip[0] >> 4 == 6) {
        put16(ip + 4, frame->n - 54);
        return;
    }
    put16(ip + 2, frame->n - 14);
    put16(ip + 10, 0);
    put16(ip + 10, fold16(sum16(ip, (ip[0] & 15u) * 4, 0)));
}

static uint32_t pseudo_sum(const uint8_t *ip, uint8_t protocol, uint32_t bytes)
{
    uint32_t sum = protocol + bytes;
    return ip[0] >> 4 == 6 ? sum16(ip + 8, 32, sum) : sum16(ip + 12, 8, sum);
}

static struct frame frame_ip(const char *src, const char *dst, uint8_t protocol, uint32_t bytes)
{
    static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
    struct frame frame = {0};
    struct ip_addr from, to;
    assert_true(ip_parse(slice_str(src), &from));
    assert_true(ip_parse(slice_str(dst), &to));
    memcpy(frame.b, macs, 12);
    uint8_t *ip = frame.b + 14;
    if (from.family == 6) {
        put16(frame.b + 12, 0x86dd);
        ip[0] = 0x60;
        ip[6] = protocol;
        ip[7] = 64;
        memcpy(ip + 8, from.bytes, 16);
        memcpy(ip + 24, to.bytes, 16);
        frame.n = 54 + bytes;
    } else {
        put16(frame.b + 12, 0x0800);
        ip[0] = 0x45;
        ip[8] = 64;
        ip[9] = protocol;
        memcpy(ip + 12, from.bytes, 4);
        memcpy(ip + 16, to.bytes, 4);
        frame.n = 34 + bytes;
    }
    frame_fix_ip(&frame);
    return frame;
}

static void fix_transport(struct frame *frame, uint8_t protocol, uint32_t at, uint32_t sum_at)
{
    uint32_t bytes = frame->n - at;
    put16(frame->b + at + sum_at, 0);
    uint32_t seed = protocol == 1 ? 0 : pseudo_sum(frame->b + 14, protocol, bytes);
    uint16_t sum = fold16(sum16(frame->b + at, bytes, seed));
    put16(frame->b + at + sum_at, sum || protocol != 17 ? sum : 0xffff);
}

static uint32_t transport_at(const struct frame *frame)
{
    return frame->b[14] >> 4 == 6 ? 54 : 34;
}

struct frame frame_tcp(const char *src, const char *dst, uint16_t sport, uint16_t dport, uint8_t flags,
                       const char *payload)
{
    uint32_t bytes = (uint32_t)strlen(payload);
    struct frame frame = frame_ip(src, dst, 6, 20 + bytes);
    uint32_t at = transport_at(&frame);
    put16(frame.b + at, sport);
    put16(frame.b + at + 2, dport);
    frame.b[at + 12] = 0x50;
    frame.b[at + 13] = flags;
    put16(frame.b + at + 14, 8192);
    memcpy(frame.b + at + 20, payload, bytes);
    fix_transport(&frame, 6, at, 16);
    return frame;
}

struct frame frame_udp(const char *src, const char *dst, uint16_t sport, uint16_t dport, const void *payload,
                       uint32_t bytes)
{
    struct frame frame = frame_ip(src, dst, 17, 8 + bytes);
    uint32_t at = transport_at(&frame);
    put16(frame.b + at, sport);
    put16(frame.b + at + 2, dport);
    put16(frame.b + at + 4, 8 + bytes);
    memcpy(frame.b + at + 8, payload, bytes);
    fix_transport(&frame, 17, at, 6);
    return frame;
}

struct frame frame_icmp(const char *src, const char *dst, uint8_t type, uint8_t code, uint32_t rest,
                        const void *payload, uint32_t bytes)
{
    bool v6 = strchr(src, ':') != NULL;
    struct frame frame = frame_ip(src, dst, v6 ? 58 : 1, 8 + bytes);
    uint32_t at = transport_at(&frame);
    frame.b[at] = type;
    frame.b[at + 1] = code;
    put16(frame.b + at + 4, rest >> 16);
    put16(frame.b + at + 6, rest & 0xffff);
    memcpy(frame.b + at + 8, payload, bytes);
    fix_transport(&frame, v6 ? 58 : 1, at, 2);
    return frame;
}

bool frame_sums_right(const struct frame *frame, uint32_t at)
{
    const uint8_t *ip = frame->b + at;
    uint32_t header = 40, total;
    uint8_t protocol;
    if (ip[0] >> 4 == 4) {
        header = (ip[0] & 15u) * 4;
        total = frame_u16(frame, at + 2);
        protocol = ip[9];
        if (fold16(sum16(ip, header, 0)) != 0)
            return false;
    } else {
        total = frame_u16(frame, at + 4) + 40u;
        protocol = ip[6];
    }
    if (at + total > frame->n)
        return false;
    if (protocol == 4 || protocol == 41)
        return frame_sums_right(frame, at + header);
    if (protocol == 17 && frame_u16(frame, at + header + 6) == 0)
        return ip[0] >> 4 == 4;
    uint32_t seed = protocol == 1 ? 0 : pseudo_sum(ip, protocol, total - header);
    return fold16(sum16(ip + header, total - header, seed)) == 0;
}
