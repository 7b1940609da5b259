/* SPDX-License-Identifier: Apache-2.0 */
/* From a file or text to a validated configuration. */
#ifndef ISOBAR_CONFIG_LOAD_H
#define ISOBAR_CONFIG_LOAD_H

#include "config/model.h"
#include "doc/doc.h"

/* A configuration and the document that it was decoded from. */
struct config_source {
    struct config *config;
    struct doc doc;
    char *base_dir; /* where relative paths of the document begin */
};

/* As config_load_file(), with the document, which keeps the places of its values. Owns: the caller, until
 * config_source_fini(). */
iso_err config_open_file(const char *path, struct config_source *out, struct iso_diag *diag) ISO_MUST_USE;
/* What was taken out of it (config NULL, doc zeroed) is left alone. */
void config_source_fini(struct config_source *source);
/* Reads, decodes and validates; every fault found goes into `diag` with file, line, column and path. On
 * success
 * `*config` is owned by the caller until config_free(); on ISO_ERR_INVALID nothing is returned and
 * diag->errors > 0. Relative paths in the file are relative to its folder. Touches nothing but the file (case
 * C-127). Threads: any. */
iso_err config_load_file(const char *path, struct config **config, struct iso_diag *diag) ISO_MUST_USE;
/* The same from text; `name` stands in messages, and a text whose name ends in .json is read as JSON, every
 * other as YAML. `base_dir` resolves relative paths. */
iso_err config_load_text(struct slice text, const char *name, const char *base_dir, struct config **config,
                         struct iso_diag *diag) ISO_MUST_USE;
/* The same from a document that was built otherwise (flags of a command, a request's body). */
iso_err config_load_doc(struct doc *doc, const char *base_dir, struct config **config) ISO_MUST_USE;
/* The same from a document that `before` was decoded from, changed since by steps of doc/doc_edit.h: what
 * they did not touch is taken from there, so that it is neither decoded nor validated again. NULL: all is. */
iso_err config_load_again(struct doc *doc, const char *base_dir, const struct config *before,
                          struct config **config) ISO_MUST_USE;
/* One more holder, who calls config_free() too. Threads: control. */
struct config *config_share(struct config *config);
void config_free(struct config *config);

#endif
