/* SPDX-License-Identifier: Apache-2.0 */
/* What no single value shows: names that are taken, references to what is not there, rules that contradict
 * each other, groups that cannot take work. */
#ifndef ISOBAR_CONFIG_VALIDATE_H
#define ISOBAR_CONFIG_VALIDATE_H

#include "config/model.h"
#include "doc/doc.h"

/* Completes a decoded config (names of endpoints and listeners, indexes of target groups) and reports faults
 * to doc->diag at their places in `doc`, from which `config` was decoded. */
void validate_config(struct config *config, struct doc *doc);

#endif
