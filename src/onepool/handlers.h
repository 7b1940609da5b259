/* SPDX-License-Identifier: Apache-2.0 */
/* What control/routes.def names of /api. */
#ifndef ISOBAR_ONEPOOL_HANDLERS_H
#define ISOBAR_ONEPOOL_HANDLERS_H

#include "api/api.h"

api_handler api_metrics;
api_handler api_config_get, api_config_algorithm, api_config_health;
api_handler api_servers_list, api_servers_get, api_servers_add, api_servers_put, api_servers_remove;
api_handler api_sessions_find, api_sessions_end;

#endif
