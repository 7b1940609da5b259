/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/budget.h"

#include "core/clock.h"

static const struct {
    uint32_t burst, per_s;
} allowed[HTTP2_FLOODS] = {
    [HTTP2_FLOOD_RESETS] = {500, 50},   [HTTP2_FLOOD_PINGS] = {2000, 200},
    [HTTP2_FLOOD_SETTINGS] = {200, 20}, [HTTP2_FLOOD_PRIORITIES] = {2000, 200},
    [HTTP2_FLOOD_EMPTY] = {2000, 200},  [HTTP2_FLOOD_CONTINUATIONS] = {1, 1}, /* not taken from: nghttp2's */
    [HTTP2_FLOOD_HEADERS] = {1, 1},                                           /* the same: a limit of bytes */
};

void http2_budget_init(struct http2_budget *budget, enum http2_flood what, uint64_t now_ns)
{
    *budget = (struct http2_budget){.left = allowed[what].burst, .filled_ns = now_ns};
}

bool http2_budget_take(struct http2_budget *budget, enum http2_flood what, uint64_t now_ns)
{
    uint64_t each_ns = NS_PER_S / allowed[what].per_s;
    if (budget->left == 0) { /* only then is it worth a division */
        uint64_t fresh = (now_ns - budget->filled_ns) / each_ns;
        budget->left = fresh < allowed[what].burst ? (uint32_t)fresh : allowed[what].burst;
        budget->filled_ns =
            budget->left == allowed[what].burst ? now_ns : budget->filled_ns + fresh * each_ns;
    }
    if (budget->left == 0)
        return false;
    budget->left--;
    return true;
}
