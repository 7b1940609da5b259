/* SPDX-License-Identifier: Apache-2.0 */
/* A file of users and the hashes of their passwords, as htpasswd makes it: NAME:HASH a line, hashes as
 * crypt(3) knows them. Read when the snapshot is built, immutable but for the memory of pairs that were found
 * good: it lets a known pair pass without the slow comparison, for as long as the file stays the same. */
#ifndef ISOBAR_GUARD_PASSWORDS_H
#define ISOBAR_GUARD_PASSWORDS_H

#include "config/model.h"
#include "core/diag.h"

struct passwords;

/* Owns: the caller holds one reference. Threads: control. */
iso_err passwords_load(const struct config_basic_auth *config, struct passwords **out,
                       struct iso_diag *diag) ISO_MUST_USE;
struct passwords *passwords_ref(struct passwords *passwords);
void passwords_unref(struct passwords **passwords);

/* The user's hash. For a user that is not there: another's, and *exists is false, so that the comparison
 * takes as long. Threads: any. */
const char *passwords_find(const struct passwords *passwords, struct slice user, bool *exists);
/* Has this pair ("user:password") been found good? Threads: any. */
bool passwords_knows(const struct passwords *passwords, struct slice pair);
/* It has been. Threads: any. */
void passwords_remember(struct passwords *passwords, struct slice pair);

#endif
