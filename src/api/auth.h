/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what on the admin listener (G8): bearer tokens from a file, one a line: `ROLE TOKEN [NAME]`,
 * with
 * "#" beginning a comment. The role is read, operate or admin; the name stands in the history of changes.
 * Tokens are compared in a time that depends on nothing but the candidate's length. Immutable once loaded. */
#ifndef ISOBAR_API_AUTH_H
#define ISOBAR_API_AUTH_H

#include "api/api.h"
#include "core/err.h"

struct auth;

enum { AUTH_TOKEN_MIN = 16, AUTH_TOKEN_MAX = 256, AUTH_TOKENS_MAX = 1000 };

/* ISO_ERR_INVALID with every fault of the file in `diag`, at /admin/token_file. Owns: the caller. */
iso_err auth_load(const char *path, struct auth **out, struct iso_diag *diag) ISO_MUST_USE;
void auth_free(struct auth **auth);

/* Whose token an Authorization value carries: false when it is no known one. `name` borrows from the auth. */
bool auth_find(const struct auth *auth, struct slice authorization, enum api_role *role, struct slice *name);

#endif
