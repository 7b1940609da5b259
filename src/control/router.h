/* SPDX-License-Identifier: Apache-2.0 */
/* From a request's method and path to the route that answers it. Routes are a constant table, routes.def: a
 * method, a pattern whose {names} stand for one segment of the path, what the client must be allowed to do,
 * and the handler. */
#ifndef ISOBAR_CONTROL_ROUTER_H
#define ISOBAR_CONTROL_ROUTER_H

#include "api/route.h"

extern const struct api_route api_routes[];
extern const size_t api_routes_n;

enum router_result { ROUTER_FOUND, ROUTER_NO_PATH, ROUTER_NO_METHOD };

/* Fills the route and the parameters of the call from its request; ROUTER_NO_METHOD fills reply.allow. */
enum router_result router_find(struct api_call *call);
/* Does this method come with a body? */
bool router_takes_body(enum http_method method);

#endif
