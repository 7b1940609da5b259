/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that tell browsers to be careful: Strict-Transport-Security (`hsts`) and a set of others
 * (`security_headers`). They go with every answer of a listener, ours and the targets', where the answer has
 * none of that name. Source: RFC 6797 7. */
#ifndef ISOBAR_GUARD_SECURITY_H
#define ISOBAR_GUARD_SECURITY_H

#include "http/message.h"
#include "snapshot/snapshot.h"

enum { SECURITY_FIELDS_MAX = 4 };

/* What the listener's answers get. Threads: control. */
void security_build(struct snapshot *snapshot, struct snap_listener *listener);
/* Adds them to a target's answer; false when there is no room. Threads: any worker. */
bool security_add(const struct snap_listener *listener, struct http_message *msg);

#endif
