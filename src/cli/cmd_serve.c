/* SPDX-License-Identifier: Apache-2.0 */
/* isobar serve: the balancer by a configuration file. */
#include "cli/cmd.h"

#include "process/process.h"

#include <getopt.h>
#include <stdio.h>

const char cmd_serve_help[] =
    "usage: isobar serve --config FILE\n"
    "\n"
    "Serves what FILE (YAML or JSON) describes; docs/configuration.md lists every key.\n"
    "\n"
    "  -c, --config FILE   the configuration\n"
    "  -h, --help          this text\n"
    "\n"
    "Signals:\n"
    "  SIGHUP    reads FILE again. A wrong file changes nothing and the log says why; a right one is in "
    "force\n"
    "            for the next request, and no connection is cut.\n"
    "  SIGTERM   (also SIGINT) accepts no more connections, lets requests in flight finish for at most\n"
    "            shutdown_s, then exits. A second one exits at once.\n"
    "  SIGUSR2   starts the binary anew with the open sockets; once the new process serves, this one lets "
    "its\n"
    "            requests finish for at most shutdown_s and exits (isobar upgrade sends this signal and "
    "waits)\n"
    "  SIGUSR1   opens the access log again by its name, after a rotation.\n"
    "\n"
    "Exit status: 0 after a shutdown, 1 when it cannot start (every fault is printed), 2 for wrong usage.\n";

static iso_err load(void *source, struct config_source *out, struct iso_diag *diag)
{
    return config_open_file(source, out, diag);
}

int cmd_serve(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
    char *path = NULL;
    for (int c; (c = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(cmd_serve_help, stdout);
            return 0;
        }
        if (c != 'c') {
            fputs("see isobar serve --help\n", stderr);
            return 2;
        }
        path = optarg;
    }
    if (!path || optind < argc) {
        fputs("isobar serve: --config FILE is needed, and nothing else; see isobar serve --help\n", stderr);
        return 2;
    }
    return process_run(
        &(struct process_source){.load = load, .source = path, .name = path, .can_reload = true});
}
