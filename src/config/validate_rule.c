/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: one action each, references that exist, rewrites that have something to act on, and none that an
 * equal one before it leaves without work. */
#include "config/validate_internal.h"

#include "config/schema.h"

void validate_redirect(struct validator *v, const struct config_redirect *redirect,
                       const struct doc_node *node)
{
    if (node->kind == DOC_MAP && !validate_has(node, "scheme") && !validate_has(node, "host") &&
        !validate_has(node, "port") && !validate_has(node, "path"))
        validate_fault(v, node, "leads back to the same place, expected scheme, host, port or path");
    if (redirect->path.ptr && redirect->path.ptr[0] != '/' && redirect->path.ptr[0] != '{')
        validate_fault(v, doc_get(node, "path"), "is \"%.*s\", expected a path that begins with / or {path}",
                       SLICE_ARG(redirect->path));
}

static void check_action(struct validator *v, const struct doc_node *node)
{
    static const char *const actions[] = {"forward", "redirect", "respond", "deny"};
    const char *first = NULL;
    for (size_t i = 0; i < iso_countof(actions); i++) {
        if (!validate_has(node, actions[i]))
            continue;
        if (first)
            validate_fault(v, doc_get(node, actions[i]), "stands beside %s, expected one action", first);
        first = first ? first : actions[i];
    }
    if (!first)
        validate_fault(v, node, "has no action, expected one of forward, redirect, respond, deny");
}

static void report_forward_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_ERROR, twin->node, "is \"%.*s\" again, as %s; expected each target group once",
              SLICE_ARG(twin->text), doc_place(first->node, &doc->arena));
}

static void check_forward(struct validator *v, enum config_protocol protocol, struct config_rule *rule,
                          const struct doc_node *node)
{
    const struct doc_node *list = doc_get(node, "forward");
    if (!list || list->kind != DOC_LIST)
        return;
    if (list->n == 0)
        validate_fault(v, list, "is an empty list, expected one target group at least");
    struct names names;
    names_init(&names);
    uint64_t weights = 0;
    const struct doc_node *item = list->first;
    for (uint32_t i = 0; i < rule->n_forward; i++, item = item->next) {
        struct config_forward *forward = &rule->forward[i];
        weights += forward->weight;
        const struct doc_node *name = doc_get(item, "target_group");
        if (!forward->target_group_name.ptr ||
            !validate_group_ref(v, forward->target_group_name, name, &forward->target_group))
            continue;
        validate_group_protocol(v, protocol, forward->target_group, name);
        names_add(&names, forward->target_group_name, i, name);
    }
    if (weights == 0 && names.n == list->n && names.n > 0)
        validate_warning(v, list, "has only weights of 0: such requests are answered with 503");
    names_sort(&names);
    names_each_twin(&names, v->doc, report_forward_twin);
    names_fini(&names);
}

static void check_rewrite(struct validator *v, const struct doc_node *node)
{
    const struct doc_node *rewrite = doc_get(node, "rewrite");
    if (!rewrite)
        return;
    if (!validate_has(node, "forward"))
        validate_warning(v, rewrite, "changes what is forwarded, but this rule forwards nothing");
    if (validate_has(rewrite, "path_prefix") && !validate_has(doc_get(node, "match"), "path_prefix"))
        validate_fault(v, doc_get(rewrite, "path_prefix"),
                       "stands in place of the match's path_prefix, but the match has none");
}

static void check_match(struct validator *v, const struct doc_node *node)
{
    const struct doc_node *match = doc_get(node, "match");
    if (validate_has(match, "path") &&
        (validate_has(match, "path_prefix") || validate_has(match, "path_regex")))
        validate_fault(v, doc_get(match, "path"),
                       "is the whole path, expected no path_prefix or path_regex beside it");
}

static void check_respond(struct validator *v, const struct config_rule *rule, const struct doc_node *node)
{
    uint16_t status = rule->respond.status;
    const struct doc_node *body = doc_get(doc_get(node, "respond"), "body");
    if (body && (status == 204 || status == 205 || status == 304))
        validate_fault(v, body, "is given, but an answer with status %u has no body", status);
}

static void check_basic_auth(struct validator *v, struct config_rule *rule, const struct doc_node *node)
{
    const struct doc_node *auth = doc_get(node, "basic_auth");
    rule->basic_auth.place = validate_place(v, auth);
    if (!validate_has(node, "forward"))
        validate_fault(v, auth, "guards what is forwarded, but this rule forwards nothing");
    if (validate_has(node, "jwt"))
        validate_fault(v, auth, "stands beside jwt, expected one of them: both come in Authorization");
}

static void report_rule_name_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_ERROR, twin->node,
              "is \"%.*s\", the name of the rule %s; expected a unique one in this listener",
              SLICE_ARG(twin->text), doc_place(first->node, &doc->arena));
}

static void report_match_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_WARNING, twin->node, "never takes a request: the rule %s has the same match",
              doc_place(first->node, &doc->arena));
}

/* The match as text: equal ones print the same. Owns: the document's arena. */
static struct slice print_match(struct validator *v, const struct config_rule *rule)
{
    const struct schema_key *key = schema_rule_match();
    struct text text;
    text_init(&text);
    key->type->print(key, rule, SCHEMA_PLAIN, &text);
    struct slice copy = arena_slice(&v->doc->arena, text_slice(&text));
    text_fini(&text);
    return copy;
}

void validate_rules(struct validator *v, struct config_listener *listener, const struct doc_node *node)
{
    struct names names, matches;
    names_init(&names);
    names_init(&matches);
    const struct doc_node *item = doc_get(node, "rules");
    item = item ? item->first : NULL;
    for (uint32_t i = 0; i < listener->n_rules; i++, item = item->next) {
        struct config_rule *rule = &listener->rules[i];
        if (item->kind != DOC_MAP)
            continue;
        check_action(v, item);
        check_match(v, item);
        check_forward(v, listener->protocol, rule, item);
        validate_rule_protocol(v, listener, item);
        if (validate_has(item, "redirect"))
            validate_redirect(v, &rule->redirect, doc_get(item, "redirect"));
        check_respond(v, rule, item);
        check_rewrite(v, item);
        if (validate_has(item, "jwt"))
            rule->jwt.place = validate_place(v, doc_get(item, "jwt"));
        if (validate_has(item, "basic_auth"))
            check_basic_auth(v, rule, item);
        if (validate_has(item, "rate_limit"))
            validate_rate_limit(v, &rule->rate_limit, doc_get(item, "rate_limit"));
        if (rule->name.ptr)
            names_add(&names, rule->name, i, doc_get(item, "name"));
        if (doc_faults(v->doc) == 0)
            names_add(&matches, print_match(v, rule), i, item);
    }
    names_sort(&names);
    names_each_twin(&names, v->doc, report_rule_name_twin);
    names_fini(&names);
    names_sort(&matches);
    names_each_twin(&matches, v->doc, report_match_twin);
    names_fini(&matches);
}
