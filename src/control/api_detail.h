/* SPDX-License-Identifier: Apache-2.0 */
/* What the OpenAPI document says of routes that are no resources of the schema: their query parameters, the
 * fields of their bodies, and how they answer. */
#ifndef ISOBAR_CONTROL_API_DETAIL_H
#define ISOBAR_CONTROL_API_DETAIL_H

#include "api/api.h"

struct api_detail {
    api_handler *handler;
    unsigned success;     /* status when all is well */
    const char *query;    /* "limit:integer cursor:string" */
    const char *body;     /* likewise; '!' behind a name: it must be there. NULL: no body */
    const char *statuses; /* of errors, beside 401 and 403: "400 404" */
};

/* NULL: there is nothing to add for this route. */
const struct api_detail *api_detail_find(api_handler *handler);

/* The next "name:type" of such a list; false at its end. */
bool api_detail_next(const char **list, struct slice *name, struct slice *type, bool *is_required);

#endif
