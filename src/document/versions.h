/* SPDX-License-Identifier: Apache-2.0 */
/* The last versions of the configuration, in memory: as many as fit into a number and a size. What versions
 * have in common is there once (doc/printed.h); a version counts with what the one before did not have, so
 * that all together take no more than the size and one document. */
#ifndef ISOBAR_DOCUMENT_VERSIONS_H
#define ISOBAR_DOCUMENT_VERSIONS_H

#include "document/document.h"

enum { VERSIONS_MAX = 100, VERSIONS_BYTES = 64 << 20 };

struct versions {
    struct version_info all[VERSIONS_MAX]; /* owns the texts; newest last */
    size_t n, bytes;
};

void versions_init(struct versions *versions);
void versions_fini(struct versions *versions);
/* Copies; what is oldest goes when there is no room. The newest is always kept. */
void versions_add(struct versions *versions, const struct version_info *version);
/* NULL: not known, or no longer. */
const struct version_info *versions_find(const struct versions *versions, uint64_t number);

#endif
