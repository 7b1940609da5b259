/* SPDX-License-Identifier: Apache-2.0 */
/* isobar proxy: the balancer without any file. */
#include "cli/cmd.h"

#include "config/proxy_args.h"
#include "process/process.h"

#include <getopt.h>
#include <stdio.h>

const char cmd_proxy_help[] =
    "usage: isobar proxy --listen ADDRESS --to TARGET [--to TARGET ...] [options]\n"
    "\n"
    "Spreads HTTP requests over targets, without a configuration file.\n"
    "\n"
    "  -l, --listen ADDRESS     :8080 (all addresses), 127.0.0.1:8080, [::1]:8080 or unix:/path; may be "
    "repeated\n"
    "  -t, --to TARGET          HOST:PORT, :PORT (127.0.0.1), http://HOST[:PORT] or unix:/path; ,weight=N "
    "and\n"
    "                           ,backup may follow; a host name is resolved once\n"
    "  -a, --algorithm NAME     round_robin, weighted_round_robin, least_connections, p2c_least_request "
    "(default),\n"
    "                           random, ip_hash, consistent_hash or maglev\n"
    "      --health-path PATH   checks targets by GET PATH instead of by a TCP connection\n"
    "      --admin ADDRESS      metrics and health of this process (default 127.0.0.1:8443), or off\n"
    "      --workers N          threads that serve traffic (default: one per CPU)\n"
    "      --access-log FILE    one JSON line per request into FILE, or stdout\n"
    "  -h, --help               this text\n"
    "\n"
    "Exit status: 0 after SIGTERM or SIGINT, 1 when it cannot start, 2 for wrong usage.\n";

enum { MOST = 256 };

static iso_err load(void *source, struct config_source *out, struct iso_diag *diag)
{
    return config_for_proxy(source, out, diag);
}

static int wrong_usage(const char *why)
{
    fprintf(stderr, "isobar proxy: %s; see isobar proxy --help\n", why);
    return 2;
}

int cmd_proxy(int argc, char **argv)
{
    enum { HEALTH_PATH = 256, ADMIN, WORKERS, ACCESS_LOG };
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"to", required_argument, NULL, 't'},
                                            {"algorithm", required_argument, NULL, 'a'},
                                            {"health-path", required_argument, NULL, HEALTH_PATH},
                                            {"admin", required_argument, NULL, ADMIN},
                                            {"workers", required_argument, NULL, WORKERS},
                                            {"access-log", required_argument, NULL, ACCESS_LOG},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *listen[MOST], *to[MOST];
    struct config_proxy_args args = {.listen = listen, .to = to};
    for (int c; (c = getopt_long(argc, argv, "l:t:a:h", options, NULL)) != -1;) {
        switch (c) {
        case 'l':
            if (args.n_listen == MOST)
                return wrong_usage("too many --listen");
            listen[args.n_listen++] = optarg;
            break;
        case 't':
            if (args.n_to == MOST)
                return wrong_usage("too many --to");
            to[args.n_to++] = optarg;
            break;
        case 'a':
            args.algorithm = optarg;
            break;
        case HEALTH_PATH:
            args.health_path = optarg;
            break;
        case ADMIN:
            args.admin = optarg;
            break;
        case WORKERS:
            args.workers = optarg;
            break;
        case ACCESS_LOG:
            args.access_log = optarg;
            break;
        case 'h':
            fputs(cmd_proxy_help, stdout);
            return 0;
        default:
            return wrong_usage("unknown option");
        }
    }
    if (optind < argc)
        return wrong_usage("every argument belongs to an option");
    if (args.n_listen == 0 || args.n_to == 0)
        return wrong_usage("--listen and --to are needed");
    return process_run(&(struct process_source){.load = load, .source = &args, .name = "the command line"});
}
