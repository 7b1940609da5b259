/* SPDX-License-Identifier: Apache-2.0 */
#include "control/router.h"

#include "control/handlers.h"
#include "v1/resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct api_call *call_of(enum http_method method, const char *path)
{
    struct api_call *call = api_call_new();
    call->request = arena_new(&call->arena, struct http_message);
    call->request->method = (uint8_t)method;
    call->request->path = slice_str(path);
    return call;
}

static void a_route_takes_its_parameters_decoded(void **state)
{
    struct api_call *call = call_of(HTTP_GET, "/v1/target-groups/web%20site/targets/%5B%3a%3A1%5D:80");
    assert_int_equal(router_find(call), ROUTER_FOUND);
    assert_ptr_equal(call->route->handler, v1_get);
    assert_ptr_equal(call->route->resource, &resource_targets);
    assert_int_equal(call->n_params, 2);
    assert_true(slice_eq(call->params[0], SLICE("web site")));
    assert_true(slice_eq(call->params[1], SLICE("[::1]:80")));
    api_call_free(&call);
}

static void head_goes_where_get_goes(void **state)
{
    struct api_call *call = call_of(HTTP_HEAD, "/healthz");
    assert_int_equal(router_find(call), ROUTER_FOUND);
    assert_int_equal(call->route->role, API_OPEN);
    api_call_free(&call);
}

static void a_method_that_does_not_fit_is_told_which_do(void **state)
{
    struct api_call *call = call_of(HTTP_DELETE, "/v1/config");
    assert_int_equal(router_find(call), ROUTER_NO_METHOD);
    assert_true(slice_eq(call->reply.allow, SLICE("GET, HEAD, PUT")));
    api_call_free(&call);
}

static void rejects_paths_that_are_none(void **state)
{
    static const char *const paths[] = {
        "/v1",           "/v1/",         "/v1/config/",   "//v1/config",   "/v1/target-groups/",
        "/v1/nodes/%00", "/v1/nodes/%4", "/v1/nodes/%zz", "/v1/nodes/a/b", "*"};
    for (size_t i = 0; i < iso_countof(paths); i++) {
        struct api_call *call = call_of(HTTP_GET, paths[i]);
        if (router_find(call) != ROUTER_NO_PATH)
            fail_msg("%s is taken for a path", paths[i]);
        api_call_free(&call);
    }
}

static void every_change_needs_a_role_above_read(void **state)
{
    for (size_t i = 0; i < api_routes_n; i++) {
        const struct api_route *route = &api_routes[i];
        bool is_question = slice_eq(slice_str(route->pattern), SLICE("/v1/explain"));
        if (route->method != HTTP_GET && !is_question && route->role < API_OPERATE)
            fail_msg("%s changes something for %s", route->pattern, api_role_word(route->role));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_takes_its_parameters_decoded),
        cmocka_unit_test(head_goes_where_get_goes),
        cmocka_unit_test(a_method_that_does_not_fit_is_told_which_do),
        cmocka_unit_test(rejects_paths_that_are_none),
        cmocka_unit_test(every_change_needs_a_role_above_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
