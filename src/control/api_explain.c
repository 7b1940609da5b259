/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/explain: what would become of a request now (K3). GET takes it from the query, POST from a JSON body
 * with the same names and "headers". Nothing is sent, counted or changed by asking. */
#include "control/control.h"
#include "control/handlers.h"
#include "control/v1.h"

#include "core/clock.h"
#include "explain/explain.h"

enum { HEADERS_MAX = 128 };

static void answer(struct api_call *call, struct explain_query *query, struct slice from)
{
    struct explain *explain = arena_new(&call->arena, struct explain);
    struct iso_diag diag;
    query->from = (struct ip_addr){.family = 4, .bytes = {127, 0, 0, 1}};
    if (!query->url.ptr) {
        api_fail(call, 400, "invalid", "url", "say what is asked for: an absolute URL");
        return;
    }
    if (from.ptr && !ip_parse(from, &query->from)) {
        api_fail(call, 400, "invalid", "from", "is \"%.*s\", expected an IP address", SLICE_ARG(from));
        return;
    }
    if (!call->view->snapshot) {
        api_fail(call, 503, "starting", "", "no configuration is in force yet");
        return;
    }
    diag_init(&diag);
    if (explain_request(call->view->snapshot, query, clock_mono_ns(), clock_wall_ns(), explain, &diag)) {
        api_fail_diag(call, 400, "invalid", &diag);
    } else if (api_query_flag(call, "text")) {
        api_reply_plain(call);
        explain_write_text(explain, &call->reply.body);
    } else {
        explain_write_json(explain, &call->reply.body);
    }
    explain_fini(explain);
    diag_fini(&diag);
}

void api_explain_get(struct api_call *call)
{
    struct explain_query query = {0};
    struct slice from = {0};
    api_query(call, "url", &query.url);
    api_query(call, "method", &query.method);
    api_query(call, "listener", &query.listener);
    api_query(call, "from", &from);
    answer(call, &query, from);
}

/* A text of the body; absent is fine. False: it is no text, and the call has its answer. */
static bool take_text(struct api_call *call, const struct doc_node *body, const char *key, struct slice *out)
{
    const struct doc_node *node = doc_get(body, key);
    if (!node)
        return true;
    if (node->kind != DOC_STRING) {
        api_fail(call, 400, "invalid", doc_path(node, &call->arena), "is %s, expected a text",
                 doc_describe(node, &call->arena));
        return false;
    }
    *out = arena_slice(&call->arena, node->text);
    return true;
}

/* {"Name": "value", "Other": ["several", "values"]}. */
static bool take_headers(struct api_call *call, const struct doc_node *body, struct explain_query *query)
{
    const struct doc_node *headers = doc_get(body, "headers");
    struct config_pair *pairs = arena_array(&call->arena, struct config_pair, HEADERS_MAX);
    if (headers && headers->kind != DOC_MAP) {
        api_fail(call, 400, "invalid", "/headers", "is %s, expected an object of texts",
                 doc_describe(headers, &call->arena));
        return false;
    }
    query->headers = pairs;
    for (const struct doc_node *field = headers ? headers->first : NULL; field; field = field->next) {
        const struct doc_node *value = field->kind == DOC_LIST ? field->first : field;
        for (; value; value = field->kind == DOC_LIST ? value->next : NULL) {
            if (value->kind != DOC_STRING || query->n_headers == HEADERS_MAX) {
                api_fail(call, 400, "invalid", doc_path(value, &call->arena),
                         "is %s, expected a text, and at most %d fields", doc_describe(value, &call->arena),
                         HEADERS_MAX);
                return false;
            }
            pairs[query->n_headers++] = (struct config_pair){arena_slice(&call->arena, field->key),
                                                             arena_slice(&call->arena, value->text)};
        }
    }
    return true;
}

static bool check_names(struct api_call *call, const struct doc_node *body)
{
    static const char *const names[] = {"url", "method", "headers", "from", "listener"};
    for (const struct doc_node *field = body->first; field; field = field->next) {
        size_t i = 0;
        while (i < iso_countof(names) && !slice_eq(field->key, slice_str(names[i])))
            i++;
        if (i == iso_countof(names)) {
            api_fail(call, 400, "invalid", doc_path(field, &call->arena),
                     "is unknown, expected url, method, headers, from or listener");
            return false;
        }
    }
    return true;
}

void api_explain_post(struct api_call *call)
{
    struct explain_query query = {0};
    struct slice from = {0};
    struct iso_diag diag;
    struct doc doc;
    diag_init(&diag);
    if (v1_read_body(call, false, &doc, &diag) && check_names(call, doc.root) &&
        take_text(call, doc.root, "url", &query.url) && take_text(call, doc.root, "method", &query.method) &&
        take_text(call, doc.root, "listener", &query.listener) && take_text(call, doc.root, "from", &from) &&
        take_headers(call, doc.root, &query))
        answer(call, &query, from);
    doc_fini(&doc);
    diag_fini(&diag);
}
