/* SPDX-License-Identifier: Apache-2.0 */
/* A rule's basic authentication (RFC 7617): a request passes when it brings a name and a password of the
 * rule's file. A pair that was found good before passes at once; another waits, before a target is chosen,
 * while the thread for passwords compares it. */
#ifndef ISOBAR_GUARD_BASIC_AUTH_H
#define ISOBAR_GUARD_BASIC_AUTH_H

#include "guard/crypt_thread.h"
#include "http/message.h"
#include "observe/ends.h"
#include "snapshot/snapshot.h"

struct auth_call;
struct worker;

/* The files of a listener's rules, into listener->rule_passwords; those of `earlier` (of the same
 * configuration; NULL: none) are taken over. */
iso_err basic_auth_build(struct snapshot *snapshot, struct snap_listener *listener,
                         const struct snap_listener *earlier, struct iso_diag *diag) ISO_MUST_USE;

void basic_auth_init(struct worker *worker);
/* The worker's thread has ended: waits for what the other thread still has of it. */
void basic_auth_fini(struct worker *worker);

/* What the comparison of a pair came to. */
typedef void basic_auth_done_fn(void *arg, bool is_good);

/* Takes the pair out of the request, and puts the user's name where the rule wants it; its text stands in
 * worker->token. END_NORMAL with *call NULL: the pair is known to be good. END_NORMAL otherwise: it is being
 * compared, and `done` will be called unless basic_auth_leave() comes first. Else why the request is to be
 * refused. Threads: the worker. */
enum exchange_end basic_auth_check(struct worker *worker, struct passwords *passwords,
                                   const struct config_basic_auth *config, struct http_message *msg,
                                   basic_auth_done_fn *done, void *arg, struct auth_call **call) ISO_MUST_USE;
/* Nobody waits for it any longer; NULL does nothing. */
void basic_auth_leave(struct auth_call **call);

/* A pair that was not found good before: what has to be compared to know. */
struct basic_auth_question {
    bool is_known; /* it was, or there is no such user: nothing has to */
    char password[CRYPT_PASSWORD_MAX + 1];
    const char *hash; /* borrows from the passwords */
};

/* What basic_auth_check() would say, as far as that goes without comparing, and the user's name put where the
 * rule wants it; its text stands in `room`. END_NORMAL: it is good, or *out says on what that depends.
 * Remembers nothing. Threads: any. */
enum { BASIC_AUTH_ROOM_BYTES = 2 * CRYPT_PASSWORD_MAX };
enum exchange_end basic_auth_peek(const struct passwords *passwords, const struct config_basic_auth *config,
                                  struct http_message *msg, char *room,
                                  struct basic_auth_question *out) ISO_MUST_USE;

/* The value of WWW-Authenticate that goes with a refusal; `out` has room for BASIC_AUTH_CHALLENGE_MAX. */
enum { BASIC_AUTH_CHALLENGE_MAX = 300 };
struct slice basic_auth_challenge(const struct config_basic_auth *config, char *out);

#endif
