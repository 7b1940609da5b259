/* SPDX-License-Identifier: Apache-2.0 */
#include "config/proxy_args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

/* One --listen and one --to unless `args` says otherwise; the faults, one a line. */
static struct text faults_of(struct config_proxy_args args, struct config **config)
{
    static const char *const listen[] = {":8080"}, *const to[] = {"127.0.0.1:9001"};
    struct iso_diag diag;
    struct text out;
    diag_init(&diag);
    text_init(&out);
    if (!args.listen)
        args.listen = listen, args.n_listen = 1;
    if (!args.to)
        args.to = to, args.n_to = 1;
    struct config_source source;
    iso_err err = config_for_proxy(&args, &source, &diag);
    if (!err) {
        *config = source.config;
        source.config = NULL;
        config_source_fini(&source);
    }
    assert_int_equal(err != ISO_OK, diag.errors > 0);
    for (const struct diag_entry *entry = diag.first; entry; entry = entry->next) {
        struct text line;
        text_init(&line);
        diag_format(entry, &line);
        text_printf(&out, "%s\n", line.data);
        text_fini(&line);
    }
    diag_fini(&diag);
    return out;
}

static void expect_faults(struct config_proxy_args args, const char *expected)
{
    struct config *config = NULL;
    struct text faults = faults_of(args, &config);
    assert_string_equal(faults.len ? faults.data : "", expected);
    text_fini(&faults);
    config_free(config);
}

static struct config *build(struct config_proxy_args args)
{
    struct config *config = NULL;
    struct text faults = faults_of(args, &config);
    if (!config)
        fail_msg("%s", faults.data);
    text_fini(&faults);
    return config;
}

static const char *target_of(const char *to)
{
    static char shown[200];
    const char *const all[] = {to};
    struct config *config = build((struct config_proxy_args){.to = all, .n_to = 1});
    const struct config_target *target = &config->target_groups[0].targets[0];
    snprintf(shown, sizeof(shown), "%s w%u%s", target->endpoint.text.ptr, target->weight,
             target->backup ? " backup" : "");
    config_free(config);
    return shown;
}

static const char *listener_of(const char *listen)
{
    static char shown[200];
    const char *const all[] = {listen};
    struct config *config = build((struct config_proxy_args){.listen = all, .n_listen = 1});
    snprintf(shown, sizeof(shown), "%s", config->load_balancers[0].listeners[0].endpoint.text.ptr);
    config_free(config);
    return shown;
}

static void two_options_make_a_whole_configuration(void **state)
{
    struct config *config = build((struct config_proxy_args){0});
    assert_string_equal(config->load_balancers[0].listeners[0].name.ptr, "proxy/8080");
    assert_int_equal(config->load_balancers[0].listeners[0].default_target_group, 0);
    assert_string_equal(config->admin.listen.text.ptr, "127.0.0.1:8443");
    assert_int_equal(config->target_groups[0].algorithm, BALANCE_P2C_LEAST_REQUEST);
    assert_int_equal(config->target_groups[0].health_check.type, CONFIG_HEALTH_TCP);
    assert_string_equal(config->access_log.file.ptr, "off");
    config_free(config);
}

static void targets_have_many_spellings(void **state)
{
    assert_string_equal(target_of("127.0.0.1:9001"), "127.0.0.1:9001 w100");
    assert_string_equal(target_of(":9001"), "127.0.0.1:9001 w100");
    assert_string_equal(target_of("localhost:9001"), "127.0.0.1:9001 w100");
    assert_string_equal(target_of("[::1]:9001"), "[::1]:9001 w100");
    assert_string_equal(target_of("http://127.0.0.1:9001"), "127.0.0.1:9001 w100");
    assert_string_equal(target_of("http://127.0.0.1/"), "127.0.0.1:80 w100");
    assert_string_equal(target_of("http://[::1]"), "[::1]:80 w100");
    assert_string_equal(target_of("unix:/run/a.sock,weight=3,backup"), "unix:/run/a.sock w3 backup");
    assert_string_equal(target_of("127.0.0.1:1,weight=0"), "127.0.0.1:1 w0");
}

static void listeners_have_many_spellings(void **state)
{
    assert_string_equal(listener_of(":8080"), ":8080");
    assert_string_equal(listener_of("8080"), ":8080");
    assert_string_equal(listener_of("127.0.0.1:8080"), "127.0.0.1:8080");
    assert_string_equal(listener_of("localhost:8080"), "127.0.0.1:8080");
    assert_string_equal(listener_of("[::1]:8080"), "[::1]:8080");
    assert_string_equal(listener_of("http://127.0.0.1:8080"), "127.0.0.1:8080");
    assert_string_equal(listener_of("unix:/run/in.sock"), "unix:/run/in.sock");
}

static void the_other_options_are_keys_of_the_file(void **state)
{
    struct config *config = build((struct config_proxy_args){.algorithm = "maglev",
                                                             .health_path = "/healthz",
                                                             .admin = "off",
                                                             .workers = "2",
                                                             .access_log = "stdout"});
    assert_int_equal(config->target_groups[0].algorithm, BALANCE_MAGLEV);
    assert_int_equal(config->target_groups[0].health_check.type, CONFIG_HEALTH_HTTP);
    assert_string_equal(config->target_groups[0].health_check.path.ptr, "/healthz");
    assert_null(config->admin.listen.text.ptr);
    assert_int_equal(config->workers, 2);
    assert_string_equal(config->access_log.file.ptr, "stdout");
    config_free(config);
}

static void several_listeners_serve_the_same_targets(void **state)
{
    const char *const listen[] = {"127.0.0.1:8080", "[::1]:8080", ":8081"};
    struct config *config = build((struct config_proxy_args){.listen = listen, .n_listen = 3});
    assert_int_equal(config->n_load_balancers, 3);
    assert_string_equal(config->load_balancers[1].listeners[0].name.ptr, "proxy-2/8080");
    assert_int_equal(config->load_balancers[2].listeners[0].default_target_group, 0);
    config_free(config);
}

static void faults_name_the_option(void **state)
{
    const char *const to[] = {"127.0.0.1:70000", "127.0.0.1:1,weight=x", "127.0.0.1:2", "127.0.0.1:2"};
    const char *const listen[] = {"127.0.0.1:99999"};
    expect_faults(
        (struct config_proxy_args){.to = to,
                                   .n_to = 4,
                                   .listen = listen,
                                   .n_listen = 1,
                                   .workers = "x",
                                   .algorithm = "least",
                                   .admin = "0.0.0.0:1",
                                   .health_path = "x"},
        "isobar proxy: --listen 127.0.0.1:99999: a port from 0 to 65535 must follow the last colon; expected "
        "for "
        "example :8080, 127.0.0.1:8080, [::1]:8080 or unix:/path\n"
        "isobar proxy: --workers: is the text \"x\", expected a whole number from 0 to 1024\n"
        "isobar proxy: --algorithm: is the text \"least\", did you mean \"least_connections\"? Expected one "
        "of "
        "round_robin, weighted_round_robin, least_connections, p2c_least_request, random, ip_hash, "
        "consistent_hash, maglev\n"
        "isobar proxy: --health-path: is the text \"x\", expected a path that begins with /, with or without "
        "a "
        "query\n"
        "isobar proxy: --to 127.0.0.1:70000 (port): is the number 70000, expected a whole number from 1 to "
        "65535\n"
        "isobar proxy: --to 127.0.0.1:1,weight=x (weight): is the text \"x\", expected a whole number from 0 "
        "to "
        "65535\n"
        "isobar proxy: --admin: is 0.0.0.0:1, which other machines can reach; expected a loopback "
        "address such as 127.0.0.1:8443, a unix socket, \"off\", or a token_file for authentication\n"
        "isobar proxy: --to 127.0.0.1:2: is 127.0.0.1:2, the target at --to 127.0.0.1:2; expected each "
        "target "
        "once\n");
}

static void rejects_targets_that_cannot_be_one(void **state)
{
    static const struct {
        const char *to, *why;
    } cases[] = {
        {"127.0.0.1", "has no port, expected HOST:PORT"},
        {"::1:80", "an IPv6 address must stand in brackets: [::1]:9001"},
        {"https://127.0.0.1", "TLS to targets is not spoken, expected http:// or HOST:PORT"},
        {"http://127.0.0.1/x", "has a path; requests keep their own, expected http://HOST:PORT alone"},
        {"ftp://127.0.0.1:21", "expected HOST:PORT, http://HOST:PORT or unix:/path"},
        {"127.0.0.1:80,wieght=1", "has an unknown option behind the comma, expected weight=N or backup"},
    };
    for (size_t i = 0; i < iso_countof(cases); i++) {
        char expected[300];
        const char *const to[] = {cases[i].to};
        snprintf(expected, sizeof(expected), "isobar proxy: --to %s: %s\n", cases[i].to, cases[i].why);
        expect_faults((struct config_proxy_args){.to = to, .n_to = 1}, expected);
    }
    const char *const unresolvable[] = {"name.invalid:80"};
    struct config *config = NULL;
    struct text faults = faults_of((struct config_proxy_args){.to = unresolvable, .n_to = 1}, &config);
    assert_null(config);
    assert_non_null(
        strstr(faults.data, "--to name.invalid:80: the name \"name.invalid\" cannot be resolved: "));
    text_fini(&faults);
}

static void missing_options_are_asked_for(void **state)
{
    static const char *const none[] = {NULL};
    expect_faults((struct config_proxy_args){.to = none, .listen = none},
                  "isobar proxy: --listen: is missing, expected for example --listen :8080\n"
                  "isobar proxy: --to: is missing, expected --to HOST:PORT once at least\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_options_make_a_whole_configuration),
        cmocka_unit_test(targets_have_many_spellings),
        cmocka_unit_test(listeners_have_many_spellings),
        cmocka_unit_test(the_other_options_are_keys_of_the_file),
        cmocka_unit_test(several_listeners_serve_the_same_targets),
        cmocka_unit_test(faults_name_the_option),
        cmocka_unit_test(rejects_targets_that_cannot_be_one),
        cmocka_unit_test(missing_options_are_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
