/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command and hands the arguments over. */
#include "cli/cmd.h"

#include "tls/library.h"
#include "tls/memory.h"

#include <stdio.h>
#include <string.h>

static void print_help(FILE *out)
{
    fputs("usage: isobar COMMAND [options]\n\nIsobar, a load balancer.\n\n", out);
    for (size_t i = 0; i < cmds_n; i++)
        fprintf(out, "  %-10s %s\n", cmds[i].name, cmds[i].what);
    fputs("\nisobar COMMAND --help tells all about a command; isobar --version prints the version.\n", out);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    tls_memory_install();
    bool asks_for_help =
        strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (strcmp(name, "help") == 0 && argc == 2);
    if (asks_for_help) {
        print_help(stdout);
        return 0;
    }
    for (size_t i = 0; i < cmds_n; i++)
        if (strcmp(name, cmds[i].name) == 0)
            return cmds[i].run(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("isobar " ISOBAR_VERSION " (%s)\n", tls_library_version());
        return 0;
    }
    if (name[0])
        fprintf(stderr, "isobar: no command \"%s\"\n\n", name);
    print_help(stderr);
    return 2;
}
