/* SPDX-License-Identifier: Apache-2.0 */
/* A rule's basic authentication (RFC 7617): a request passes when it brings a name and a password of the
 * rule's file. A pair that was found good before passes at once; another waits, before a target is chosen,
 * while the thread for passwords compares it. */
#ifndef ISOBAR_PROXY_BASIC_AUTH_H
#define ISOBAR_PROXY_BASIC_AUTH_H

#include "http/message.h"
#include "snapshot/snapshot.h"

struct exchange;
struct worker;

/* The files of a listener's rules, into listener->rule_passwords; those of `earlier` (of the same
 * configuration; NULL: none) are taken over. */
iso_err basic_auth_build(struct snapshot *snapshot, struct snap_listener *listener,
                         const struct snap_listener *earlier, struct iso_diag *diag) ISO_MUST_USE;

void basic_auth_init(struct worker *worker);
/* The worker's thread has ended: waits for what the other thread still has of it. */
void basic_auth_fini(struct worker *worker);

/* True: nothing that could be good was brought, and the request has been answered. Otherwise it is good, or
 * basic_auth_is_asking(). */
bool basic_auth_refuses(struct exchange *x, struct passwords *passwords, struct http_message *msg);
/* Is it not known yet? Then the exchange goes on by forward_again(), or ends with 401. */
bool basic_auth_is_asking(const struct exchange *x);
/* The exchange waits no longer. */
void basic_auth_leave(struct exchange *x);

#endif
