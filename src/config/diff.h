/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two configurations, object by object, in words for a log or an answer of the API.
 * Objects are told apart by their names, targets by their endpoints; the order of a file does not matter for
 * them. */
#ifndef ISOBAR_CONFIG_DIFF_H
#define ISOBAR_CONFIG_DIFF_H

#include "config/model.h"

enum config_change_kind { CONFIG_ADDED, CONFIG_REMOVED, CONFIG_CHANGED };

struct config_change {
    struct config_change *next;
    enum config_change_kind kind;
    const char *object; /* "target_groups/web"; "config" for the keys at the top of the document */
    const char
        *what; /* "algorithm random -> maglev; targets +10.0.0.3:80 -10.0.0.2:80"; "added"; "removed" */
};

/* The changes that lead from one to the other, in the order of the schema; NULL: they mean the same. Owns:
 * the arena. Threads: any. */
const struct config_change *config_diff(const struct config *from, const struct config *to,
                                        struct arena *arena);

#endif
