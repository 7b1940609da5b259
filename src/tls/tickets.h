/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of session tickets, so that sessions resume without any state here. Two sources:
 *
 * Files, shared by instances: the first key makes tickets, all are accepted, so a rotation adds the new key
 * behind the first everywhere and then moves it to the front (case C-078).
 *
 * Without files each thread turns a chain of keys by itself: key n + 1 is a hash of key n, one every
 * TICKET_EPOCH_S, and a key that is too old is forgotten. All threads begin with the same secret and count
 * time alike, so they agree without talking, and what was recorded before cannot be read with what is in
 * memory later. */
#ifndef ISOBAR_TLS_TICKETS_H
#define ISOBAR_TLS_TICKETS_H

#include "core/slice.h"
#include "tls/fault.h"

#include <stdint.h>

enum { TICKET_NAME_BYTES = 16, TICKET_KEY_BYTES = 32, TICKET_EPOCH_S = 6 * 3600, TICKET_FILES_MAX = 8 };

struct ticket_key {
    unsigned char name[TICKET_NAME_BYTES];
    unsigned char hmac[TICKET_KEY_BYTES];
    unsigned char aes[TICKET_KEY_BYTES];
    bool is_short; /* AES-128 and 16 bytes of HMAC key: a file of 48 bytes */
};

/* Keys from files of 80 or 48 random bytes: name, then HMAC and AES key (80) or AES and HMAC key (48), as
 * nginx has them. */
struct ticket_files {
    struct ticket_key keys[TICKET_FILES_MAX];
    uint32_t n; /* 0: none, the thread's chain serves */
};

iso_err ticket_file_load(struct ticket_files *files, const char *path, struct tls_fault *fault) ISO_MUST_USE;

/* A thread's chain: the key in force and the one before. */
struct ticket_chain {
    unsigned char secret[TICKET_KEY_BYTES]; /* of `epoch` + 1 and later ones */
    uint64_t begun_s;
    uint64_t epoch; /* counts from there */
    struct ticket_key now, before;
    bool has_before;
};

/* Begins at the same secret in every thread of the process. Units: monotonic seconds, here and below.
 * Threads: any. */
void ticket_chain_init(struct ticket_chain *chain, uint64_t now_s);
/* Forgets what chains begin with: every thread has one now. Threads: control. */
void ticket_seed_drop(void);
/* Moves on to the present. */
void ticket_chain_turn(struct ticket_chain *chain, uint64_t now_s);
void ticket_chain_fini(struct ticket_chain *chain);

/* The key that makes tickets. */
const struct ticket_key *ticket_key_now(const struct ticket_files *files, const struct ticket_chain *chain);
/* The key of that name, or NULL; `*is_old`: a new ticket should follow. */
const struct ticket_key *ticket_key_find(const struct ticket_files *files, const struct ticket_chain *chain,
                                         const unsigned char *name, bool *is_old);

#endif
