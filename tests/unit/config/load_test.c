/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char sample[] = "workers: 1\n"
                             "admin: { listen: \"127.0.0.1:0\" }\n"
                             "load_balancers:\n"
                             "  - name: bench\n"
                             "    vip: \"127.0.0.1\"\n"
                             "    listeners:\n"
                             "      - { port: 8080, protocol: HTTP, default_target_group: be }\n"
                             "target_groups:\n"
                             "  - name: be\n"
                             "    protocol: HTTP\n"
                             "    algorithm: round_robin\n"
                             "    health_check: { type: none }\n"
                             "    targets:\n"
                             "      - { ip: \"127.0.0.1\", port: 9001 }\n";

static void a_small_file_becomes_a_config_with_defaults(void **state)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    assert_int_equal(config_load_text(slice_str(sample), "sample", "/", &config, &diag), ISO_OK);
    assert_int_equal(diag.errors + diag.warnings, 0);
    assert_int_equal(config->workers, 1);
    assert_int_equal(config->n_load_balancers, 1);
    const struct config_listener *listener = &config->load_balancers[0].listeners[0];
    assert_string_equal(listener->name.ptr, "bench/8080");
    assert_string_equal(listener->endpoint.text.ptr, "127.0.0.1:8080");
    assert_int_equal(listener->default_target_group, 0);
    assert_int_equal(listener->timeouts.header_ms, 15000);
    assert_int_equal(listener->limits.header_bytes, 32768);
    const struct config_target_group *group = &config->target_groups[0];
    assert_int_equal(group->algorithm, BALANCE_ROUND_ROBIN);
    assert_int_equal(group->health_check.type, CONFIG_HEALTH_NONE);
    assert_int_equal(group->retry.attempts, 2);
    assert_true(group->retry.on_reset && group->retry.on_connect_failure && !group->retry.on_gateway_error);
    assert_string_equal(group->targets[0].endpoint.text.ptr, "127.0.0.1:9001");
    assert_int_equal(group->targets[0].weight, 100);
    assert_true(group->targets[0].enabled && !group->targets[0].backup);
    assert_string_equal(config->access_log.file.ptr, "off");
    assert_int_equal(config->shutdown_ms, 30000);
    config_free(config);
    diag_fini(&diag);
}

struct files {
    char folder[64];
    struct iso_diag diag;
    struct config *config;
};

static int make_folder(void **state)
{
    static struct files files;
    files = (struct files){.folder = "/tmp/isobar-load-XXXXXX"};
    diag_init(&files.diag);
    *state = &files;
    return mkdtemp(files.folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    struct files *files = *state;
    char command[128];
    config_free(files->config);
    diag_fini(&files->diag);
    snprintf(command, sizeof(command), "rm -r %s", files->folder);
    return system(command);
}

static const char *path_of(const struct files *files, const char *name)
{
    static char path[4][256];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof(path[0]), "%s/%s", files->folder, name);
    return out;
}

static void write_file(const struct files *files, const char *name, const char *text)
{
    FILE *file = fopen(path_of(files, name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void relative_paths_begin_at_the_folder_that_names_the_file(void **state)
{
    struct files *files = *state;
    char expected[256];
    write_file(files, "real.yaml", "access_log: { file: a.log }\n");
    assert_int_equal(mkdir(path_of(files, "link"), 0700), 0);
    assert_int_equal(symlink(path_of(files, "real.yaml"), path_of(files, "link/c.yaml")), 0);
    assert_int_equal(config_load_file(path_of(files, "link/c.yaml"), &files->config, &files->diag), ISO_OK);
    snprintf(expected, sizeof(expected), "%s/link/a.log", files->folder);
    assert_string_equal(files->config->access_log.file.ptr, expected);
}

static void a_json_file_is_read_strictly(void **state)
{
    struct files *files = *state;
    write_file(files, "c.json", "{\"workers\": 1,}\n");
    assert_int_equal(config_load_file(path_of(files, "c.json"), &files->config, &files->diag),
                     ISO_ERR_INVALID);
    assert_string_equal(files->diag.first->message, "is not valid JSON: expected a key in quotes");
}

static void files_that_cannot_be_read_are_faults_C124(void **state)
{
    struct files *files = *state;
    assert_int_equal(config_load_file(path_of(files, "none"), &files->config, &files->diag), ISO_ERR_INVALID);
    assert_string_equal(files->diag.last->message, "No such file or directory");
    assert_string_equal(files->diag.last->file, path_of(files, "none"));
    assert_int_equal(config_load_file(files->folder, &files->config, &files->diag), ISO_ERR_INVALID);
    assert_string_equal(files->diag.last->message, "is a folder, expected a file");
}

static void a_second_text_into_one_diag_stands_for_itself(void **state)
{
    struct files *files = *state;
    assert_int_equal(config_load_text(SLICE("x: 1"), "a", "/", &files->config, &files->diag),
                     ISO_ERR_INVALID);
    assert_null(files->config);
    assert_int_equal(config_load_text(slice_str(sample), "b", "/", &files->config, &files->diag), ISO_OK);
    assert_non_null(files->config);
}

#define WITH_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_file_becomes_a_config_with_defaults),
        WITH_FOLDER(relative_paths_begin_at_the_folder_that_names_the_file),
        WITH_FOLDER(a_json_file_is_read_strictly),
        WITH_FOLDER(files_that_cannot_be_read_are_faults_C124),
        WITH_FOLDER(a_second_text_into_one_diag_stands_for_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
