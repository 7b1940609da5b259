/* SPDX-License-Identifier: Apache-2.0 */
/* What control/routes.def names of /v1. */
#ifndef ISOBAR_V1_HANDLERS_H
#define ISOBAR_V1_HANDLERS_H

#include "api/api.h"

struct loop;

api_handler v1_config_get, v1_config_put;
api_handler v1_versions_list, v1_versions_get, v1_versions_rollback;
api_handler v1_health;
api_handler v1_explain_get, v1_explain_post;
/* Of each line of resources.def. */
api_handler v1_list, v1_post, v1_replace, v1_get, v1_put, v1_patch, v1_delete;

/* Ends a question that waits for the comparison of a password, with the loop that it would come back to. */
void v1_explain_stop(const struct loop *loop);

#endif
