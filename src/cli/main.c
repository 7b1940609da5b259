/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command and hands the arguments over. */
#include "cli/cmd.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "check") == 0)
        return cmd_check(argc - 1, argv + 1);
    fputs("usage: isobar check FILE...\n", stderr);
    return 2;
}
