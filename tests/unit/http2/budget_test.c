/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/budget.h"

#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uint32_t takes(struct http2_budget *budget, uint64_t now_ns)
{
    uint32_t n = 0;
    while (n < 100000 && http2_budget_take(budget, HTTP2_FLOOD_RESETS, now_ns))
        n++;
    return n;
}

static void a_burst_of_resets_is_bounded_C_051(void **state)
{
    struct http2_budget budget;
    http2_budget_init(&budget, HTTP2_FLOOD_RESETS, 1);
    uint32_t n = takes(&budget, 1);
    assert_true(n >= 100 && n <= 1000);
}

static void thirty_resets_a_second_go_on_forever_C_051(void **state)
{
    struct http2_budget budget;
    http2_budget_init(&budget, HTTP2_FLOOD_RESETS, 0);
    for (uint64_t i = 0; i < 30 * 600; i++)
        assert_true(http2_budget_take(&budget, HTTP2_FLOOD_RESETS, i * NS_PER_S / 30));
}

static void what_was_saved_up_is_bounded(void **state)
{
    struct http2_budget budget;
    http2_budget_init(&budget, HTTP2_FLOOD_RESETS, 0);
    uint32_t burst = takes(&budget, 0);
    assert_true(takes(&budget, 3600 * NS_PER_S) <= 2 * burst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_of_resets_is_bounded_C_051),
        cmocka_unit_test(thirty_resets_a_second_go_on_forever_C_051),
        cmocka_unit_test(what_was_saved_up_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
