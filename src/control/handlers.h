/* SPDX-License-Identifier: Apache-2.0 */
/* Every handler that routes.def names, and those of all resources. */
#ifndef ISOBAR_CONTROL_HANDLERS_H
#define ISOBAR_CONTROL_HANDLERS_H

#include "onepool/handlers.h"
#include "v1/handlers.h"

api_handler page_index, page_healthz, page_metrics, page_api_health;
api_handler v1_openapi;

#endif
