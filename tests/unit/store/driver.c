/* SPDX-License-Identifier: Apache-2.0 */
/* A store at the end of a pipe, for tests that stop, pause and kill things (tests/net/test_store_*.py): one
 * command a line on stdin, one line for each answer and each event on stdout.
 *
 *     store_driver URL [KNOWN [LAST_GOOD [TIMEOUT_MS]]]
 *     commit EXPECTED TEXT WEIGHT [TARGETS [OTHERS]]   a document that says TEXT, with a group of TARGETS
 * targets, and OTHERS groups that are always the same load | get N | list [BELOW [LIMIT]] | keep VERSION TEXT
 * | status
 *
 *     done VERSION | conflict VERSION | not-found | unavailable REASON | in-doubt REASON
 *     version NUMBER WHO DIFF DOCUMENT        before the done of a load, a get or a list
 *     event changed VERSION | event up | event down REASON
 */
#include "config/load.h"
#include "printed_of.h"
#include "store/store.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct loop loop;
static struct store *store;
static struct loop_io input;
static char line[1 << 16];
static size_t line_len;
static struct config *in_force; /* of version in_force_version */
static uint64_t in_force_version;

struct asked {
    struct config *config; /* owns: of a commit */
};

static void print_version(const struct store_version *version)
{
    printf("version %" PRIu64 " %.*s %.*s %.*s\n", version->number, SLICE_ARG(version->who),
           SLICE_ARG(version->diff), SLICE_ARG(version->document));
}

static void keep_config(struct asked *asked, const struct store_answer *answer)
{
    if (asked->config && answer->outcome == STORE_DONE) {
        config_free(in_force);
        in_force = asked->config;
        in_force_version = answer->version;
        asked->config = NULL;
    }
    config_free(asked->config);
    free(asked);
}

static void on_answer(void *owner, const struct store_answer *answer)
{
    static const char *const words[] = {"done", "conflict", "not-found", "unavailable", "in-doubt"};
    for (uint32_t i = 0; i < answer->n_versions; i++)
        print_version(&answer->versions[i]);
    printf("%s", words[answer->outcome]);
    if (answer->outcome == STORE_DONE || answer->outcome == STORE_CONFLICT)
        printf(" %" PRIu64, answer->version);
    else if (answer->outcome != STORE_NOT_FOUND)
        printf(" %s", answer->reason);
    printf("\n");
    fflush(stdout);
    keep_config(owner, answer);
}

static void on_changed(void *owner, uint64_t version)
{
    printf("event changed %" PRIu64 "\n", version);
    fflush(stdout);
}

static void on_available(void *owner, bool is_available)
{
    printf(is_available ? "event up\n" : "event down %s\n", store_reason(store));
    fflush(stdout);
}

static void commit(const char *arguments, struct asked *asked)
{
    unsigned long expected, weight, targets = 2, others = 0;
    char word[4096];
    if (sscanf(arguments, "%lu %4095s %lu %lu %lu", &expected, word, &weight, &targets, &others) < 3)
        return;
    struct text document;
    struct iso_diag diag;
    text_init(&document);
    diag_init(&diag);
    text_printf(&document,
                "{\"target_groups\":[{\"name\":\"web\",\"health_check\":{\"type\":\"http\",\"path\":\"/"
                "%s\"},\"targets\":[",
                word);
    for (unsigned long i = 0; i < targets; i++)
        text_printf(&document, "%s{\"ip\":\"10.%lu.%lu.%lu\",\"port\":80,\"weight\":%lu}", i ? "," : "",
                    i >> 16 & 255, i >> 8 & 255, i & 255, weight);
    text_printf(&document, "]}");
    for (unsigned long i = 0; i < others; i++)
        text_printf(&document, ",{\"name\":\"other-%lu\",\"targets\":[{\"ip\":\"10.200.0.1\",\"port\":%lu}]}",
                    i, i + 1);
    text_printf(&document, "]}");
    struct printed *printed = printed_of(text_slice(&document));
    if (config_load_text(text_slice(&document), "driver.json", "/", &asked->config, &diag))
        abort();
    const struct store_change change = {.expected = expected,
                                        .who = SLICE("driver"),
                                        .diff = slice_str(word),
                                        .document = printed,
                                        .from = expected == in_force_version ? in_force : NULL,
                                        .to = asked->config};
    store_commit(store, &change, on_answer, asked);
    printed_unref(&printed);
    text_fini(&document);
    diag_fini(&diag);
}

static void status(void)
{
    const struct store_figures *f = store_figures(store);
    printf("status %s known %" PRIu64 " commits %" PRIu64 " conflicts %" PRIu64 " failures %" PRIu64
           " reconnects %" PRIu64 " last_good_failures %" PRIu64 " commit_ms_max %" PRIu64 "\n",
           store_is_available(store) ? "up" : "down", f->known, f->commits, f->conflicts, f->failures,
           f->reconnects, f->last_good_failures, f->commit_ns_max / 1000000);
    fflush(stdout);
}

static void keep(uint64_t number, struct slice json)
{
    struct printed *printed = printed_of(json);
    store_keep_good(store, number, printed);
    printed_unref(&printed);
}

static void obey(const char *command)
{
    uint64_t number = 0;
    unsigned limit = 100;
    char word[4096];
    struct asked *asked = calloc(1, sizeof(*asked));
    if (strncmp(command, "commit ", 7) == 0) {
        commit(command + 7, asked);
    } else if (strcmp(command, "load") == 0) {
        store_load(store, on_answer, asked);
    } else if (sscanf(command, "get %" SCNu64, &number) == 1) {
        store_get(store, number, on_answer, asked);
    } else if (strncmp(command, "list", 4) == 0) {
        sscanf(command, "list %" SCNu64 " %u", &number, &limit);
        store_list(store, number, limit, on_answer, asked);
    } else {
        if (sscanf(command, "keep %" SCNu64 " %4095s", &number, word) == 2)
            keep(number, slice_str(word));
        else if (strcmp(command, "status") == 0)
            status();
        free(asked);
    }
}

static void on_input(struct loop *l, struct loop_io *io, uint32_t events)
{
    ssize_t n = read(0, line + line_len, sizeof(line) - line_len - 1);
    if (n <= 0) {
        loop_stop(&loop);
        return;
    }
    line_len += (size_t)n;
    line[line_len] = 0;
    char *from = line;
    for (char *end; (end = strchr(from, '\n')) != NULL; from = end + 1) {
        *end = 0;
        obey(from);
    }
    line_len = strlen(from);
    memmove(line, from, line_len + 1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const struct config_store config = {.url = slice_str(argv[1]),
                                        .last_good = argc > 3 ? slice_str(argv[3]) : SLICE("off"),
                                        .timeout_ms = argc > 4 ? (uint32_t)atoi(argv[4]) : 3000,
                                        .keep_versions = 20};
    const struct store_events events = {.on_changed = on_changed, .on_available = on_available};
    struct iso_diag diag;
    diag_init(&diag);
    signal(SIGPIPE, SIG_IGN);
    input = (struct loop_io){.fd = 0, .on_ready = on_input};
    if (loop_init(&loop) ||
        store_open(&config, argc > 2 ? strtoull(argv[2], NULL, 10) : 0, &loop, &events, &store, &diag))
        return 1;
    if (loop_arm_events(&loop, &input, EPOLLIN))
        return 1;
    loop_run(&loop);
    store_close(&store);
    loop_fini(&loop);
    config_free(in_force);
    diag_fini(&diag);
    return 0;
}
