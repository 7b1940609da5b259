/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the nodes behind the packet tier are there: a TCP connection to a port of each, over and over. Runs
 * in the node's single thread: never blocks, one descriptor a node. Nodes are known by name and address, so
 * what was learnt survives a new configuration. Source: D1. */
#ifndef ISOBAR_L4_WATCH_H
#define ISOBAR_L4_WATCH_H

#include "config/model_l4.h"

#include "l4/spec.h"

struct l4_watch {
    struct l4_watched *nodes; /* owns */
    uint32_t n;
};

/* Follows the nodes of `spec`; a new one counts as up until it fails. Port 0: watches none. */
void l4_watch_set(struct l4_watch *watch, const struct l4_spec *spec, const struct config_l4_check *check);
void l4_watch_fini(struct l4_watch *watch);
/* Starts and ends what is due. True when a node went down or came back. Never waits. Units: `now_ns`
 * monotonic. */
bool l4_watch_step(struct l4_watch *watch, const struct config_l4_check *check, uint64_t now_ns);
/* Takes what is down out of `spec`: usable only where it was and the check says so. */
void l4_watch_apply(const struct l4_watch *watch, struct l4_spec *spec);

#endif
