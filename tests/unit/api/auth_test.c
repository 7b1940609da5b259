/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static iso_err load(const char *text, struct auth **auth, struct iso_diag *diag)
{
    char path[] = "/tmp/isobar-auth-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    *auth = NULL;
    diag_init(diag);
    iso_err err = auth_load(path, auth, diag);
    unlink(path);
    return err;
}

static void tokens_have_a_role_and_a_name(void **state)
{
    struct auth *auth;
    struct iso_diag diag;
    enum api_role role;
    struct slice name;
    assert_int_equal(load("# who may do what\n\nread 0123456789abcdef prometheus\r\n"
                          "  operate fedcba9876543210 # no name\nadmin 00112233445566778899aabbccddeeff ops",
                          &auth, &diag),
                     ISO_OK);
    assert_true(auth_find(auth, SLICE("Bearer 0123456789abcdef"), &role, &name));
    assert_int_equal(role, API_READ);
    assert_true(slice_eq(name, SLICE("prometheus")));
    assert_true(auth_find(auth, SLICE("bearer  fedcba9876543210 "), &role, &name));
    assert_int_equal(role, API_OPERATE);
    assert_true(slice_eq(name, SLICE("operate")));
    assert_true(auth_find(auth, SLICE("Bearer 00112233445566778899aabbccddeeff"), &role, &name));
    assert_int_equal(role, API_ADMIN);
    auth_free(&auth);
    diag_fini(&diag);
}

static void only_the_whole_token_counts(void **state)
{
    static const char *const wrong[] = {"",
                                        "Bearer",
                                        "Bearer ",
                                        "Bearer 0123456789abcde",
                                        "Bearer 0123456789abcdef0123456789abcdef",
                                        "Bearer 0123456789abcdeF",
                                        "Basic 0123456789abcdef",
                                        "0123456789abcdef"};
    struct auth *auth;
    struct iso_diag diag;
    enum api_role role;
    struct slice name;
    assert_int_equal(load("admin 0123456789abcdef\n", &auth, &diag), ISO_OK);
    for (size_t i = 0; i < iso_countof(wrong); i++)
        assert_false(auth_find(auth, slice_str(wrong[i]), &role, &name));
    auth_free(&auth);
    diag_fini(&diag);
}

static void rejects_faulty_lines_by_their_number(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
    } cases[] = {{"# nothing\n", 0},
                 {"\nroot 0123456789abcdef\n", 2},
                 {"admin\n", 1},
                 {"admin short\n", 1},
                 {"admin 0123456789abcdef\nread 0123456789abcdef\n", 2}};
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct auth *auth;
        struct iso_diag diag;
        assert_int_equal(load(cases[i].text, &auth, &diag), ISO_ERR_INVALID);
        assert_null(auth);
        assert_int_equal(diag.first->line, cases[i].line);
        assert_string_equal(diag.first->path, "/admin/token_file");
        diag_fini(&diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_have_a_role_and_a_name),
                                       cmocka_unit_test(only_the_whole_token_counts),
                                       cmocka_unit_test(rejects_faulty_lines_by_their_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
