/* SPDX-License-Identifier: Apache-2.0 */
/* ctl metrics and top: what target groups and their targets do now; top again and again, in place. */
#include "ctl/ctl.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static void add_group(const char *group, struct text *path)
{
    if (!group)
        return;
    text_printf(path, "?target_group=");
    client_add_segment(path, slice_str(group));
}

static double number(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = doc_get(map, key);
    return !node                       ? 0
           : node->kind == DOC_INTEGER ? (double)node->value.integer
           : node->kind == DOC_REAL    ? node->value.real
                                       : 0;
}

/* ---- metrics ---- */

/* Requests a second of the last hour as a line of bars, a minute each. */
static void print_history(const struct doc_node *points)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { PER_BAR = 6, BARS = 60 };
    double sums[BARS] = {0}, most = 0;
    uint32_t n = points ? points->n : 0, at = 0, n_bars = (n + PER_BAR - 1) / PER_BAR;
    if (n < 2)
        return;
    for (const struct doc_node *point = points->first; point && at / PER_BAR < BARS;
         point = point->next, at++)
        sums[at / PER_BAR] += number(point, "requests_per_sec") / PER_BAR;
    for (uint32_t i = 0; i < n_bars && i < BARS; i++)
        most = sums[i] > most ? sums[i] : most;
    printf("\nrequests/s, a bar a minute, at most %.1f: ", most);
    for (uint32_t i = 0; i < n_bars && i < BARS; i++)
        fputs(bars[most > 0 ? (int)(sums[i] / most * 7.0 + 0.5) : 0], stdout);
    printf("\n");
}

static void print_metrics(const struct doc_node *root)
{
    const char *titles[] = {"server", "requests/s", "active", "errors", "latency ms", "requests"};
    const struct doc_node *servers = doc_get(root, "requests_by_server");
    struct ctl_table table;
    struct text out;
    printf("target group %.*s: %.1f requests/s, %.0f active, %.2f%% errors, %.3f ms\n\n",
           SLICE_ARG(ctl_text(root, "target_group")), number(root, "total_requests_per_sec"),
           number(root, "active_connections"), 100 * number(root, "error_rate"),
           number(root, "average_latency_ms"));
    ctl_table_init(&table, titles, iso_countof(titles));
    for (const struct doc_node *one = servers ? servers->first : NULL; one; one = one->next) {
        ctl_table_add(&table, one->key);
        ctl_table_addf(&table, "%.1f", number(one, "requests_per_sec"));
        ctl_table_addf(&table, "%.0f", number(one, "active_connections"));
        ctl_table_addf(&table, "%.2f%%", 100 * number(one, "error_rate"));
        ctl_table_addf(&table, "%.3f", number(one, "average_latency_ms"));
        ctl_table_addf(&table, "%.0f", number(one, "total_requests"));
    }
    text_init(&out);
    ctl_table_write(&table, &out);
    fwrite(out.data, 1, out.len, stdout);
    text_fini(&out);
    ctl_table_fini(&table);
    print_history(doc_get(doc_get(root, "history"), "points"));
}

int ctl_metrics(struct ctl *ctl)
{
    struct ctl_answer answer;
    struct text path;
    if (ctl->argc > 1)
        return ctl_usage("at most one target group");
    text_init(&path);
    text_printf(&path, ctl->raw ? "/metrics" : "/api/metrics");
    if (!ctl->raw)
        add_group(ctl->argc ? ctl->argv[0] : ctl->group, &path);
    int status = ctl_ask(ctl, "GET", path.data, &answer);
    if (!status && !ctl->json && answer.doc.root)
        print_metrics(answer.doc.root);
    else if (!status)
        ctl_print_raw(&answer);
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

/* ---- top ---- */

static volatile sig_atomic_t is_over;

static void on_signal(int signal)
{
    is_over = 1;
}

static void add_servers(const struct doc_node *servers, struct slice group, struct ctl_table *table)
{
    for (const struct doc_node *one = servers ? servers->first : NULL; one; one = one->next) {
        ctl_table_add(table, group);
        ctl_table_add(table, ctl_text(one, "server_id"));
        ctl_table_add(table, ctl_text(one, "health"));
        ctl_table_add(table, ctl_text(one, "weight"));
        ctl_table_add(table, ctl_text(one, "active_connections"));
        ctl_table_addf(table, "%.1f", number(one, "requests_per_sec"));
        ctl_table_addf(table, "%.2f%%", 100 * number(one, "error_rate"));
        ctl_table_addf(table, "%.2f", number(one, "average_latency_ms"));
        ctl_table_add(table, ctl_text(one, "last_health_check_result"));
    }
}

static int add_group_rows(struct ctl *ctl, struct slice group, struct ctl_table *table)
{
    struct ctl_answer answer;
    struct text path;
    text_init(&path);
    text_printf(&path, "/api/servers?limit=1000&target_group=");
    client_add_segment(&path, group);
    int status = ctl_ask(ctl, "GET", path.data, &answer);
    if (!status && answer.doc.root)
        add_servers(doc_get(answer.doc.root, "servers"), group, table);
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

static int fill(struct ctl *ctl, struct ctl_table *table)
{
    struct ctl_answer groups;
    if (ctl->argc || ctl->group)
        return add_group_rows(ctl, slice_str(ctl->argc ? ctl->argv[0] : ctl->group), table);
    int status = ctl_ask(ctl, "GET", "/v1/target-groups?limit=1000", &groups);
    const struct doc_node *items = !status && groups.doc.root ? doc_get(groups.doc.root, "items") : NULL;
    for (const struct doc_node *one = items ? items->first : NULL; one && !status; one = one->next)
        status = add_group_rows(ctl, ctl_text(one, "id"), table);
    ctl_answer_fini(&groups);
    return status;
}

/* As many lines as the terminal has. */
static void print_screen(struct text *out)
{
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    size_t lines = size.ws_row > 2 ? size.ws_row - 1u : 1000, end = 0;
    for (size_t i = 0; i < out->len && lines; i++)
        if (out->data[i] == '\n') {
            end = i + 1;
            lines--;
        }
    printf("\033[H\033[2J");
    fwrite(out->data, 1, end, stdout);
    fflush(stdout);
}

static int show(struct ctl *ctl, bool in_place)
{
    const char *titles[] = {"target group", "target", "health",     "weight", "active",
                            "requests/s",   "errors", "latency ms", "check"};
    struct ctl_table table;
    struct text out;
    char clock[32];
    time_t now = time(NULL);
    struct tm tm;
    ctl_table_init(&table, titles, iso_countof(titles));
    int status = fill(ctl, &table);
    text_init(&out);
    if (in_place) {
        localtime_r(&now, &tm);
        strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        text_printf(&out, "%s  %s  every %u s, Ctrl-C ends\n\n", clock, ctl->client.address, ctl->interval_s);
    }
    ctl_table_write(&table, &out);
    if (!status && in_place)
        print_screen(&out);
    else if (!status)
        fwrite(out.data, 1, out.len, stdout);
    text_fini(&out);
    ctl_table_fini(&table);
    return status;
}

int ctl_top(struct ctl *ctl)
{
    if (ctl->argc > 1)
        return ctl_usage("at most one target group");
    if (ctl->json) {
        struct ctl list = *ctl;
        char *what[] = {(char *)"servers"};
        list.group = ctl->argc ? ctl->argv[0] : ctl->group;
        list.argc = 1;
        list.argv = what;
        return ctl_list(&list);
    }
    bool in_place = !ctl->once && isatty(STDOUT_FILENO);
    if (!in_place)
        return show(ctl, false);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!is_over) {
        int status = show(ctl, true);
        if (status)
            return status;
        sleep(ctl->interval_s);
    }
    printf("\n");
    return CTL_OK;
}
