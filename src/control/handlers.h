/* SPDX-License-Identifier: Apache-2.0 */
/* Every handler that routes.def names. */
#ifndef ISOBAR_CONTROL_HANDLERS_H
#define ISOBAR_CONTROL_HANDLERS_H

#include "control/api.h"

#define ROUTE(method, pattern, role, handler, summary) api_handler handler;
#include "control/routes.def"
#undef ROUTE

#endif
