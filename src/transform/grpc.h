/* SPDX-License-Identifier: Apache-2.0 */
/* What gRPC says in HTTP: which requests are calls, how long they may take, and how a failure is told to who
 * understands only grpc-status. Pure. Source: gRPC over HTTP/2, and the mapping of HTTP statuses to gRPC's,
 * as the gRPC project has them; A7; cases C-068 C-071 C-074. */
#ifndef ISOBAR_TRANSFORM_GRPC_H
#define ISOBAR_TRANSFORM_GRPC_H

#include "core/scratch.h"
#include "health/passive.h"
#include "http/message.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
    GRPC_STATUS_UNKNOWN = 255, /* none was seen */
};

/* Is this a Content-Type of calls: "application/grpc", alone or with "+" or ";" behind it? */
bool grpc_is_content_type(struct slice value);
/* The value of grpc-timeout in ns; false when it is malformed, or longer than anything waits. */
bool grpc_timeout_ns(struct slice value, uint64_t *ns);
/* What a failure that HTTP would tell by `http_status` is to gRPC. */
enum grpc_status grpc_status_of(unsigned http_status);
/* `text` as a value of grpc-message, percent-encoded; what does not fit is left out. */
struct slice grpc_message(struct slice text, struct scratch *scratch);
/* The grpc-status in a head or in trailers (NULL: none). */
enum grpc_status grpc_status_in(struct http_message *msg);
/* Its digits; empty for GRPC_STATUS_UNKNOWN. Static. */
struct slice grpc_status_text(enum grpc_status status);
/* What an answer with this status says of its target. */
enum passive_sign grpc_sign_of(enum grpc_status status);

#endif
