/* SPDX-License-Identifier: Apache-2.0 */
/* The commands. Each gets its arguments with its own name first, prints its help for --help, and returns the
 * exit status of the process: 0 well, 1 it did not work, 2 it was called wrongly. */
#ifndef ISOBAR_CLI_CMD_H
#define ISOBAR_CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>

int cmd_check(int argc, char **argv);
int cmd_churn(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_l4(int argc, char **argv);
int cmd_proxy(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_size(int argc, char **argv);
int cmd_upgrade(int argc, char **argv);

/* The commands of ctl, by index from 0: false behind the last. */
bool cmd_ctl_find(size_t index, const char **name, const char **what, const char **help,
                  const char **arguments);

#endif
