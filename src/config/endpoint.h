/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints as text: "127.0.0.1:80", "[::1]:80", ":80" (all addresses), "unix:/run/x.sock". */
#ifndef ISOBAR_CONFIG_ENDPOINT_H
#define ISOBAR_CONFIG_ENDPOINT_H

#include "config/model.h"

enum { ENDPOINT_UNIX_MAX = 107 }; /* sun_path without its NUL */

/* Reads one of the forms above; false and `*why` (constant) otherwise. Slices borrow from `text`. */
bool endpoint_parse(struct slice text, struct config_endpoint *out, const char **why);
/* Sets endpoint->text from the other fields. Owns: the arena. */
void endpoint_name(struct config_endpoint *endpoint, struct arena *arena);
/* Family 0, 0.0.0.0 or ::: every address of the machine, and none to connect to. */
bool endpoint_is_any(const struct config_endpoint *endpoint);
/* 127.0.0.0/8, ::1 or a unix socket: not reachable from another machine. */
bool endpoint_is_local(const struct config_endpoint *endpoint);

#endif
