/* SPDX-License-Identifier: Apache-2.0 */
/* Compares passwords with their hashes, which is slow on purpose (some ten milliseconds), on a thread of its
 * own, so that no worker ever waits for it. There is one thread for the process; what it may have waiting is
 * bounded, so guessing passwords costs one CPU at most and delays nobody but those who log in. Source:
 * crypt(3). */
#ifndef ISOBAR_GUARD_CRYPT_THREAD_H
#define ISOBAR_GUARD_CRYPT_THREAD_H

#include "net/loop.h"

enum { CRYPT_PASSWORD_MAX = 256, CRYPT_HASH_MAX = 128, CRYPT_WAITING_MAX = 64 };

/* One comparison. The thread's from crypt_post() on until `call` runs on `home`. */
struct crypt_job {
    struct loop_call call; /* fn and arg: the owner's */
    struct loop *home;
    struct crypt_job *next;
    char password[CRYPT_PASSWORD_MAX + 1], hash[CRYPT_HASH_MAX + 1];
    bool matches; /* the result */
};

/* Counted: the first starts the thread, the last ends it. Threads: control. */
iso_err crypt_thread_ref(void) ISO_MUST_USE;
void crypt_thread_unref(void);
/* The same at once, where somebody waits: for commands, not for a process that serves. Threads: any. */
bool crypt_compare(const char *password, const char *hash);
/* False: too many wait. Threads: any that holds a reference by way of a snapshot. */
bool crypt_post(struct crypt_job *job);
/* Waits until no job of that loop is left here; those that had not begun come back unmatched. Threads: any.
 */
void crypt_forget(const struct loop *home);

#endif
