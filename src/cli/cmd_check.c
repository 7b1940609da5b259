/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar check FILE...`: reads configurations as `serve` would and says what is wrong with them. Nothing but
 * the files, and the certificates they name, is touched, so it may run beside a serving process, as another
 * user and without a network (C-127). */
#include "cli/cmd.h"

#include "compile/snapshot_tls.h"
#include "config/docs.h"
#include "config/load.h"
#include "core/text.h"
#include "store/store.h"

#include <getopt.h>
#include <stdio.h>

const char cmd_check_help[] =
    "usage: isobar check [--format text|json] FILE...\n"
    "       isobar check --reference\n"
    "\n"
    "Reads each configuration file (YAML or JSON) and reports every fault in it, one a line:\n"
    "\n"
    "    FILE:LINE:COLUMN: PATH: what is wrong, what was expected\n"
    "\n"
    "PATH names the value in the document (/target_groups/0/targets/1/port). Errors and warnings go to\n"
    "stderr; for a file without errors one line on stdout says what it holds. Nothing but the files\n"
    "and the certificates they name is read, nothing is changed, and no name is resolved. FILE may be "
    "/dev/stdin.\n"
    "\n"
    "options:\n"
    "  --format text|json   json: one JSON document on stdout, with all files and their faults\n"
    "  --reference          print every key with its values and default, as Markdown\n"
    "  -h, --help           this text\n"
    "\n"
    "exit status: 0 no file has an error (warnings may be there), 1 one has, 2 called wrongly\n"
    "\n"
    "All keys and their defaults: docs/configuration.md. Serving a file: isobar serve --config FILE.\n";

struct totals {
    uint32_t load_balancers, listeners, target_groups, targets;
};

static struct totals count(const struct config *config)
{
    struct totals totals = {.load_balancers = config->n_load_balancers,
                            .target_groups = config->n_target_groups};
    for (uint32_t i = 0; i < config->n_load_balancers; i++)
        totals.listeners += config->load_balancers[i].n_listeners;
    for (uint32_t i = 0; i < config->n_target_groups; i++)
        totals.targets += config->target_groups[i].n_targets;
    return totals;
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

static void print_summary(const char *file, const struct config *config)
{
    struct totals t = count(config);
    printf("%s: ok: %u load balancer%s, %u listener%s, %u target group%s, %u target%s\n", file,
           t.load_balancers, plural(t.load_balancers), t.listeners, plural(t.listeners), t.target_groups,
           plural(t.target_groups), t.targets, plural(t.targets));
}

static void add_json(struct text *out, const char *file, const struct config *config,
                     const struct iso_diag *diag)
{
    text_printf(out, "{\"file\":");
    text_json(out, slice_str(file));
    text_printf(out, ",\"ok\":%s,\"errors\":%u,\"warnings\":%u", config ? "true" : "false", diag->errors,
                diag->warnings);
    if (config) {
        struct totals t = count(config);
        text_printf(out, ",\"load_balancers\":%u,\"listeners\":%u,\"target_groups\":%u,\"targets\":%u",
                    t.load_balancers, t.listeners, t.target_groups, t.targets);
    }
    text_printf(out, ",\"faults\":[");
    for (const struct diag_entry *entry = diag->first; entry; entry = entry->next) {
        text_printf(out, "%s{\"severity\":\"%s\",\"line\":%u,\"column\":%u,\"path\":",
                    entry == diag->first ? "" : ",", entry->severity == DIAG_ERROR ? "error" : "warning",
                    entry->line, entry->column);
        text_json(out, slice_str(entry->path));
        text_printf(out, ",\"message\":");
        text_json(out, slice_str(entry->message));
        text_printf(out, "}");
    }
    text_printf(out, "]}");
}

/* Reports to stderr and stdout, or into `json`. True when the file has no error. */
static bool check_file(const char *file, struct text *json)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    bool ok = config_load_file(file, &config, &diag) == ISO_OK &&
              snapshot_check_tls(config, &diag) == ISO_OK && store_check(&config->store, &diag) == ISO_OK;
    diag_sort(&diag);
    if (!ok) {
        config_free(config);
        config = NULL;
    }
    if (json) {
        if (json->len > 1)
            text_printf(json, ",");
        add_json(json, file, config, &diag);
    } else {
        diag_print(&diag);
        if (ok)
            print_summary(file, config);
    }
    config_free(config);
    diag_fini(&diag);
    return ok;
}

static int print_reference(void)
{
    struct text reference;
    text_init(&reference);
    config_write_reference(&reference);
    fputs(reference.data, stdout);
    text_fini(&reference);
    return 0;
}

int cmd_check(int argc, char **argv)
{
    static const struct option options[] = {{"format", required_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"reference", no_argument, NULL, 'r'},
                                            {0}};
    bool as_json = false;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(cmd_check_help, stdout);
            return 0;
        }
        if (option == 'r')
            return print_reference();
        if (option != 'f')
            return 2;
        as_json = strcmp(optarg, "json") == 0;
        if (!as_json && strcmp(optarg, "text") != 0) {
            fprintf(stderr, "isobar check: --format is \"%s\", expected text or json\n", optarg);
            return 2;
        }
    }
    if (optind == argc) {
        fputs("isobar check: no FILE was given; see isobar check --help\n", stderr);
        return 2;
    }

    struct text json;
    text_init(&json);
    text_printf(&json, "[");
    bool ok = true;
    for (int i = optind; i < argc; i++)
        ok &= check_file(argv[i], as_json ? &json : NULL);
    if (as_json)
        printf("%s]\n", json.data);
    text_fini(&json);
    return ok ? 0 : 1;
}
