/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/explain: what would become of a request now (K3). GET takes it from the query, POST from a JSON body
 * with the same names and "headers". Nothing is sent, counted or changed by asking. */
#include "v1/handlers.h"

#include "api/view.h"
#include "core/clock.h"
#include "explain/explain.h"
#include "guard/passwords.h"
#include "v1/v1.h"

#include <stdlib.h>

enum { HEADERS_MAX = 128 };

/* A password on its way through the thread that compares, and the call that waits for it. One at a time: that
 * thread is there for those who log in. */
struct comparison {
    struct crypt_job job;
    struct api_call *call;
    struct explain_query *query; /* in the call's arena */
    struct passwords *passwords; /* shared (counted) */
};
static struct comparison *at_hand; /* owns; NULL: none */

static void answer(struct api_call *call, struct explain_query *query);

static void end_comparison(void)
{
    struct comparison *comparison = at_hand;
    at_hand = NULL;
    passwords_unref(&comparison->passwords);
    explicit_bzero(&comparison->job, sizeof(comparison->job));
    free(comparison);
}

static void on_compared(struct loop *loop, void *arg)
{
    struct api_call *call = at_hand->call;
    at_hand->query->compared = at_hand->passwords;
    at_hand->query->is_match = at_hand->job.matches;
    answer(call, at_hand->query);
    end_comparison();
    api_finish(call);
}

/* False: the answer stands, as one that says why. */
static bool compare(struct api_call *call, struct explain_query *query, const struct explain *explain)
{
    if (at_hand || !call->view->loop) {
        api_fail(call, 503, "busy", "", "another password is being compared; ask again");
        call->reply.retry_after_s = 1;
        return true;
    }
    at_hand = calloc(1, sizeof(*at_hand));
    iso_assert(at_hand != NULL);
    *at_hand = (struct comparison){.call = call, .query = query, .passwords = passwords_ref(explain->asks)};
    at_hand->job.home = call->view->loop;
    at_hand->job.call = (struct loop_call){.fn = on_compared};
    memcpy(at_hand->job.password, explain->password.password, sizeof(at_hand->job.password));
    memcpy(at_hand->job.hash, explain->password.hash, strlen(explain->password.hash) + 1);
    if (crypt_post(&at_hand->job)) {
        api_defer(call);
        return true;
    }
    end_comparison();
    return false; /* too many log in: so would this one be refused */
}

void v1_explain_stop(const struct loop *loop)
{
    if (!at_hand)
        return;
    struct api_call *call = at_hand->call;
    crypt_forget(loop);
    end_comparison();
    api_fail(call, 503, "shutting_down", "", "this process is ending");
    api_finish(call);
}

static void write_answer(struct api_call *call, const struct explain *explain)
{
    if (api_query_flag(call, "text")) {
        api_reply_plain(call);
        explain_write_text(explain, &call->reply.body);
    } else {
        explain_write_json(explain, &call->reply.body);
    }
}

static void answer(struct api_call *call, struct explain_query *query)
{
    struct explain *explain = arena_new(&call->arena, struct explain);
    struct iso_diag diag;
    if (!call->view->snapshot) {
        api_fail(call, 503, "starting", "", "no configuration is in force yet");
        return;
    }
    diag_init(&diag);
    if (explain_request(call->view->snapshot, query, clock_mono_ns(), clock_wall_ns(), explain, &diag))
        api_fail_diag(call, 400, "invalid", &diag);
    else if (!explain->asks || query->compared || !compare(call, query, explain))
        write_answer(call, explain);
    explain_fini(explain);
    diag_fini(&diag);
}

static bool take_address(struct api_call *call, const char *name, struct slice text, struct ip_addr *out)
{
    if (!text.ptr || ip_parse(text, out))
        return true;
    api_fail(call, 400, "invalid", name, "is \"%.*s\", expected an IP address", SLICE_ARG(text));
    return false;
}

static void begin(struct api_call *call, struct explain_query *query, struct slice from, struct slice via)
{
    query->from = (struct ip_addr){.family = 4, .bytes = {127, 0, 0, 1}};
    if (!query->url.ptr)
        api_fail(call, 400, "invalid", "url", "say what is asked for: an absolute URL");
    else if (take_address(call, "from", from, &query->from) && take_address(call, "via", via, &query->via))
        answer(call, query);
}

void v1_explain_get(struct api_call *call)
{
    struct explain_query *query = arena_new(&call->arena, struct explain_query);
    struct slice from = {0}, via = {0};
    api_query(call, "url", &query->url);
    api_query(call, "method", &query->method);
    api_query(call, "listener", &query->listener);
    api_query(call, "from", &from);
    api_query(call, "via", &via);
    begin(call, query, from, via);
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
    static const char *const names[] = {"url", "method", "headers", "from", "via", "listener"};
    for (const struct doc_node *field = body->first; field; field = field->next) {
        size_t i = 0;
        while (i < iso_countof(names) && !slice_eq(field->key, slice_str(names[i])))
            i++;
        if (i == iso_countof(names)) {
            api_fail(call, 400, "invalid", doc_path(field, &call->arena),
                     "is unknown, expected url, method, headers, from, via or listener");
            return false;
        }
    }
    return true;
}

void v1_explain_post(struct api_call *call)
{
    struct explain_query *query = arena_new(&call->arena, struct explain_query);
    struct slice from = {0}, via = {0};
    struct iso_diag diag;
    struct doc doc;
    diag_init(&diag);
    if (api_read_body(call, false, &doc, &diag) && check_names(call, doc.root) &&
        take_text(call, doc.root, "url", &query->url) &&
        take_text(call, doc.root, "method", &query->method) &&
        take_text(call, doc.root, "listener", &query->listener) && take_text(call, doc.root, "from", &from) &&
        take_text(call, doc.root, "via", &via) && take_headers(call, doc.root, query))
        begin(call, query, from, via);
    doc_fini(&doc);
    diag_fini(&diag);
}
