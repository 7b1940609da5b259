/* SPDX-License-Identifier: Apache-2.0 */
#include "health/panic.h"

#include "core/check.h"
#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static bool at(struct panic *panic, struct panic_census census, uint32_t pct, uint64_t now_ms)
{
    panic_update(panic, &census, pct, (1000 + now_ms) * NS_PER_MS);
    return panic->is_on;
}

static void it_begins_below_the_threshold_not_at_it_D5(void **state)
{
    struct panic panic = {0};
    assert_false(at(&panic, (struct panic_census){.active = 2, .unhealthy = 2}, 50, 0));
    assert_true(at(&panic, (struct panic_census){.active = 1, .unhealthy = 3}, 50, 0));
    assert_false(at(&(struct panic){0}, (struct panic_census){.active = 1, .unhealthy = 0}, 100, 0));
    assert_true(at(&(struct panic){0}, (struct panic_census){.active = 99, .unhealthy = 1}, 100, 0));
}

static void a_threshold_of_0_never_panics(void **state)
{
    struct panic panic = {0};
    assert_false(at(&panic, (struct panic_census){.unhealthy = 4}, 0, 0));
    assert_false(at(&panic, (struct panic_census){.active = 4, .doubtful = 4}, 0, 0));
}

static void well_above_the_threshold_it_ends_at_once(void **state)
{
    struct panic panic = {0};
    assert_true(at(&panic, (struct panic_census){.unhealthy = 1}, 50, 0));
    assert_false(at(&panic, (struct panic_census){.active = 1}, 50, 1));
}

static void just_at_the_threshold_it_ends_after_a_while_without_a_relapse(void **state)
{
    struct panic panic = {0};
    struct panic_census low = {.active = 1, .unhealthy = 3}, even = {.active = 2, .unhealthy = 2};
    assert_true(at(&panic, low, 50, 0));
    assert_true(at(&panic, even, 50, 100));
    assert_true(at(&panic, even, 50, 100 + PANIC_CALM_MS - 1));
    assert_true(at(&panic, low, 50, 100 + PANIC_CALM_MS)); /* a relapse */
    assert_true(at(&panic, even, 50, 200 + PANIC_CALM_MS));
    assert_true(at(&panic, even, 50, 200 + 2 * PANIC_CALM_MS - 1));
    assert_false(at(&panic, even, 50, 200 + 2 * PANIC_CALM_MS));
}

static void new_targets_count_only_when_there_is_nobody_else(void **state)
{
    assert_false(at(&(struct panic){0}, (struct panic_census){.active = 1, .failed = 9}, 50, 0));
    assert_true(at(&(struct panic){0}, (struct panic_census){.failed = 1}, 50, 0));
    assert_false(at(&(struct panic){0}, (struct panic_census){0}, 50, 0));
}

static void a_usable_backup_is_better_than_panic(void **state)
{
    struct panic panic = {0};
    assert_true(at(&panic, (struct panic_census){.unhealthy = 4}, 50, 0));
    assert_false(at(&panic, (struct panic_census){.unhealthy = 4, .has_backup = true}, 50, 1));
}

static void when_all_that_serve_fail_too_ejections_are_pointless_C_113(void **state)
{
    struct panic panic = {0};
    struct panic_census census = {.active = 2, .unhealthy = 2, .ejected = 2, .doubtful = 1};
    assert_false(at(&panic, census, 50, 0));
    census.doubtful = 2;
    assert_true(at(&panic, census, 50, 0));
    assert_false(panic.is_low);
    census.doubtful = 1;
    assert_true(at(&panic, census, 50, 1));
    assert_false(at(&panic, census, 50, 1 + PANIC_CALM_MS));
}

static void a_target_that_is_down_for_more_than_ejection_is_not_brought_back_by_doubt(void **state)
{
    assert_false(at(&(struct panic){0},
                    (struct panic_census){.active = 1, .unhealthy = 1, .ejected = 0, .doubtful = 1}, 50, 0));
}

static void the_only_target_is_never_missed_C_114(void **state)
{
    assert_true(at(&(struct panic){0}, (struct panic_census){.active = 1, .doubtful = 1}, 50, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_below_the_threshold_not_at_it_D5),
        cmocka_unit_test(a_threshold_of_0_never_panics),
        cmocka_unit_test(well_above_the_threshold_it_ends_at_once),
        cmocka_unit_test(just_at_the_threshold_it_ends_after_a_while_without_a_relapse),
        cmocka_unit_test(new_targets_count_only_when_there_is_nobody_else),
        cmocka_unit_test(a_usable_backup_is_better_than_panic),
        cmocka_unit_test(when_all_that_serve_fail_too_ejections_are_pointless_C_113),
        cmocka_unit_test(a_target_that_is_down_for_more_than_ejection_is_not_brought_back_by_doubt),
        cmocka_unit_test(the_only_target_is_never_missed_C_114),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
