/* SPDX-License-Identifier: Apache-2.0 */
/* The documents that people read say what the code does. */
#include "config/docs.h"

#include "faults.h"
#include "golden.h"

static void the_reference_is_what_the_schema_says(void **state)
{
    struct text reference;
    text_init(&reference);
    config_write_reference(&reference);
    golden_check("docs/configuration.md", "keys", text_slice(&reference));
    text_fini(&reference);
}

static void every_example_is_without_faults_or_warnings(void **state)
{
    static const char *const names[] = {"minimal.json", "minimal.yaml", "rules.yaml", "sockets.yaml"};
    const char *root = getenv("ISOBAR_SOURCE_ROOT");
    if (!root)
        skip();
    for (size_t i = 0; i < iso_countof(names); i++) {
        char path[1024];
        struct iso_diag diag;
        struct config *config = NULL;
        snprintf(path, sizeof(path), "%s/examples/%s", root, names[i]);
        diag_init(&diag);
        iso_err err = config_load_file(path, &config, &diag);
        if (err || diag.first)
            fail_msg("%s:%u: %s", path, diag.first->line, diag.first->message);
        config_free(config);
        diag_fini(&diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_what_the_schema_says),
        cmocka_unit_test(every_example_is_without_faults_or_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
