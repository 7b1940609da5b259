/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/servers and /api/servers/{server_id}: all servers of the pool with live figures, by page, filtered
 * by status and tags. A page goes on behind the id that its cursor names, so what comes or goes between two
 * pages makes no other server appear twice or not at all (case C-149). Source: 001 "API design"; G3. */
#include "onepool/handlers.h"

#include "api/page.h"
#include "onepool/onepool.h"

#include <stdlib.h>

struct filter {
    struct slice status; /* words with commas between them; ptr NULL: all */
    struct slice tags;   /* likewise; each must be there: "canary", "datacenter=eu" or "datacenter:eu" */
    struct api_page page;
};

static bool lists(struct slice words, const char *word)
{
    struct slice one;
    while (slice_next(&words, ',', &one))
        if (slice_eq(one, slice_str(word)))
            return true;
    return false;
}

static bool has_tag(const struct config_target *target, struct slice wanted)
{
    size_t at = 0;
    while (at < wanted.len && wanted.ptr[at] != '=' && wanted.ptr[at] != ':')
        at++;
    struct slice name = slice_of(wanted.ptr, at);
    for (uint32_t i = 0; i < target->n_tags; i++)
        if (slice_eq(target->tags[i].name, name) &&
            (at == wanted.len ||
             slice_eq(target->tags[i].value, slice_of(wanted.ptr + at + 1, wanted.len - at - 1))))
            return true;
    return false;
}

static bool passes(const struct filter *filter, const struct onepool_server *server)
{
    struct slice tags = filter->tags, one;
    if (filter->status.ptr && !lists(filter->status, onepool_status(server)))
        return false;
    while (slice_next(&tags, ',', &one))
        if (!has_tag(server->config, one))
            return false;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct onepool_server *x = a, *y = b;
    int order = slice_compare(x->config->endpoint.text, y->config->endpoint.text);
    return order ? order : x->is_leaving - y->is_leaving;
}

static bool check_status(struct api_call *call, struct slice words)
{
    static const char *const known[] = {"healthy", "unhealthy", "draining", "pending"};
    struct slice one;
    while (slice_next(&words, ',', &one)) {
        size_t i = 0;
        while (i < iso_countof(known) && !slice_eq(one, slice_str(known[i])))
            i++;
        if (i == iso_countof(known)) {
            api_fail(call, 400, "invalid", "status",
                     "is \"%.*s\", expected healthy, unhealthy, draining or pending, or some of them with "
                     "commas between",
                     SLICE_ARG(one));
            return false;
        }
    }
    return true;
}

static bool read_filter(struct api_call *call, struct filter *filter)
{
    *filter = (struct filter){0};
    if (!api_read_page(call, &filter->page))
        return false;
    if (api_query(call, "status", &filter->status) && !check_status(call, filter->status))
        return false;
    if (!api_query(call, "tags", &filter->tags))
        api_query(call, "tag", &filter->tags);
    return true;
}

void api_servers_list(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    struct text *out = &call->reply.body;
    struct onepool_server *servers;
    struct filter filter;
    if (!group || !read_filter(call, &filter))
        return;
    uint32_t n = onepool_servers(call, group, &servers), n_passed = 0;
    for (uint32_t i = 0; i < n; i++)
        if (passes(&filter, &servers[i]))
            servers[n_passed++] = servers[i];
    qsort(servers, n_passed, sizeof(*servers), by_id);
    uint32_t from = 0;
    while (filter.page.after.ptr && from < n_passed &&
           slice_compare(servers[from].config->endpoint.text, filter.page.after) <= 0)
        from++;
    uint32_t to = n_passed - from > filter.page.limit ? from + filter.page.limit : n_passed;
    text_printf(out, "{\"servers\":[");
    for (uint32_t i = from; i < to; i++) {
        text_printf(out, "%s", i > from ? "," : "");
        onepool_write_server(call, &servers[i], out);
    }
    text_printf(out, "],\"total\":%u,", n_passed);
    api_write_cursor(out, to < n_passed ? servers[to - 1].config->endpoint.text : (struct slice){0});
    text_printf(out, ",\"target_group\":");
    text_json(out, group->config->name);
    text_printf(out, "}\n");
}

void api_servers_get(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    const struct onepool_server *server = group ? onepool_server_named(call, group, call->params[0]) : NULL;
    if (!server)
        return;
    onepool_write_server(call, server, &call->reply.body);
    text_printf(&call->reply.body, "\n");
}
