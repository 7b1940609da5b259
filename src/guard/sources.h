/* SPDX-License-Identifier: Apache-2.0 */
/* Which client addresses are let in, by two lists of prefixes. The longest prefix that has an address
 * decides, a denied one before an allowed one of the same length; an address that none has is let in unless
 * there is a list of allowed ones. Clients of unix sockets have no address: they are let in, their file
 * decides. Compiled into ranges when the snapshot is built, so that lists of many thousand prefixes cost a
 * few comparisons. */
#ifndef ISOBAR_GUARD_SOURCES_H
#define ISOBAR_GUARD_SOURCES_H

#include "config/model.h"
#include "core/arena.h"

struct sources;

/* NULL: both lists are empty, everybody is let in. Threads: control. */
const struct sources *sources_compile(const struct config_sources *config, struct arena *arena);
/* Threads: any. */
bool sources_allow(const struct sources *sources, const struct ip_addr *addr);

#endif
