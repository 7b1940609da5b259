/* SPDX-License-Identifier: Apache-2.0 */
#include "store/last_good.h"

#include "printed_of.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/isobar-last-good-XXXXXX", path[64];
static uint64_t failures;

static void write_good(const char *to, uint64_t version, struct slice document)
{
    struct loop loop;
    struct last_good *good;
    const struct config_store config = {.url = SLICE("sqlite:x"), .last_good = slice_str(to)};
    assert_int_equal(loop_init(&loop), ISO_OK);
    assert_int_equal(last_good_open(&config, &loop, &failures, &good), ISO_OK);
    struct printed *printed = printed_of(document);
    last_good_write(good, version, printed);
    printed_unref(&printed);
    last_good_close(&good);
    loop_fini(&loop);
}

static iso_err read_good(uint64_t *version, char got[64])
{
    struct text document;
    struct iso_diag diag;
    text_init(&document);
    diag_init(&diag);
    iso_err err = last_good_read(path, version, &document, &diag);
    snprintf(got, 64, "%s", err == ISO_OK ? document.data : diag.first ? diag.first->message : "");
    text_fini(&document);
    diag_fini(&diag);
    return err;
}

static void what_was_written_is_read(void **state)
{
    char got[64];
    uint64_t version;
    write_good(path, 7, SLICE("{\"a\":1}"));
    assert_int_equal(read_good(&version, got), ISO_OK);
    assert_string_equal(got, "{\"a\":1}");
    assert_int_equal(version, 7);
    write_good(path, 8, SLICE("{}"));
    assert_int_equal(read_good(&version, got), ISO_OK);
    assert_int_equal(version, 8);
}

static void only_its_owner_may_read_it(void **state)
{
    struct stat st;
    write_good(path, 7, SLICE("{}"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void none_is_not_found(void **state)
{
    char got[64];
    uint64_t version;
    unlink(path);
    assert_int_equal(read_good(&version, got), ISO_ERR_NOT_FOUND);
}

static void rejects_a_copy_that_lost_its_end(void **state)
{
    char got[64];
    uint64_t version;
    struct stat st;
    write_good(path, 7, SLICE("{\"a\":1}"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    assert_int_equal(read_good(&version, got), ISO_ERR_INVALID);
    assert_non_null(strstr(got, "is damaged"));
}

static void rejects_something_else(void **state)
{
    char got[64];
    uint64_t version;
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
    assert_int_equal(write(fd, "admin: {}\n", 10), 10);
    close(fd);
    assert_int_equal(read_good(&version, got), ISO_ERR_INVALID);
    assert_string_equal(got, "is not a last good copy");
}

static void stop_when_counted(struct loop *loop, struct loop_timer *timer)
{
    if (failures > 0)
        loop_stop(loop);
    else
        loop_timer_set(loop, timer, loop->now_ns + 10000000);
}

static void a_place_that_cannot_be_written_is_counted(void **state)
{
    struct loop loop;
    struct last_good *good;
    struct loop_timer timer;
    const struct config_store config = {.url = SLICE("sqlite:x"), .last_good = SLICE("/proc/no/such/folder")};
    failures = 0;
    assert_int_equal(loop_init(&loop), ISO_OK);
    assert_int_equal(last_good_open(&config, &loop, &failures, &good), ISO_OK);
    struct printed *printed = printed_of(SLICE("{}"));
    last_good_write(good, 7, printed);
    printed_unref(&printed);
    loop_timer_init(&timer, stop_when_counted);
    loop_timer_set(&loop, &timer, loop.now_ns);
    loop_run(&loop);
    last_good_close(&good);
    loop_fini(&loop);
    assert_int_equal(failures, 1);
}

static void the_default_is_for_stores_on_other_machines(void **state)
{
    struct arena arena;
    arena_init(&arena);
    struct config_store config = {.url = SLICE("sqlite:/x")};
    assert_null(last_good_path(&config, &arena));
    config.url = SLICE("postgresql://h/d");
    assert_string_equal(last_good_path(&config, &arena), LAST_GOOD_DEFAULT);
    config.last_good = SLICE("off");
    assert_null(last_good_path(&config, &arena));
    arena_fini(&arena);
}

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/good", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(only_its_owner_may_read_it),
        cmocka_unit_test(none_is_not_found),
        cmocka_unit_test(rejects_a_copy_that_lost_its_end),
        cmocka_unit_test(rejects_something_else),
        cmocka_unit_test(a_place_that_cannot_be_written_is_counted),
        cmocka_unit_test(the_default_is_for_stores_on_other_machines),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
