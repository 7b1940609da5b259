/* SPDX-License-Identifier: Apache-2.0 */
/* From the targets of a configuration, some of which are names, to those that a snapshot balances over: each
 * address of a name is a target of its own, called NAME/ADDRESS, so that two names with the same address are
 * two targets, as configured, and a target keeps its identity while its name's other addresses change. A
 * group without names is taken as it is. Threads: control. Source: C-116, C-119. */
#ifndef ISOBAR_SNAPSHOT_TARGETS_H
#define ISOBAR_SNAPSHOT_TARGETS_H

#include "config/model.h"
#include "net/resolve.h"

static inline bool target_is_name(const struct config_target *target)
{
    return target->host.ptr || target->srv.ptr;
}

/* The name as the resolver knows it. The target must be one. */
struct resolve_name target_name(const struct config_target *target);

/* The targets of a group, and how many there are. A name without an address has none, and without `resolve`
 * no name has one. Owns: the configuration or the arena. */
uint32_t targets_expand(const struct config *config, const struct config_target_group *group,
                        const struct resolve *resolve, struct arena *arena, const struct config_target **out);

/* Every name that the targets of a configuration have, and how many; some may stand there twice. */
uint32_t targets_names(const struct config *config, struct arena *arena, const struct resolve_name **out);
/* How they are to be resolved. Borrows from the arena. */
struct resolve_settings targets_resolve_settings(const struct config *config, struct arena *arena);

#endif
