/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar ctl`: the API from the command line. This file knows the commands and their options; each command
 * is a function of its own in ctl_*.c. */
#include "cli/cmd.h"

#include "ctl/ctl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

const char cmd_ctl_help[] =
    "usage: isobar ctl COMMAND [options]\n"
    "\n"
    "Asks or changes a running isobar through the API of its admin listener.\n"
    "\n"
    "options of every command:\n"
    "  -a, --admin ADDRESS    HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:/path\n"
    "                         (ISOBAR_ADMIN, or 127.0.0.1:8443)\n"
    "      --token-file FILE  the first word in it is the token (ISOBAR_TOKEN has the token itself,\n"
    "                         ISOBAR_TOKEN_FILE such a file)\n"
    "      --ca-file FILE     whose signature counts for https (the system's authorities)\n"
    "      --json             print what the API answers, one line of JSON, for programs\n"
    "  -h, --help             this text, or that of a command\n"
    "\n"
    "exit status: 0 done, 1 diff: there are differences (drain --wait: it still has requests), 2 called "
    "wrongly,\n"
    "3 the API refused, 4 no answer\n";

struct command {
    const char *name;
    ctl_fn *run;
    const char *arguments, *what;
    const char *options; /* that it has beside those of all, by their letters in the table below */
    const char *help;
};

static const struct command commands[] = {
    {"get", ctl_get, "PATH [NAME ...]", "one resource of the API", "",
     "PATH is what stands behind /v1/ (target-groups/web), or a whole path (/api/config). Further arguments\n"
     "are one name each: get target-groups web targets 10.0.0.1:80\n"},
    {"list", ctl_list, "PATH [NAME ...] [KEY=VALUE ...]", "a list of resources, all pages", "g",
     "PATH is load-balancers, certificates, target-groups, target-groups/web/targets, versions ..., or "
     "servers:\n"
     "the targets of a group (--group) with live figures. KEY=VALUE filters: list servers status=unhealthy\n"
     "  -g, --group NAME       of servers: the target group (the first)\n"},
    {"apply", ctl_apply, "FILE", "puts a configuration file in force", "dv",
     "FILE (YAML, or JSON when its name ends in .json; - is standard input) replaces the configuration. What "
     "it\n"
     "does not change goes on untouched. admin and store stay as the node's own file has them.\n"
     "      --dry-run          only say what would change\n"
     "      --if-version N     only when version N is in force\n"},
    {"diff", ctl_diff, "FILE", "what apply would change, and what that means for traffic", "",
     "Status 1 when there are differences.\n"},
    {"export", ctl_export, "[FILE]", "the configuration in force, as a file", "s",
     "Applying what was exported changes nothing. Secrets are in it, so it needs a token of role admin.\n"
     "      --no-secrets       with <secret> in their place; where it is applied they stay as they are\n"},
    {"drain", ctl_drain, "GROUP TARGET", "no new requests to a target; those it has finish", "dw",
     "      --wait SECONDS     until it has none left, at most so long\n"
     "      --dry-run          only say what would change\n"},
    {"enable", ctl_enable, "GROUP TARGET", "requests to a target again", "d",
     "      --dry-run          only say what would change\n"},
    {"weight", ctl_weight, "GROUP TARGET N", "gives a target another weight", "d",
     "      --dry-run          only say what would change\n"},
    {"versions", ctl_versions, "[VERSION]", "the history of changes: who, when, what", "", ""},
    {"rollback", ctl_rollback, "VERSION", "an earlier configuration, as a new version", "d",
     "      --dry-run          only say what would change\n"},
    {"sessions", ctl_sessions, "ADDRESS|ID", "the target a client is bound to", "ge",
     "  -g, --group NAME       the target group (the first)\n"
     "      --end              let the client go: its next request is routed anew\n"},
    {"explain", ctl_explain, "URL", "what would become of a request now, and why", "XHfVl",
     "  -X, --method METHOD    (GET)\n"
     "  -H, --header 'N: V'    a field of the request; may be repeated\n"
     "      --from ADDRESS     the client's IP address (127.0.0.1)\n"
     "      --via ADDRESS      the proxy that tells it by the PROXY protocol\n"
     "      --listener NAME    the listener, when the URL does not tell\n"
     "Of a file, without a running process: isobar explain.\n"},
    {"metrics", ctl_metrics, "[GROUP]", "rates of a target group and its targets, and the last hour", "gr",
     "  -g, --group NAME       the target group (the first)\n"
     "      --prometheus       the metrics page as Prometheus gets it\n"},
    {"top", ctl_top, "[GROUP]", "all targets with live figures, again and again", "gin",
     "  -g, --group NAME       only this target group\n"
     "      --interval SECONDS (2)\n"
     "      --once             print once; so it does when it does not write to a terminal\n"},
};

enum { ADMIN = 'a', TOKEN_FILE = 't', CA_FILE = 'c', JSON = 'j' };

static const struct option options[] = {{"admin", required_argument, NULL, ADMIN},
                                        {"token-file", required_argument, NULL, TOKEN_FILE},
                                        {"ca-file", required_argument, NULL, CA_FILE},
                                        {"json", no_argument, NULL, JSON},
                                        {"help", no_argument, NULL, 'h'},
                                        {"group", required_argument, NULL, 'g'},
                                        {"dry-run", no_argument, NULL, 'd'},
                                        {"if-version", required_argument, NULL, 'v'},
                                        {"wait", required_argument, NULL, 'w'},
                                        {"end", no_argument, NULL, 'e'},
                                        {"method", required_argument, NULL, 'X'},
                                        {"header", required_argument, NULL, 'H'},
                                        {"from", required_argument, NULL, 'f'},
                                        {"via", required_argument, NULL, 'V'},
                                        {"listener", required_argument, NULL, 'l'},
                                        {"prometheus", no_argument, NULL, 'r'},
                                        {"interval", required_argument, NULL, 'i'},
                                        {"once", no_argument, NULL, 'n'},
                                        {"no-secrets", no_argument, NULL, 's'},
                                        {0}};

bool cmd_ctl_find(size_t index, const char **name, const char **what, const char **help,
                  const char **arguments)
{
    if (index >= iso_countof(commands))
        return false;
    *name = commands[index].name;
    *what = commands[index].what;
    *help = commands[index].help;
    *arguments = commands[index].arguments;
    return true;
}

static void print_help(FILE *out)
{
    fputs(cmd_ctl_help, out);
    fputs("\ncommands:\n", out);
    for (size_t i = 0; i < iso_countof(commands); i++)
        fprintf(out, "  %-9s %-32s %s\n", commands[i].name, commands[i].arguments, commands[i].what);
    fputs("\nisobar ctl COMMAND --help tells the options of one.\n", out);
}

static int print_command_help(const struct command *command)
{
    char first = command->what[0];
    printf("usage: isobar ctl %s %s [options]\n\n%c%s.\n\n%s", command->name, command->arguments,
           first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first, command->what + 1, command->help);
    printf("  -a, --admin ADDRESS, --token-file FILE, --ca-file FILE, --json: as of every command, see "
           "isobar ctl "
           "--help\n  -h, --help             this text\n");
    return CTL_OK;
}

/* The first word of the file; NULL after a message. */
static char *read_token(const char *path)
{
    static char token[512];
    FILE *file = fopen(path, "r");
    int n = file ? fscanf(file, "%511s", token) : 0;
    if (file)
        fclose(file);
    if (n == 1)
        return token;
    fprintf(stderr, "isobar ctl: no token could be read from %s\n", path);
    return NULL;
}

/* A token must not break out of its header field. */
static bool is_token(const char *token)
{
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return token[0] != '\0';
}

static bool find_token(struct ctl *ctl, const char *file)
{
    const char *env = getenv("ISOBAR_TOKEN");
    if (!file && !(env && env[0]))
        file = getenv("ISOBAR_TOKEN_FILE");
    ctl->client.token = file && file[0] ? read_token(file) : env && env[0] ? env : NULL;
    if (file && file[0] && !ctl->client.token)
        return false;
    if (!ctl->client.token || is_token(ctl->client.token))
        return true;
    fputs("isobar ctl: the token has characters that no token has\n", stderr);
    return false;
}

static bool take_seconds(const char *text, uint32_t *out)
{
    uint64_t value;
    if (!slice_u64(slice_str(text), &value) || value == 0 || value > 86400)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* NULL, or what is wrong. */
static const char *take_option(struct ctl *ctl, int option, const char **token_file)
{
    switch (option) {
    case ADMIN:
        ctl->client.address = optarg;
        break;
    case TOKEN_FILE:
        *token_file = optarg;
        break;
    case CA_FILE:
        ctl->client.ca_file = optarg;
        break;
    case JSON:
        ctl->json = true;
        break;
    case 'g':
        ctl->group = optarg;
        break;
    case 'd':
        ctl->dry_run = true;
        break;
    case 'v':
        ctl->version = optarg;
        return optarg[strspn(optarg, "0123456789")] || !optarg[0] ? "--if-version is expected to be a number"
                                                                  : NULL;
    case 'w':
        return take_seconds(optarg, &ctl->wait_s) ? NULL : "--wait is expected to be seconds, 1 to 86400";
    case 'e':
        ctl->end = true;
        break;
    case 'X':
        ctl->method = optarg;
        break;
    case 'H':
        if (ctl->n_headers == CTL_HEADERS_MAX)
            return "too many --header";
        ctl->headers[ctl->n_headers++] = optarg;
        break;
    case 'f':
        ctl->from = optarg;
        break;
    case 'V':
        ctl->via = optarg;
        break;
    case 'l':
        ctl->listener = optarg;
        break;
    case 'r':
        ctl->raw = true;
        break;
    case 'i':
        return take_seconds(optarg, &ctl->interval_s) ? NULL
                                                      : "--interval is expected to be seconds, 1 to 86400";
    case 'n':
        ctl->once = true;
        break;
    case 's':
        ctl->no_secrets = true;
        break;
    }
    return NULL;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < iso_countof(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

int cmd_ctl(int argc, char **argv)
{
    const char *env = getenv("ISOBAR_ADMIN"), *token_file = NULL, *wrong = NULL;
    struct ctl ctl = {.client.address = env && env[0] ? env : "127.0.0.1:8443", .interval_s = 2};
    char seen[64] = "";
    bool wants_help = false;
    for (int c; (c = getopt_long(argc, argv, "a:g:X:H:h", options, NULL)) != -1;) {
        if (c == '?')
            return ctl_usage("unknown option, or one without its value");
        wants_help |= c == 'h';
        if (strlen(seen) + 1 < sizeof(seen) && !strchr(seen, c))
            seen[strlen(seen)] = (char)c;
        if (!wrong)
            wrong = take_option(&ctl, c, &token_file);
    }
    const struct command *command = optind < argc ? find_command(argv[optind]) : NULL;
    if (wants_help && !command) {
        print_help(stdout);
        return CTL_OK;
    }
    if (wants_help)
        return print_command_help(command);
    if (wrong)
        return ctl_usage("%s", wrong);
    if (!command && optind < argc)
        return ctl_usage("there is no command \"%s\"", argv[optind]);
    if (!command) {
        print_help(stderr);
        return CTL_USAGE;
    }
    for (const char *c = seen; *c; c++)
        if (!strchr("atcj", *c) && !strchr(command->options, *c))
            return ctl_usage("%s has no such option", command->name);
    if (!find_token(&ctl, token_file))
        return CTL_USAGE;
    ctl.argc = argc - optind - 1;
    ctl.argv = argv + optind + 1;
    return command->run(&ctl);
}
