/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the XDP programs: builds a spec and packets, runs a packet through the loaded program by
 * BPF_PROG_TEST_RUN, and looks at the tables. Nothing is attached to any interface. */
#ifndef TESTS_BPF_HARNESS_H
#define TESTS_BPF_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "l4/loader.h"

enum { XDP_ABORTED_, XDP_DROP_, XDP_PASS_, XDP_TX_ };
enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

struct rig {
    struct arena arena;
    struct l4_spec spec;
    struct l4_loader *loader;
    struct l4_tables tables;
    struct iso_diag diag;
    const struct l4_view *view;
};

struct frame {
    uint8_t b[4096];
    uint32_t n;
};

/* An empty spec with room, node settings at their defaults but small tables; set up before rig_start(). */
void rig_init(struct rig *rig);
uint32_t rig_real(struct rig *rig, const char *ip, uint32_t weight);
uint32_t rig_set(struct rig *rig, uint32_t n, ...);
struct l4_spec_vip *rig_vip(struct rig *rig, const char *prefix, uint16_t port, uint8_t protocol,
                            uint16_t flags, uint32_t set);
/* Loads and publishes; skips the running test, saying why, where the kernel or the rights do not allow it. */
void rig_start(struct rig *rig);
void rig_publish(struct rig *rig);
void rig_stop(struct rig *rig);

/* Runs `in`; the verdict. `out` may be NULL. */
uint32_t rig_run(struct rig *rig, const struct frame *in, struct frame *out);
uint64_t rig_event(struct rig *rig, enum l4_event event);
/* The real that the packet was sent to: index in the spec, -1 for another verdict than XDP_TX or an address
 * that is no real's. */
int rig_target(struct rig *rig, const struct frame *in);
int rig_real_of(struct rig *rig, const struct frame *out);

/* Ethernet and IP with right lengths and checksums. `src` decides the family. */
struct frame frame_tcp(const char *src, const char *dst, uint16_t sport, uint16_t dport, uint8_t flags,
                       const char *payload);
struct frame frame_udp(const char *src, const char *dst, uint16_t sport, uint16_t dport, const void *payload,
                       uint32_t bytes);
/* ICMP or ICMPv6 with this type, code and rest, then `payload`. */
struct frame frame_icmp(const char *src, const char *dst, uint8_t type, uint8_t code, uint32_t rest,
                        const void *payload, uint32_t bytes);
/* Puts `bytes` in at `at`. */
void frame_insert(struct frame *frame, uint32_t at, const void *what, uint32_t bytes);
/* Recomputes length and checksum of the IP header at 14 after a change; for IPv6 the length only. */
void frame_fix_ip(struct frame *frame);
/* True when header and transport checksums of the IP packet at `at` are right (UDP over IPv4 may have none).
 */
bool frame_sums_right(const struct frame *frame, uint32_t at);
uint16_t frame_u16(const struct frame *frame, uint32_t at);

#endif
