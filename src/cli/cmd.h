/* SPDX-License-Identifier: Apache-2.0 */
/* The commands. Each gets its arguments with its own name first, prints its help for --help, and returns the
 * exit status of the process: 0 well, 1 it did not work, 2 it was called wrongly. The table in commands.c is
 * what main(), the manual page and the completions of shells are made from; what they say of options they
 * read in the help texts (help.h). */
#ifndef ISOBAR_CLI_CMD_H
#define ISOBAR_CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>

struct cmd {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what; /* in a few words */
    const char *help; /* all of it */
};

extern const struct cmd cmds[];
extern const size_t cmds_n;

int cmd_check(int argc, char **argv);
int cmd_churn(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_l4(int argc, char **argv);
int cmd_proxy(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_size(int argc, char **argv);
int cmd_upgrade(int argc, char **argv);

extern const char cmd_check_help[], cmd_churn_help[], cmd_completion_help[], cmd_ctl_help[],
    cmd_explain_help[], cmd_help_help[], cmd_l4_help[], cmd_proxy_help[], cmd_serve_help[], cmd_size_help[],
    cmd_upgrade_help[];

/* The commands of ctl, by index from 0: false behind the last. */
bool cmd_ctl_find(size_t index, const char **name, const char **what, const char **help,
                  const char **arguments);

#endif
