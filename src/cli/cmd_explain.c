/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar explain URL`: what would become of a request under a configuration file, without serving it: no
 * socket is opened, nothing is checked or sent. Every enabled target counts as healthy and idle. */
#include "cli/cmd.h"

#include "compile/build.h"
#include "core/clock.h"
#include "explain/explain.h"
#include "guard/crypt_thread.h"
#include "process/process.h"
#include "snapshot/targets.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

const char cmd_explain_help[] =
    "usage: isobar explain URL --config FILE [options]\n"
    "\n"
    "Says what would become of a request: the listener that takes it, the rule that does and why others do\n"
    "not, affinity, the balancing method, every candidate with its state and share, and the target.\n"
    "\n"
    "URL is what the client asks for: http://shop.example:8080/cart?id=1, https://..., or tcp://HOST:PORT "
    "for "
    "a\n"
    "TCP listener. Its port, and its host when that is an address, name the listener.\n"
    "\n"
    "  -c, --config FILE      the configuration; enabled targets count as healthy and idle\n"
    "  -X, --method METHOD    (GET)\n"
    "  -H, --header 'N: V'    a field of the request; may be repeated\n"
    "      --from ADDRESS     the client's IP address (127.0.0.1)\n"
    "      --via ADDRESS      the proxy that tells it by the PROXY protocol\n"
    "      --listener NAME    the listener, when the URL does not tell\n"
    "      --json             as one JSON object\n"
    "  -h, --help             this text\n"
    "\n"
    "A method that takes turns or draws is shown by the shares of its targets; one that hashes by the "
    "target\n"
    "and where retries would go.\n"
    "\n"
    "Exit status: 0 explained, 1 the file has an error or no listener fits, 2 called wrongly.\n";

enum { HEADERS_MAX = 128 };

struct question {
    const char *config;
    struct explain_query query;
    struct config_pair headers[HEADERS_MAX];
    bool as_json;
};

/* Nobody checks targets here, so they are as good as they can be. */
static void assume_healthy(const struct snapshot *snapshot)
{
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        for (uint32_t t = 0; t < snapshot->groups[g].n_targets; t++)
            atomic_store_explicit(&snapshot->groups[g].targets[t]->health.state,
                                  snapshot->groups[g].settings[t].enabled ? TARGET_ACTIVE : TARGET_DRAINING,
                                  memory_order_relaxed);
}

/* Without asking name servers, their addresses are unknown. */
static void warn_of_names(const struct config *config)
{
    for (uint32_t g = 0; g < config->n_target_groups; g++)
        for (uint32_t t = 0; t < config->target_groups[g].n_targets; t++)
            if (target_is_name(&config->target_groups[g].targets[t]))
                fprintf(stderr,
                        "isobar explain: target group %.*s: %.*s is a name, which is not resolved here and "
                        "counts as no target\n",
                        SLICE_ARG(config->target_groups[g].name),
                        SLICE_ARG(config->target_groups[g].targets[t].endpoint.text));
}

/* Asks, and once more where a password had to be compared. */
static iso_err ask(struct explain_query *query, const struct snapshot *snapshot, struct explain *answer,
                   struct iso_diag *diag)
{
    uint64_t now_ns = clock_mono_ns(), wall_ns = clock_wall_ns();
    iso_err err = explain_request(snapshot, query, now_ns, wall_ns, answer, diag);
    if (err || !answer->asks)
        return err;
    query->compared = answer->asks;
    query->is_match = crypt_compare(answer->password.password, answer->password.hash);
    explain_fini(answer);
    return explain_request(snapshot, query, now_ns, wall_ns, answer, diag);
}

static iso_err explain(struct question *question, const struct snapshot *snapshot, struct iso_diag *diag)
{
    struct explain *answer = malloc(sizeof(*answer));
    struct text out;
    iso_assert(answer != NULL);
    iso_err err = ask(&question->query, snapshot, answer, diag);
    text_init(&out);
    if (!err && question->as_json)
        explain_write_json(answer, &out);
    else if (!err)
        explain_write_text(answer, &out);
    if (out.len)
        fputs(out.data, stdout);
    text_fini(&out);
    explain_fini(answer);
    free(answer);
    return err;
}

static int run(struct question *question)
{
    struct iso_diag diag;
    struct config *config = NULL;
    struct snapshot *snapshot = NULL;
    struct registry *registry = registry_new_detached(1);
    diag_init(&diag);
    iso_err err = config_load_file(question->config, &config, &diag);
    if (!err)
        err = snapshot_build(&config,
                             &(struct snapshot_parts){.registry = registry, .n_workers = 1, .version = 1},
                             &snapshot, &diag);
    if (!err) {
        assume_healthy(snapshot);
        warn_of_names(snapshot->config);
        err = explain(question, snapshot, &diag);
    }
    if (err)
        diag_print(&diag);
    if (snapshot)
        snapshot_free(snapshot, registry);
    config_free(config);
    registry_free(registry);
    diag_fini(&diag);
    return err ? 1 : 0;
}

static int wrong_usage(const char *why)
{
    fprintf(stderr, "isobar explain: %s; see isobar explain --help\n", why);
    return 2;
}

static const char *take_header(struct question *question, struct slice text)
{
    size_t colon = slice_find(text, ':');
    if (colon == text.len)
        return "--header is expected as 'Name: value'";
    if (question->query.n_headers == HEADERS_MAX)
        return "too many --header";
    question->headers[question->query.n_headers++] = (struct config_pair){
        slice_of(text.ptr, colon), slice_trim(slice_of(text.ptr + colon + 1, text.len - colon - 1))};
    return NULL;
}

int cmd_explain(int argc, char **argv)
{
    enum { FROM = 256, VIA, LISTENER, JSON };
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"method", required_argument, NULL, 'X'},
                                            {"header", required_argument, NULL, 'H'},
                                            {"from", required_argument, NULL, FROM},
                                            {"via", required_argument, NULL, VIA},
                                            {"listener", required_argument, NULL, LISTENER},
                                            {"json", no_argument, NULL, JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct question question = {.query.from = {.family = 4, .bytes = {127, 0, 0, 1}}};
    question.query.headers = question.headers;
    for (int c; (c = getopt_long(argc, argv, "c:X:H:h", options, NULL)) != -1;) {
        const char *wrong = NULL;
        switch (c) {
        case 'c':
            question.config = optarg;
            break;
        case 'X':
            question.query.method = slice_str(optarg);
            break;
        case 'H':
            wrong = take_header(&question, slice_str(optarg));
            break;
        case FROM:
            if (!ip_parse(slice_str(optarg), &question.query.from))
                wrong = "--from is expected to be an IP address";
            break;
        case VIA:
            if (!ip_parse(slice_str(optarg), &question.query.via))
                wrong = "--via is expected to be an IP address";
            break;
        case LISTENER:
            question.query.listener = slice_str(optarg);
            break;
        case JSON:
            question.as_json = true;
            break;
        case 'h':
            fputs(cmd_explain_help, stdout);
            return 0;
        default:
            wrong = "unknown option";
        }
        if (wrong)
            return wrong_usage(wrong);
    }
    if (optind + 1 != argc)
        return wrong_usage("one URL is needed");
    if (!question.config)
        return wrong_usage("--config FILE is needed");
    question.query.url = slice_str(argv[optind]);
    return run(&question);
}
