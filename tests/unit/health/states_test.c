/* SPDX-License-Identifier: Apache-2.0 */
#include "health/states.h"

#include "golden.h"

/* Every change that D3 and DESIGN document; whatever is not here keeps the state. */
static const struct {
    enum target_state from;
    enum target_event event;
    enum target_state to;
} documented[] = {
    {TARGET_PENDING, TARGET_EVENT_PASS, TARGET_ACTIVE},
    {TARGET_ACTIVE, TARGET_EVENT_FAIL, TARGET_UNHEALTHY},
    {TARGET_ACTIVE, TARGET_EVENT_EJECT, TARGET_UNHEALTHY},
    {TARGET_UNHEALTHY, TARGET_EVENT_PASS, TARGET_ACTIVE},
    {TARGET_UNHEALTHY, TARGET_EVENT_RETURN, TARGET_ACTIVE},
    {TARGET_PENDING, TARGET_EVENT_DRAIN, TARGET_DRAINING},
    {TARGET_ACTIVE, TARGET_EVENT_DRAIN, TARGET_DRAINING},
    {TARGET_UNHEALTHY, TARGET_EVENT_DRAIN, TARGET_DRAINING},
    {TARGET_PENDING, TARGET_EVENT_DELETE, TARGET_REMOVED},
    {TARGET_ACTIVE, TARGET_EVENT_DELETE, TARGET_DRAINING},
    {TARGET_UNHEALTHY, TARGET_EVENT_DELETE, TARGET_REMOVED},
    {TARGET_DRAINING, TARGET_EVENT_EMPTY, TARGET_REMOVED},
    {TARGET_DRAINING, TARGET_EVENT_ENABLE, TARGET_PENDING},
};

static enum target_state documented_target(enum target_state from, enum target_event event)
{
    for (size_t i = 0; i < iso_countof(documented); i++)
        if (documented[i].from == from && documented[i].event == event)
            return documented[i].to;
    return from;
}

static void every_cell_is_what_is_documented_D3(void **state)
{
    unsigned cells = 0, changes = 0;
#define CELL(from, event, goes_to, what)                                                                     \
    {                                                                                                        \
        struct target_step step = target_step(TARGET_##from, TARGET_EVENT_##event);                          \
        assert_int_equal(step.to, TARGET_##goes_to);                                                         \
        assert_int_equal(step.action, TARGET_ACTION_##what);                                                 \
        assert_int_equal(step.to, documented_target(TARGET_##from, TARGET_EVENT_##event));                   \
        changes += step.to != TARGET_##from;                                                                 \
        cells++;                                                                                             \
    }
#include "health/states.def"
    assert_int_equal(cells, TARGET_STATE_COUNT * TARGET_EVENT_COUNT);
    assert_int_equal(changes, iso_countof(documented));
}

static void a_change_always_has_an_action_and_nothing_else_but_a_report_has(void **state)
{
    for (unsigned from = 0; from < TARGET_STATE_COUNT; from++)
        for (unsigned event = 0; event < TARGET_EVENT_COUNT; event++) {
            struct target_step step = target_step(from, event);
            if (step.to == from)
                assert_true(step.action == TARGET_ACTION_IGNORE || step.action == TARGET_ACTION_REPORT);
            else
                assert_true(step.action != TARGET_ACTION_IGNORE && step.action != TARGET_ACTION_REPORT);
        }
}

static void a_zeroed_status_is_pending(void **state)
{
    static const struct health_status zeroed;
    assert_int_equal(zeroed.state, TARGET_PENDING);
    assert_int_equal(zeroed.reason, HEALTH_REASON_NONE);
    assert_false(health_is_usable(&zeroed));
}

static void add_picture(struct text *text)
{
    text_printf(text, "```mermaid\nstateDiagram-v2\n    [*] --> pending\n");
    for (unsigned from = 0; from < TARGET_STATE_COUNT; from++)
        for (unsigned to = 0; to < TARGET_STATE_COUNT; to++) {
            const char *separator = ": ";
            bool any = false;
            for (unsigned event = 0; event < TARGET_EVENT_COUNT; event++) {
                if (to == from || target_step(from, event).to != to)
                    continue;
                if (!any)
                    text_printf(text, "    %s --> %s", target_state_word(from), target_state_word(to));
                text_printf(text, "%s%s", separator, target_event_word(event));
                separator = ", ";
                any = true;
            }
            if (any)
                text_printf(text, "\n");
        }
    text_printf(text, "    removed --> [*]\n```\n");
}

static void add_tables(struct text *text)
{
    text_printf(text, "\n| state | what it is |\n|---|---|\n");
#define STATE(id, word, what) text_printf(text, "| %s | %s |\n", word, what);
#include "health/states.def"
    text_printf(text, "\n| event | when |\n|---|---|\n");
#define EVENT(id, word, when) text_printf(text, "| %s | %s |\n", word, when);
#include "health/states.def"
    static const char *const actions[] = {
#define ACTION(id, what) what,
#include "health/states.def"
    };
    text_printf(text, "\n| from | event | to | then |\n|---|---|---|---|\n");
    for (unsigned from = 0; from < TARGET_STATE_COUNT; from++)
        for (unsigned event = 0; event < TARGET_EVENT_COUNT; event++) {
            struct target_step step = target_step(from, event);
            if (step.action != TARGET_ACTION_IGNORE)
                text_printf(text, "| %s | %s | %s | %s |\n", target_state_word(from),
                            target_event_word(event), target_state_word(step.to), actions[step.action]);
        }
}

static void the_documented_picture_is_the_table(void **state)
{
    struct text text;
    text_init(&text);
    add_picture(&text);
    add_tables(&text);
    golden_check("docs/states.md", "states", text_slice(&text));
    text_fini(&text);
}

static void the_documented_reasons_are_the_table(void **state)
{
    struct text text;
    text_init(&text);
    text_printf(&text, "| reason | is | meaning |\n|---|---|---|\n");
#define KIND_PASSED  "passed"
#define KIND_FAILED  "failed"
#define KIND_UNKNOWN "not counted"
#define KIND_SET     "no check"
#define HEALTH_REASON(id, kind, word, what)                                                                  \
    text_printf(&text, "| `%s` | %s | %s |\n", word, KIND_##kind, what);
#include "health/reasons.def"
#undef HEALTH_REASON
    golden_check("docs/health.md", "reasons", text_slice(&text));
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_what_is_documented_D3),
        cmocka_unit_test(a_change_always_has_an_action_and_nothing_else_but_a_report_has),
        cmocka_unit_test(a_zeroed_status_is_pending),
        cmocka_unit_test(the_documented_picture_is_the_table),
        cmocka_unit_test(the_documented_reasons_are_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
