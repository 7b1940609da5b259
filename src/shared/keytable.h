/* SPDX-License-Identifier: Apache-2.0 */
/* A table of fixed size from 64-bit keys to a few atomic words each, that every worker finds, adds and evicts
 * in without a lock: no malloc, no wait, and two workers that add the same key at once get the same words.
 *
 * Seven keys make a set. Their words stand behind a cache line that holds the keys and one word which
 * serialises additions to the set: a worker announces there which key goes where, and whoever comes across
 * an announcement completes it before going on, so that nobody depends on another one being scheduled. A full
 * set gives up the key of least weight, as the caller weighs it.
 *
 * Keys are hashes with a secret, made by the caller (core/hash, siphash): clients cannot aim at a set. 48 of
 * their bits are compared and at least as many others choose the set as there are sets, up to 16. */
#ifndef ISOBAR_SHARED_KEYTABLE_H
#define ISOBAR_SHARED_KEYTABLE_H

#include "core/check.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KEYTABLE_WAYS = 7, KEYTABLE_WORDS_MAX = 12 };

struct keytable;

/* What would be lost if the words were forgotten; 0: nothing. Must not touch them. */
typedef uint64_t keytable_weight_fn(const void *context, const _Atomic uint64_t *words, uint64_t now);

/* Room for at least `keys` of `words` (1 to KEYTABLE_WORDS_MAX) each, (64 + 64 * words) / 7 bytes a key, in
 * memory that the kernel gives when it is first written. The number of sets is a power of two. Threads:
 * control. */
struct keytable *keytable_new(uint32_t keys, uint32_t words, keytable_weight_fn *weight, const void *context);
void keytable_free(struct keytable **table);

/* The words of a key; added with zeroes when it was not there. They may be given to another key at any time
 * from now on, so each change of them must make sense by itself. Threads: any. */
_Atomic uint64_t *keytable_get(struct keytable *table, uint64_t key, uint64_t now);
/* The same of a key that is there, else NULL. Threads: any. */
_Atomic uint64_t *keytable_find(const struct keytable *table, uint64_t key);

/* Keys given up that weighed something, since the start. Threads: any. */
uint64_t keytable_evicted(const struct keytable *table);
/* Keys that would fit. */
uint32_t keytable_capacity(const struct keytable *table);

#endif
