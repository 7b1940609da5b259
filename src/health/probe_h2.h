/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a check that is over HTTP/2: an http check as one stream, or the call of gRPC's own health
 * service (grpc.health.v1.Health/Check). The connection is the probe's and is used for this alone. */
#ifndef ISOBAR_HEALTH_PROBE_H2_H
#define ISOBAR_HEALTH_PROBE_H2_H

#include "core/text.h"
#include "health/probe.h"

/* The request of a grpc check, as HTTP/1 would write it, behind the line with Host; and the message that goes
 * with it, as wire bytes. Both are added to `text`. */
void probe_h2_add_grpc_fields(struct text *text);
void probe_h2_add_grpc_message(struct text *text, struct slice service);

/* Sends the request on the probe's open connection. False: no memory, or the connection is broken. */
bool probe_h2_begin(struct probe *probe);
/* Reads what has come. True when the check is decided. */
bool probe_h2_read(struct probe *probe, uint64_t now_ns, enum health_reason *reason);
/* Before the connection is closed; nothing happens when nothing was begun. */
void probe_h2_end(struct probe *probe);

#endif
