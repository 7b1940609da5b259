/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command and hands the arguments over. */
#include "cli/cmd.h"

#include "core/check.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"proxy", cmd_proxy, "spread HTTP requests over targets, without a file"},
    {"serve", cmd_serve, "serve what a configuration file describes"},
    {"upgrade", cmd_upgrade, "replace a running process by a new one without losing a request"},
    {"check", cmd_check, "check a configuration file: every fault at once"},
    {"churn", cmd_churn, "how many keys a change of the targets would move"},
    {"ctl", cmd_ctl, "ask or change a running process through its API"},
    {"explain", cmd_explain, "what would become of a request, and why"},
    {"l4", cmd_l4, "the packet tier: XDP, Maglev, direct return"},
    {"size", cmd_size, "how many machines a load needs"},
};

static void print_help(FILE *out)
{
    fputs("usage: isobar COMMAND [options]\n\nIsobar, a load balancer.\n\n", out);
    for (size_t i = 0; i < iso_countof(commands); i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
    fputs("\nisobar COMMAND --help tells all about a command; isobar --version prints the version.\n", out);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < iso_countof(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("isobar " ISOBAR_VERSION);
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (name[0])
        fprintf(stderr, "isobar: no command \"%s\"\n\n", name);
    print_help(stderr);
    return 2;
}
