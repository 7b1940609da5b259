/* SPDX-License-Identifier: Apache-2.0 */
#include "control/pages.h"

#include "control/metrics.h"
#include "observe/prometheus.h"

#define JSON_TYPE SLICE("application/json")
#define TEXT_TYPE SLICE("text/plain; charset=utf-8")

void page_reply_init(struct page_reply *reply)
{
    *reply = (struct page_reply){.status = 200, .content_type = TEXT_TYPE};
    text_init(&reply->body);
}

void page_reply_fini(struct page_reply *reply)
{
    text_fini(&reply->body);
}

void page_reply_error(struct page_reply *reply, unsigned status, struct slice code, const char *message)
{
    reply->status = status;
    reply->error_code = code;
    text_fini(&reply->body);
    text_add(&reply->body, slice_str(message));
}

typedef void page_fn(const struct control_view *view, struct http_message *request, struct page_reply *reply);
#define PAGE(id, path, what) static page_fn page_##id;
#include "control/pages.def"
#undef PAGE

static void page_index(const struct control_view *view, struct http_message *request,
                       struct page_reply *reply)
{
    text_printf(&reply->body, "isobar %s\n\n", view->version ? view->version : "");
#define PAGE(id, path, what) text_printf(&reply->body, "%-12s %s\n", path, what);
#include "control/pages.def"
#undef PAGE
}

static void page_healthz(const struct control_view *view, struct http_message *request,
                         struct page_reply *reply)
{
    bool is_serving = view->snapshot && !view->is_shutting_down;
    reply->status = is_serving ? 200 : 503;
    text_add(&reply->body, is_serving               ? SLICE("ok\n")
                           : view->is_shutting_down ? SLICE("shutting down\n")
                                                    : SLICE("starting\n"));
}

static void page_metrics(const struct control_view *view, struct http_message *request,
                         struct page_reply *reply)
{
    const struct http_field *accept = http_message_find(request, HTTP_FIELD_ACCEPT);
    bool is_openmetrics = accept && prom_wants_openmetrics(http_field_value(accept));
    reply->content_type = prom_content_type(is_openmetrics);
    metrics_write(&reply->body, view, is_openmetrics);
}

struct tally {
    uint32_t groups, healthy, total;
};

/* Of all groups, or of the one called `name` when that is set. */
static struct tally count_targets(const struct snapshot *snapshot, struct slice name)
{
    struct tally tally = {0};
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        if (name.ptr && !slice_eq(group->config->name, name))
            continue;
        tally.groups++;
        tally.total += group->n_targets;
        for (uint32_t i = 0; i < group->n_targets; i++)
            tally.healthy += health_is_usable(&group->targets[i]->health);
    }
    return tally;
}

/* Source: G4; 001 "GET /api/health". A node alone is the primary. */
static void page_api_health(const struct control_view *view, struct http_message *request,
                            struct page_reply *reply)
{
    struct slice name = {0};
    bool has_name = http_query_find(request->query, SLICE("target_group"), &name);
    struct tally tally = count_targets(view->snapshot, has_name ? name : (struct slice){0});
    if (has_name && tally.groups == 0) {
        page_reply_error(reply, 404, SLICE("not_found"), "there is no target group of this name");
        return;
    }
    bool is_healthy = view->snapshot && !view->is_shutting_down;
    reply->status = is_healthy ? 200 : 503;
    reply->content_type = JSON_TYPE;
    text_printf(&reply->body,
                "{\"healthy\": %s, \"role\": \"primary\", \"healthy_backends\": %u, \"total_backends\": %u, "
                "\"version\": %llu}\n",
                is_healthy ? "true" : "false", tally.healthy, tally.total,
                (unsigned long long)(view->snapshot ? view->snapshot->version : 0));
}

static const struct {
    struct slice path;
    page_fn *answer;
} pages[] = {
#define PAGE(id, text, what) {{text, sizeof(text) - 1}, page_##id},
#include "control/pages.def"
#undef PAGE
};

void page_answer(const struct control_view *view, struct http_message *request, struct page_reply *reply)
{
    for (size_t i = 0; i < iso_countof(pages); i++) {
        if (!slice_eq(request->path, pages[i].path))
            continue;
        if (request->method == HTTP_GET || request->method == HTTP_HEAD) {
            pages[i].answer(view, request, reply);
            return;
        }
        page_reply_error(reply, 405, SLICE("method_not_allowed"), "this page can only be read");
        reply->allow = SLICE("GET, HEAD");
        return;
    }
    page_reply_error(reply, 404, SLICE("not_found"), "there is no such page; GET / lists them");
}
