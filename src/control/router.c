/* SPDX-License-Identifier: Apache-2.0 */
#include "control/router.h"

#include "control/handlers.h"
#include "v1/resource.h"

const struct api_route api_routes[] = {
#define ROUTE(method, pattern, role, handler, summary)                                                       \
    {HTTP_##method, pattern, API_##role, handler, summary, NULL},
#include "control/routes.def"
#undef ROUTE
#define RESOURCE(id, path, param, what)                                                                      \
    {HTTP_GET, path, API_READ, v1_list, "a page of them: each " what, &resource_##id},                       \
        {HTTP_POST, path, API_ADMIN, v1_post, "adds a " what, &resource_##id},                               \
        {HTTP_PUT, path, API_ADMIN, v1_replace, "the whole list anew: each " what, &resource_##id},          \
        {HTTP_GET, path "/" param, API_READ, v1_get, "one " what, &resource_##id},                           \
        {HTTP_PUT, path "/" param, API_ADMIN, v1_put, "makes or replaces a " what, &resource_##id},          \
        {HTTP_PATCH,    path "/" param, API_OPERATE, v1_patch, "changes what the body names of a " what,     \
         &resource_##id},                                                                                    \
        {HTTP_DELETE, path "/" param, API_ADMIN, v1_delete, "removes a " what, &resource_##id},
#include "v1/resources.def"
#undef RESOURCE
};
const size_t api_routes_n = iso_countof(api_routes);

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A segment without its percent signs; false: broken, or a NUL. */
static bool decode_segment(struct arena *arena, struct slice raw, struct slice *out)
{
    char *text = arena_alloc(arena, raw.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.ptr[i] != '%') {
            text[len++] = raw.ptr[i];
            continue;
        }
        int high = i + 1 < raw.len ? hex_digit(raw.ptr[i + 1]) : -1;
        int low = i + 2 < raw.len ? hex_digit(raw.ptr[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        text[len++] = (char)(high << 4 | low);
        i += 2;
    }
    *out = slice_of(text, len);
    return true;
}

/* Segment by segment; the parameters are written as they are met. */
static bool matches(struct api_call *call, const char *pattern)
{
    struct slice want = slice_str(pattern), have = call->request->path, w, h;
    call->n_params = 0;
    for (;;) {
        bool more = slice_next(&want, '/', &w);
        if (slice_next(&have, '/', &h) != more)
            return false;
        if (!more)
            return true;
        if (w.len == 0 || w.ptr[0] != '{') {
            if (!slice_eq(w, h))
                return false;
            continue;
        }
        iso_assert(call->n_params < API_PARAMS_MAX);
        if (h.len == 0 || !decode_segment(&call->arena, h, &call->params[call->n_params++]))
            return false;
    }
}

static void allow(struct text *out, enum http_method method)
{
    static const struct {
        enum http_method method;
        const char *names;
    } words[] = {{HTTP_GET, "GET, HEAD"},
                 {HTTP_POST, "POST"},
                 {HTTP_PUT, "PUT"},
                 {HTTP_PATCH, "PATCH"},
                 {HTTP_DELETE, "DELETE"}};
    for (size_t i = 0; i < iso_countof(words); i++)
        if (words[i].method == method)
            text_printf(out, "%s%s", out->len ? ", " : "", words[i].names);
}

enum router_result router_find(struct api_call *call)
{
    enum http_method method = call->request->method == HTTP_HEAD ? HTTP_GET : call->request->method;
    struct text allowed;
    text_init(&allowed);
    for (size_t i = 0; i < api_routes_n; i++) {
        if (!matches(call, api_routes[i].pattern))
            continue;
        if (api_routes[i].method == method) {
            call->route = &api_routes[i];
            text_fini(&allowed);
            return ROUTER_FOUND;
        }
        allow(&allowed, api_routes[i].method);
    }
    enum router_result result = allowed.len ? ROUTER_NO_METHOD : ROUTER_NO_PATH;
    if (allowed.len)
        call->reply.allow = arena_slice(&call->arena, text_slice(&allowed));
    text_fini(&allowed);
    return result;
}

bool router_takes_body(enum http_method method)
{
    return method == HTTP_POST || method == HTTP_PUT || method == HTTP_PATCH;
}
