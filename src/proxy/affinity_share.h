/* SPDX-License-Identifier: Apache-2.0 */
/* The part of session affinity that nodes share (C2, C5): what a worker asks the shared store, and tells it.
 * A request whose client this process does not know waits for the store's word, at most for shared_state's
 * deadline, and not at all while the store is slow or away; then the algorithm decides. Each exchange of a
 * group with a table holds one call, which keeps the client's name until its answer; it is the worker's
 * memory, and lent to the store's thread while it is under way. */
#ifndef ISOBAR_PROXY_AFFINITY_SHARE_H
#define ISOBAR_PROXY_AFFINITY_SHARE_H

#include "core/slice.h"

#include <stdbool.h>

struct exchange;
struct worker;

void share_init(struct worker *worker);
/* Calls that are under way are gone with the worker: the store's thread must have ended. */
void share_fini(struct worker *worker);

/* Who the client is: `session` is its session's id, ptr NULL: it is known by its address. Nothing happens
 * without a shared store. */
void share_note_client(struct exchange *x, struct slice session);
/* Asks the store for the client's target, if it answers these days. */
void share_ask(struct exchange *x);
/* Does the exchange wait for the store's word? It goes on by forward_again(). */
bool share_is_asking(const struct exchange *x);
/* The memory's entry has been renewed: so will the store's be when the exchange ends. */
void share_note_renewed(struct exchange *x);
/* The client, or the new session `session` (ptr NULL: the client as noted), is bound to a target now. */
void share_bind(struct exchange *x, struct slice session, uint32_t target);
/* The exchange no longer waits, if it did. */
void share_leave(struct exchange *x);
/* The exchange ends. */
void share_end(struct exchange *x);

#endif
