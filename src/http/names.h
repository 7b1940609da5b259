/* SPDX-License-Identifier: Apache-2.0 */
/* Field names that are not known names but may become one at a backend: CGI, WSGI and their kin turn every
 * byte that an environment variable cannot hold into '_', so that X_Forwarded_For and X-Forwarded-For are
 * one variable there. */
#ifndef ISOBAR_HTTP_NAMES_H
#define ISOBAR_HTTP_NAMES_H

#include "http/message.h"

/* The id of the known name that `name` equals but for the bytes where the known one has hyphens (and but for
 * case), or HTTP_FIELD_OTHER. */
enum http_field_id http_field_lookalike(struct slice name);

#endif
