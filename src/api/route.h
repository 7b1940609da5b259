/* SPDX-License-Identifier: Apache-2.0 */
/* A line of the table of routes (control/routes.def), as its handler sees it. */
#ifndef ISOBAR_API_ROUTE_H
#define ISOBAR_API_ROUTE_H

#include "api/api.h"

struct resource;

struct api_route {
    enum http_method method; /* GET serves HEAD too */
    const char *pattern;     /* "/v1/target-groups/{target_group}/targets" */
    enum api_role role;
    api_handler *handler;
    const char *summary;
    const struct resource *resource; /* that the handler is about; NULL: none */
};

#endif
