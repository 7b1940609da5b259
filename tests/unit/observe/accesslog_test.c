/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/accesslog.h"

#include "core/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64], path[96], rotated[96];
    struct accesslog_format *format;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct slice what;
    strcpy(f->dir, "/tmp/isobar-accesslog-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/access.log", f->dir);
    snprintf(f->rotated, sizeof(f->rotated), "%s/access.log.1", f->dir);
    assert_int_equal(accesslog_format_compile(SLICE("{path} {attempts}"), &f->format, &what), ISO_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    unlink(f->rotated);
    rmdir(f->dir);
    accesslog_format_free(f->format);
    free(f);
    return 0;
}

static char *read_file(const char *path, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    char *data = malloc((size_t)st.st_size + 1);
    assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
    data[st.st_size] = '\0';
    *len = (size_t)st.st_size;
    close(fd);
    return data;
}

static bool put(struct accesslog *log, uint32_t worker, const struct fixture *f, const char *path, uint32_t n)
{
    struct accesslog_entry entry = {
        .path = slice_str(path), .attempts = n, .protocol = "HTTP/1.1", .reason = "-"};
    return accesslog_write(log, worker, f->format, &entry);
}

static void lines_are_in_the_file_when_it_is_closed(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    size_t len;
    assert_int_equal(accesslog_open(slice_str(f->path), 1, &log), ISO_OK);
    assert_true(put(log, 0, f, "/a", 1));
    assert_true(put(log, 0, f, "/b", 2));
    accesslog_close(&log);
    assert_null(log);
    char *data = read_file(f->path, &len);
    assert_string_equal(data, "/a 1\n/b 2\n");
    free(data);
}

static void a_line_reaches_the_file_without_being_closed(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    struct stat st = {0};
    assert_int_equal(accesslog_open(slice_str(f->path), 1, &log), ISO_OK);
    assert_true(put(log, 0, f, "/a", 1));
    for (int i = 0; i < 1000 && st.st_size == 0; i++) {
        usleep(5000); /* the writer's nap is not ours to shorten */
        assert_int_equal(stat(f->path, &st), 0);
    }
    assert_int_equal(st.st_size, 5);
    accesslog_close(&log);
}

struct producer {
    const struct fixture *f;
    struct accesslog *log;
    uint32_t worker, written, dropped;
};

enum { LINES = 60000 };
/* The digit is the worker. Three rings of such lines are more than a writer takes without being woken. */
#define LONG_PATH "/0/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void *produce(void *arg)
{
    struct producer *p = arg;
    char path[] = LONG_PATH;
    path[1] = (char)('0' + p->worker);
    for (uint32_t i = 0; i < LINES; i++)
        if (put(p->log, p->worker, p->f, path, i))
            p->written++;
        else
            p->dropped++;
    return NULL;
}

static void every_line_is_whole_in_order_and_either_written_or_counted(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    struct producer producers[3];
    pthread_t threads[3];
    assert_int_equal(accesslog_open(slice_str(f->path), 3, &log), ISO_OK);
    for (uint32_t i = 0; i < 3; i++) {
        producers[i] = (struct producer){f, log, i, 0, 0};
        pthread_create(&threads[i], NULL, produce, &producers[i]);
    }
    for (uint32_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(accesslog_lost(log), 0);
    accesslog_close(&log);

    size_t len;
    char *data = read_file(f->path, &len);
    uint32_t seen[3] = {0}, last[3] = {0};
    struct slice rest = slice_of(data, len), line = {0};
    while (rest.len && slice_next(&rest, '\n', &line)) {
        uint64_t n = 0;
        size_t space = slice_find(line, ' ');
        assert_int_equal(space, strlen(LONG_PATH));
        assert_true(slice_u64(slice_of(line.ptr + space + 1, line.len - space - 1), &n));
        uint32_t worker = (uint32_t)(line.ptr[1] - '0');
        assert_true(worker < 3 && (seen[worker] == 0 || n > last[worker]));
        last[worker] = (uint32_t)n;
        seen[worker]++;
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(seen[i], producers[i].written);
        assert_int_equal(producers[i].written + producers[i].dropped, LINES);
    }
    free(data);
}

static void after_rotation_lines_go_to_the_new_file(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    size_t len;
    assert_int_equal(accesslog_open(slice_str(f->path), 1, &log), ISO_OK);
    assert_int_equal(rename(f->path, f->rotated), 0);
    assert_int_equal(accesslog_reopen(log), ISO_OK);
    struct stat st = {0};
    /* Until the writer has changed over, lines may still go to the old one. */
    for (uint32_t n = 0; n < 1000 && st.st_size == 0; n++) {
        assert_true(put(log, 0, f, "/a", n));
        usleep(5000);
        assert_int_equal(stat(f->path, &st), 0);
    }
    assert_true(st.st_size > 0);
    accesslog_close(&log);
    char *data = read_file(f->path, &len);
    assert_memory_equal(data, "/a ", 3);
    free(data);
}

static void a_reopen_that_fails_keeps_the_file(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    size_t len;
    assert_int_equal(accesslog_open(slice_str(f->path), 1, &log), ISO_OK);
    assert_int_equal(rename(f->path, f->rotated), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_int_equal(accesslog_reopen(log), ISO_ERR_SYSTEM);
    assert_true(put(log, 0, f, "/a", 1));
    accesslog_close(&log);
    rmdir(f->path);
    char *data = read_file(f->rotated, &len);
    assert_string_equal(data, "/a 1\n");
    free(data);
}

static void a_full_disk_loses_lines_and_counts_them(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(accesslog_open(SLICE("/dev/full"), 1, &log), ISO_OK);
    for (uint32_t i = 0; i < 10; i++)
        assert_true(put(log, 0, f, "/a", i));
    for (int i = 0; i < 1000 && accesslog_lost(log) < 10; i++)
        usleep(5000);
    assert_int_equal(accesslog_lost(log), 10);
    accesslog_close(&log);
}

static void a_reader_that_stops_blocks_no_worker_and_not_the_end(void **state)
{
    struct fixture *f = *state;
    struct accesslog *log;
    assert_int_equal(mkfifo(f->path, 0600), 0);
    int reader = open(f->path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(accesslog_open(slice_str(f->path), 1, &log), ISO_OK);
    uint32_t n = 0;
    while (n < 10000000 && put(log, 0, f, "/a", n))
        n++;
    assert_true(n < 10000000); /* the ring was full, and the call came back */
    accesslog_close(&log);
    close(reader);
}

static void rejects_a_file_that_cannot_be_opened(void **state)
{
    struct accesslog *log;
    assert_int_equal(accesslog_open(SLICE("/nonexistent/dir/access.log"), 1, &log), ISO_ERR_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_in_the_file_when_it_is_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_reaches_the_file_without_being_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_line_is_whole_in_order_and_either_written_or_counted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(after_rotation_lines_go_to_the_new_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reopen_that_fails_keeps_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_loses_lines_and_counts_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_that_stops_blocks_no_worker_and_not_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rejects_a_file_that_cannot_be_opened, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
