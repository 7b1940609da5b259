/* SPDX-License-Identifier: Apache-2.0 */
/* The last document that was in force, in a file of this node: what it starts from while the store is away
 * (H3). A line that says version, length and hash, then the document. It is replaced as a whole (written
 * beside, fsync, renamed, fsync of the folder), so a crash leaves the old one or the new one. Writing happens
 * on a thread of its own; of several that wait only the newest is written. */
#ifndef ISOBAR_STORE_LAST_GOOD_H
#define ISOBAR_STORE_LAST_GOOD_H

#include "config/model.h"
#include "core/diag.h"
#include "core/text.h"
#include "net/loop.h"

struct last_good;
struct printed;

#define LAST_GOOD_DEFAULT "/var/lib/isobar/last-good.json"

/* Where `config` wants it; NULL: nowhere. The default is the file above for stores on other machines. */
const char *last_good_path(const struct config_store *config, struct arena *arena);

/* NULL with ISO_OK when none is wanted. `failures` counts copies that could not be written. */
iso_err last_good_open(const struct config_store *config, struct loop *loop, uint64_t *failures,
                       struct last_good **out) ISO_MUST_USE;
void last_good_write(struct last_good *good, uint64_t version, const struct printed *document);
/* Waits until the last one is written, or for some seconds; a disk that has not answered by then is named in
 * the log. */
void last_good_close(struct last_good **good);

/* Errors: ISO_ERR_NOT_FOUND; ISO_ERR_INVALID, reported with what is wrong with it. */
iso_err last_good_read(const char *path, uint64_t *version, struct text *document,
                       struct iso_diag *diag) ISO_MUST_USE;

#endif
