/* SPDX-License-Identifier: Apache-2.0 */
/* Every handler that routes.def names, and those of all resources. */
#ifndef ISOBAR_CONTROL_HANDLERS_H
#define ISOBAR_CONTROL_HANDLERS_H

#include "control/api.h"

#define ROUTE(method, pattern, role, handler, summary) api_handler handler;
#include "control/routes.def"
#undef ROUTE

struct loop;
/* Ends a question that waits for the comparison of a password, with the loop that it would come back to. */
void api_explain_stop(const struct loop *loop);

/* v1_resource.c: of each line of resources.def. */
api_handler v1_list, v1_post, v1_replace, v1_get, v1_put, v1_patch, v1_delete;

#endif
