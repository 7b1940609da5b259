/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `isobar l4` that look at, or touch, what is pinned; each is called like a command. */
#ifndef ISOBAR_CLI_CMD_L4_H
#define ISOBAR_CLI_CMD_L4_H

#include "core/diag.h"

int cmd_l4_status(int argc, char **argv);
int cmd_l4_vips(int argc, char **argv);
int cmd_l4_counters(int argc, char **argv);
int cmd_l4_flows(int argc, char **argv);
int cmd_l4_lookup(int argc, char **argv);
int cmd_l4_explain(int argc, char **argv);
int cmd_l4_sample(int argc, char **argv);
int cmd_l4_decap(int argc, char **argv);
int cmd_l4_detach(int argc, char **argv);

#endif
