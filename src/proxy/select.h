/* SPDX-License-Identifier: Apache-2.0 */
/* Which target gets the attempt: the group's method over the targets that may take work, or, in panic (D5),
 * over all. What is usable is looked at again only when the group's epoch says that something changed, and
 * how far slow starts have come (B7) only now and then. */
#ifndef ISOBAR_PROXY_SELECT_H
#define ISOBAR_PROXY_SELECT_H

#include "core/random.h"
#include "observe/ends.h"
#include "snapshot/snapshot.h"

struct exchange;
struct worker;

enum { SELECT_TRIED_MAX = 8 }; /* targets that one request is kept away from */

/* The target to try next, never one that was tried while another is usable; BALANCE_NONE when there is none.
 */
uint32_t select_target(struct exchange *x);
/* The hash of what the group's hash_key names. */
uint64_t select_hash(const struct snap_group *group, struct http_message *msg, const struct ip_addr *client);
/* The same for whatever else is balanced: not one of tried[0..n_tried) while another is usable. */
uint32_t select_from(struct snap_group *group, struct worker *worker, uint64_t hash, const uint16_t *tried,
                     uint32_t n_tried);
/* The same over moving state, a clock and random numbers that are not a worker's: for whoever asks what would
 * be chosen. Threads: the owner of `mine`. */
uint32_t select_in(const struct snap_group *group, struct snap_group_worker *mine, uint64_t now_ns,
                   struct rng *rng, uint64_t hash, const uint16_t *tried, uint32_t n_tried);
/* May this target of the group take work now, health and weight considered? */
bool select_may_take(struct snap_group *group, struct worker *worker, uint32_t target);
uint64_t select_hash_address(const struct ip_addr *ip);
/* Why select_target() found none. */
enum exchange_end select_why_none(const struct exchange *x);

#endif
