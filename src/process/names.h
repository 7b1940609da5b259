/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the configuration in force, kept resolved on the control thread's loop. A reload resolves
 * those that are new before its snapshot is built, and forgets the others only when it has succeeded. When
 * answers change, the owner is told, at most once a second, to build a snapshot of the same configuration.
 *
 *     names_take(names, config);     before snapshot_build(), with names_resolve()
 *     names_keep(names, config);     the one now in force: the new one, or after a failure the old one */
#ifndef ISOBAR_PROCESS_NAMES_H
#define ISOBAR_PROCESS_NAMES_H

#include "config/model.h"
#include "net/resolve.h"

struct names;

struct names *names_new(struct loop *loop, void (*on_change)(void *owner), void *owner);
void names_free(struct names **names);
/* Waits for first answers, a second or two at most; a name that has none then has no targets (reason dns). */
iso_err names_take(struct names *names, const struct config *config) ISO_MUST_USE;
void names_keep(struct names *names, const struct config *config);
const struct resolve *names_resolve(const struct names *names);

#endif
