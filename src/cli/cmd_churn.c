/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar churn`: how many keys a planned change of the targets would move, for each way of hashing beside
 * hash mod N, before anybody makes it (B4). Computes only; nothing is served, changed or resolved. */
#include "cli/cmd.h"

#include "balance/churn.h"
#include "config/load.h"
#include "core/text.h"

#include <getopt.h>
#include <stdio.h>

const char cmd_churn_help[] =
    "usage: isobar churn --targets N | --weights W,W,...  [--add N[:W]] [--remove N] [--set I=W]\n"
    "       isobar churn --from N --to M\n"
    "       isobar churn --config FILE --to FILE\n"
    "\n"
    "Says how many keys (clients, sessions, cached objects) would move to another target by a change, under\n"
    "hash mod N (what plain balancers do) and under the algorithms ip_hash, consistent_hash and maglev. "
    "\"Least\"\n"
    "is what must move for the new weights to hold; what goes beyond it moves for nothing.\n"
    "\n"
    "what there is:\n"
    "  --targets N         N targets of weight 1; --from N is the same\n"
    "  --weights W,W,...   targets of these weights\n"
    "  --config FILE       each target group of a configuration\n"
    "\n"
    "what is to change (may be combined; done in this order):\n"
    "  --set I=W           target number I (from 1) gets weight W; may be repeated\n"
    "  --remove N          the last N targets go\n"
    "  --add N[:W]         N targets come, of weight W (1)\n"
    "  --to FILE           the groups of the same name in this configuration\n"
    "  --to M              with --from: M targets in all\n"
    "\n"
    "options:\n"
    "  --keys N            keys to try (100000)\n"
    "  --format text|json  json: one document for scripts\n"
    "  -h, --help          this text\n"
    "\n"
    "example: isobar churn --from 4 --to 5 --keys 2000\n"
    "\n"
    "exit status: 0 done, 1 a file or a pool is not valid, 2 called wrongly\n";

enum { TARGETS_MAX = 65536, KEYS_MAX = 100000000, SETS_MAX = 64 };

struct plan {
    uint32_t n, add, add_weight, remove, n_sets, keys;
    uint32_t *weights; /* [n]; arena */
    struct {
        uint32_t target, weight;
    } sets[SETS_MAX];
    const char *config, *to;
    bool json, has_from;
    struct arena arena;
};

/* One pool that changes, and what is known about it. */
struct change {
    struct slice group; /* ptr NULL: none, the targets were given as options */
    enum balance_method_id was, is;
    struct balance_pool before, after;
    struct churn churn;
};

static const char *const scheme_names[CHURN_SCHEME_COUNT] = {
    [CHURN_MODULO] = "hash mod N",
    [CHURN_IP_HASH] = "ip_hash",
    [CHURN_RING] = "consistent_hash",
    [CHURN_MAGLEV] = "maglev",
};

static bool number(struct slice text, uint32_t least, uint32_t most, uint32_t *out)
{
    uint64_t value;
    if (!slice_u64(text, &value) || value < least || value > most)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* "A:B" or "A=B". */
static bool two_numbers(struct slice text, char sep, uint32_t *a, uint32_t *b)
{
    size_t at = slice_find(text, sep);
    return at < text.len && number(slice_of(text.ptr, at), 1, TARGETS_MAX, a) &&
           number(slice_of(text.ptr + at + 1, text.len - at - 1), 0, BALANCE_WEIGHT_MAX, b);
}

static bool read_weights(struct plan *plan, struct slice list)
{
    struct slice part;
    plan->n = 0;
    plan->weights = arena_array(&plan->arena, uint32_t, list.len + 1);
    while (slice_next(&list, ',', &part))
        if (!number(part, 0, BALANCE_WEIGHT_MAX, &plan->weights[plan->n++]))
            return false;
    return plan->n <= TARGETS_MAX;
}

/* Takes one option; what was expected instead when it is wrong, NULL when it is right. */
static const char *take_option(struct plan *plan, int option, struct slice value)
{
    switch (option) {
    case 'F':
        plan->has_from = true;
        return take_option(plan, 't', value);
    case 't':
        if (!number(value, 1, TARGETS_MAX, &plan->n))
            return "a number of targets, 1 to 65536";
        plan->weights = arena_array(&plan->arena, uint32_t, plan->n);
        for (uint32_t i = 0; i < plan->n; i++)
            plan->weights[i] = 1;
        return NULL;
    case 'w':
        return read_weights(plan, value) ? NULL : "weights of 0 to 65535 with commas between them, as 1,1,2";
    case 'a':
        plan->add_weight = 1;
        return number(value, 1, TARGETS_MAX, &plan->add) ||
                       two_numbers(value, ':', &plan->add, &plan->add_weight)
                   ? NULL
                   : "a number of targets, or that and a weight, as 2:50";
    case 'r':
        return number(value, 1, TARGETS_MAX, &plan->remove) ? NULL : "a number of targets";
    case 's':
        if (plan->n_sets == SETS_MAX)
            return "at most 64 of them";
        if (!two_numbers(value, '=', &plan->sets[plan->n_sets].target, &plan->sets[plan->n_sets].weight))
            return "the number of a target and a weight, as 2=5";
        plan->n_sets++;
        return NULL;
    case 'c':
        plan->config = value.ptr;
        return NULL;
    case 'o':
        plan->to = value.ptr;
        return NULL;
    case 'k':
        return number(value, 1, KEYS_MAX, &plan->keys) ? NULL : "a number of keys, 1 to 100000000";
    case 'f':
        plan->json = slice_eq(value, SLICE("json"));
        return plan->json || slice_eq(value, SLICE("text")) ? NULL : "text or json";
    }
    return "another option";
}

static void name_targets(struct plan *plan, struct balance_pool *pool, uint32_t *weights, uint32_t n)
{
    struct slice *names = arena_array(&plan->arena, struct slice, n);
    for (uint32_t i = 0; i < n; i++)
        names[i] = slice_str(arena_printf(&plan->arena, "target-%u", i + 1));
    *pool = (struct balance_pool){.n = n, .weights = weights, .names = names};
}

/* The pools of the options; what is wrong with them, or NULL. */
static const char *plan_change(struct plan *plan, struct change *change)
{
    uint32_t staying = plan->n - plan->remove, n = staying + plan->add;
    if (plan->remove > plan->n)
        return "--remove takes more targets than there are";
    uint32_t *weights = arena_array(&plan->arena, uint32_t, plan->n + plan->add);
    memcpy(weights, plan->weights, sizeof(weights[0]) * plan->n);
    for (uint32_t k = 0; k < plan->n_sets; k++) {
        if (plan->sets[k].target > plan->n)
            return "--set names a target that does not exist";
        weights[plan->sets[k].target - 1] = plan->sets[k].weight;
    }
    for (uint32_t i = staying; i < n; i++)
        weights[i] = plan->add_weight;
    name_targets(plan, &change->before, plan->weights, plan->n);
    name_targets(plan, &change->after, weights, n);
    /* New targets are new: they do not take the names of those that went. */
    struct slice *names = (struct slice *)change->after.names;
    for (uint32_t i = staying; i < n; i++)
        names[i] = slice_str(arena_printf(&plan->arena, "target-%u", plan->n + i - staying + 1));
    return NULL;
}

/* "--from 4 --to 5": the last ones go, or others come. */
static const char *plan_count(struct plan *plan)
{
    uint32_t n;
    if (!plan->to || !number(slice_str(plan->to), 1, TARGETS_MAX, &n))
        return "--from needs --to with a number of targets";
    if (plan->add || plan->remove)
        return "--from and --to say it all: no --add, no --remove";
    plan->add = n > plan->n ? n - plan->n : 0;
    plan->add_weight = 1;
    plan->remove = n < plan->n ? plan->n - n : 0;
    plan->to = NULL;
    return NULL;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static uint32_t with_weight(const struct balance_pool *pool)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < pool->n; i++)
        n += pool->weights[i] > 0;
    return n;
}

/* Of all keys, in fortieths. */
static void print_bar(double pct)
{
    enum { WIDTH = 40 };
    int full = (int)(pct * WIDTH / 100 + 0.5);
    for (int i = 0; i < WIDTH; i++)
        fputs(i < full ? "█" : "░", stdout);
    putchar('\n');
}

static void print_text(const struct change *change)
{
    const struct churn *churn = &change->churn;
    if (change->group.ptr)
        printf("%.*s: ", SLICE_ARG(change->group));
    printf("%u -> %u targets with weight; of %u keys %.1f%% have to move\n\n", with_weight(&change->before),
           with_weight(&change->after), churn->keys, 100 * churn->least);
    printf("                        moved   of all   beyond the least\n");
    for (int scheme = 0; scheme < CHURN_SCHEME_COUNT; scheme++) {
        double moved = percent(churn->moved[scheme], churn->keys), beyond = moved - 100 * churn->least;
        printf("%-18s %10u %7.1f%% %17.1f%%  ", scheme_names[scheme], churn->moved[scheme], moved,
               beyond > 0 ? beyond : 0);
        print_bar(moved);
    }
    printf("%-18s %10s %7.1f%% %18s  ", "least", "", 100 * churn->least, "");
    print_bar(100 * churn->least);
    if (change->group.ptr) {
        const char *was = balance_method_get(change->was)->name, *is = balance_method_get(change->is)->name;
        if (change->was != change->is)
            printf("The algorithm changes from %s to %s, which moves nearly every key by itself.\n", was, is);
        else
            printf("The group's algorithm is %s.\n", is);
    }
}

static void add_json(struct text *out, const struct change *change)
{
    const struct churn *churn = &change->churn;
    text_printf(out, "{\"group\":");
    if (change->group.ptr)
        text_json(out, change->group);
    else
        text_printf(out, "null");
    text_printf(out, ",\"targets\":[%u,%u],\"keys\":%u,\"least\":%.6f,\"moved\":{",
                with_weight(&change->before), with_weight(&change->after), churn->keys, churn->least);
    for (int scheme = 0; scheme < CHURN_SCHEME_COUNT; scheme++)
        text_printf(out, "%s\"%s\":%u", scheme ? "," : "",
                    scheme == CHURN_MODULO ? "hash_mod_n" : scheme_names[scheme], churn->moved[scheme]);
    text_printf(out, "}}");
}

/* Measures and prints one change; false when it cannot be. */
static bool report(const struct plan *plan, struct change *change, struct text *json)
{
    if (churn_measure(&change->before, &change->after, plan->keys, &change->churn)) {
        fprintf(stderr, "isobar churn: %.*s%sa pool has two targets of one name, or more than %u\n",
                SLICE_ARG(change->group), change->group.ptr ? ": " : "", TARGETS_MAX);
        return false;
    }
    if (!plan->json) {
        print_text(change);
        return true;
    }
    if (json->len > 1)
        text_printf(json, ",");
    add_json(json, change);
    return true;
}

static struct config *load(const char *file)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    if (config_load_file(file, &config, &diag))
        diag_print(&diag);
    diag_fini(&diag);
    return config;
}

/* As the proxy sees the group while all its targets are up: disabled and backup ones take no keys. */
static void pool_of(struct plan *plan, const struct config_target_group *group, struct balance_pool *pool)
{
    uint32_t *weights = arena_array(&plan->arena, uint32_t, group->n_targets);
    struct slice *names = arena_array(&plan->arena, struct slice, group->n_targets);
    for (uint32_t i = 0; i < group->n_targets; i++) {
        const struct config_target *target = &group->targets[i];
        weights[i] = target->enabled && !target->backup ? target->weight : 0;
        names[i] = target->endpoint.text;
    }
    *pool = (struct balance_pool){.n = group->n_targets, .weights = weights, .names = names};
}

static const struct config_target_group *find_group(const struct config *config, struct slice name)
{
    for (uint32_t i = 0; i < config->n_target_groups; i++)
        if (slice_eq(config->target_groups[i].name, name))
            return &config->target_groups[i];
    return NULL;
}

static bool report_configs(struct plan *plan, struct text *json)
{
    struct config *before = load(plan->config), *after = load(plan->to);
    bool ok = before && after;
    uint32_t reported = 0;
    for (uint32_t i = 0; ok && i < before->n_target_groups; i++) {
        const struct config_target_group *old = &before->target_groups[i],
                                         *new = find_group(after, old->name);
        if (!new) {
            if (!plan->json)
                printf("%s%.*s: is not in %s\n", reported++ ? "\n" : "", SLICE_ARG(old->name), plan->to);
            continue;
        }
        struct change change = {.group = old->name, .was = old->algorithm, .is = new->algorithm};
        pool_of(plan, old, &change.before);
        pool_of(plan, new, &change.after);
        if (!plan->json && reported++)
            printf("\n");
        ok = report(plan, &change, json);
    }
    for (uint32_t i = 0; ok && !plan->json && i < after->n_target_groups; i++)
        if (!find_group(before, after->target_groups[i].name))
            printf("%s%.*s: is new\n", reported++ ? "\n" : "", SLICE_ARG(after->target_groups[i].name));
    config_free(before);
    config_free(after);
    return ok;
}

/* Fills the change of the options. What is wrong with how they go together, or NULL. */
static const char *check_plan(struct plan *plan, struct change *change)
{
    const char *wrong = plan->has_from ? plan_count(plan) : NULL;
    bool files = plan->config || plan->to,
         options = plan->weights || plan->add || plan->remove || plan->n_sets;
    if (wrong)
        return wrong;
    if (files && options)
        return "--config and --to stand alone";
    if (files)
        return plan->config && plan->to ? NULL : "--config and --to belong together";
    return plan->weights ? plan_change(plan, change) : "say what there is: --targets, --weights or --config";
}

static int run(struct plan *plan)
{
    struct change change = {0};
    const char *wrong = check_plan(plan, &change);
    bool files = plan->config != NULL;
    if (wrong) {
        fprintf(stderr, "isobar churn: %s; see isobar churn --help\n", wrong);
        return 2;
    }
    struct text json;
    text_init(&json);
    text_printf(&json, "[");
    bool ok = files ? report_configs(plan, &json) : report(plan, &change, &json);
    if (ok && plan->json)
        printf("%s]\n", json.data);
    text_fini(&json);
    return ok ? 0 : 1;
}

int cmd_churn(int argc, char **argv)
{
    static const struct option options[] = {
        {"targets", required_argument, NULL, 't'}, {"from", required_argument, NULL, 'F'},
        {"weights", required_argument, NULL, 'w'}, {"add", required_argument, NULL, 'a'},
        {"remove", required_argument, NULL, 'r'},  {"set", required_argument, NULL, 's'},
        {"config", required_argument, NULL, 'c'},  {"to", required_argument, NULL, 'o'},
        {"keys", required_argument, NULL, 'k'},    {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},          {0}};
    struct plan plan = {.keys = 100000};
    int status = 2, index = 0;
    arena_init(&plan.arena);
    for (int option; (option = getopt_long(argc, argv, "h", options, &index)) != -1;) {
        if (option == '?')
            goto end;
        if (option == 'h') {
            fputs(cmd_churn_help, stdout);
            status = 0;
            goto end;
        }
        const char *expected = take_option(&plan, option, slice_str(optarg));
        if (expected) {
            fprintf(stderr, "isobar churn: --%s is \"%s\", expected %s\n", options[index].name, optarg,
                    expected);
            goto end;
        }
    }
    if (optind < argc)
        fprintf(stderr, "isobar churn: \"%s\" is no option; see isobar churn --help\n", argv[optind]);
    else
        status = run(&plan);
end:
    arena_fini(&plan.arena);
    return status;
}
