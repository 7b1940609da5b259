/* SPDX-License-Identifier: Apache-2.0 */
/* The XDP program's decision, computed in user space on the same tables with the same hashes: for a flow,
 * which VIP, slot, entry and real, and why (K3). Reads only; the program may write at the same time. */
#ifndef ISOBAR_L4_EXPLAIN_H
#define ISOBAR_L4_EXPLAIN_H

#include "l4/tables.h"

struct l4_tuple {
    struct ip_addr src, dst;
    uint16_t sport, dport;
    uint8_t protocol;
    bool syn; /* TCP: the packet that opens the flow */
};

enum l4_why {
    L4_WHY_NO_VIP,   /* passed to the kernel */
    L4_WHY_RING,     /* the slot did not move */
    L4_WHY_NEVER,    /* the VIP keeps no table */
    L4_WHY_SYN,      /* moved slot, new connection: the current owner */
    L4_WHY_FLOW,     /* found in the flow table */
    L4_WHY_PREVIOUS, /* not found: older than the move */
    L4_WHY_CURRENT,  /* not found, nothing moved: the ring */
    L4_WHY_NO_REAL,  /* dropped */
};

struct l4_verdict {
    enum l4_why why;
    struct l4_vip vip; /* valid unless L4_WHY_NO_VIP */
    uint32_t slot;
    uint32_t current, previous; /* real ids; previous 0: none that counts */
    int32_t move_left;          /* ticks that the previous owner still counts */
    bool found;                 /* an entry of the flow table */
    struct l4_flow flow;
    uint32_t real; /* the answer */
};

/* `now_tick` as l4_clock says. Of a per-CPU flow table every region is searched. */
void l4_explain(const struct l4_view *view, const struct l4_tuple *tuple, uint32_t now_tick,
                struct l4_verdict *out);
/* One line for people. */
const char *l4_why_text(enum l4_why why);
const char *l4_event_name(enum l4_event event);

#endif
