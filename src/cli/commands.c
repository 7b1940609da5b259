/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd.h"

#include "core/check.h"

const struct cmd cmds[] = {
    {"proxy", cmd_proxy, "spread HTTP requests over targets, without a file", cmd_proxy_help},
    {"serve", cmd_serve, "serve what a configuration file describes", cmd_serve_help},
    {"upgrade", cmd_upgrade, "replace a running process by a new one without losing a request",
     cmd_upgrade_help},
    {"check", cmd_check, "check a configuration file: every fault at once", cmd_check_help},
    {"ctl", cmd_ctl, "ask or change a running process through its API", cmd_ctl_help},
    {"explain", cmd_explain, "what would become of a request, and why", cmd_explain_help},
    {"churn", cmd_churn, "how many keys a change of the targets would move", cmd_churn_help},
    {"l4", cmd_l4, "the packet tier: XDP, Maglev, direct return", cmd_l4_help},
    {"size", cmd_size, "how many machines a load needs", cmd_size_help},
    {"completion", cmd_completion, "completions for bash and zsh", cmd_completion_help},
    {"help", cmd_help, "the help of a command, or the manual page", cmd_help_help},
};
const size_t cmds_n = iso_countof(cmds);
