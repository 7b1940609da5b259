/* SPDX-License-Identifier: Apache-2.0 */
/* The packet tier's tunnel ends in this process's machine, as the configuration's decap section says: the
 * program is attached while the process serves. Threads: control. Source: I3. */
#ifndef ISOBAR_PROCESS_DECAP_H
#define ISOBAR_PROCESS_DECAP_H

#include "config/model.h"
#include "core/diag.h"
#include "core/err.h"

struct decap;

struct decap *decap_new(void);
/* Attaches what `config` asks for, where it is not attached already. On an error what was attached before
 * still is. Until decap_settle() what another configuration had attached stays too. */
iso_err decap_apply(struct decap *decap, const struct config *config, struct iso_diag *diag) ISO_MUST_USE;
/* `config` is in force: detaches what it does not ask for. */
void decap_settle(struct decap *decap, const struct config *config);
/* The process ends; with `is_succeeded` another one has taken the program over. Takes *decap. */
void decap_free(struct decap **decap, bool is_succeeded);

#endif
