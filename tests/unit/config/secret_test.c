/* SPDX-License-Identifier: Apache-2.0 */
#include "config/secret.h"

#include "doc/json.h"
#include "doc/json_write.h"

#include "faults.h"

/* What is shown of a document as it stands in JSON. */
static void expect_shown(const char *json, const char *expected)
{
    struct iso_diag diag;
    struct doc doc;
    struct text out;
    diag_init(&diag);
    doc_init(&doc, "", &diag);
    text_init(&out);
    assert_int_equal(json_read(slice_str(json), &doc), ISO_OK);
    secret_write(&schema_config, doc.root, &out);
    assert_string_equal(out.data, expected);
    text_fini(&out);
    doc_fini(&doc);
    diag_fini(&diag);
}

static uint64_t digest_of(const char *json)
{
    struct iso_diag diag;
    struct doc doc;
    diag_init(&diag);
    doc_init(&doc, "", &diag);
    assert_int_equal(json_read(slice_str(json), &doc), ISO_OK);
    uint64_t digest = secret_digest(&schema_config, doc.root);
    doc_fini(&doc);
    diag_fini(&diag);
    return digest;
}

static void expect_mask(schema_mask_fn *mask, const char *name, const char *value, const char *expected)
{
    struct text out;
    text_init(&out);
    mask(slice_str(name), slice_str(value), &out);
    assert_string_equal(out.len ? out.data : "", expected);
    text_fini(&out);
}

static void a_url_is_shown_without_its_passwords(void **state)
{
    static const char *const cases[][2] = {
        {"redis://h:6379/0", "redis://h:6379/0"},
        {"redis://:pw@h:6379/0", "redis://:<secret>@h:6379/0"},
        {"rediss://user:p%40w@h", "rediss://user:<secret>@h"},
        {"postgresql://u:p@a@h1,h2/db?sslmode=require", "postgresql://u:<secret>@h1,h2/db?sslmode=require"},
        {"postgresql://u@h/db?a=b&password=x&sslpassword=y&c=d",
         "postgresql://u@h/db?a=b&password=<secret>&sslpassword=<secret>&c=d"},
        {"postgresql://u:p@h?password=x", "postgresql://u:<secret>@h?password=<secret>"},
        {"postgresql://u@h/a:b@c", "postgresql://u@h/a:b@c"},
        {"postgresql://u:@h/", "postgresql://u:@h/"},
        {"sqlite:/var/lib/isobar/store.db", "sqlite:/var/lib/isobar/store.db"},
        {"", ""},
        {"://", "://"},
    };
    for (size_t i = 0; i < iso_countof(cases); i++)
        expect_mask(secret_in_url, "url", cases[i][0], cases[i][1]);
}

static void keys_within_pem_are_hidden_and_certificates_shown(void **state)
{
#define CERT       "-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\n"
#define KEY(body)  "-----BEGIN EC PRIVATE KEY-----\n" body "-----END EC PRIVATE KEY-----\n"
#define HIDDEN_KEY KEY("<secret>\n")
    expect_mask(secret_in_pem, "cert_pem", CERT CERT, CERT CERT);
    expect_mask(secret_in_pem, "cert_pem", CERT KEY("B\nC\n") CERT, CERT HIDDEN_KEY CERT);
    expect_mask(secret_in_pem, "cert_pem", KEY("B\n") KEY("C\n"), HIDDEN_KEY HIDDEN_KEY);
    expect_mask(secret_in_pem, "cert_pem", CERT HIDDEN_KEY, CERT HIDDEN_KEY);
    expect_mask(secret_in_pem, "cert_pem", "-----BEGIN PRIVATE KEY-----\nBCD",
                "-----BEGIN PRIVATE KEY-----\n<secret>\n");
}

static void fields_that_let_somebody_in_are_told_by_their_names(void **state)
{
    static const char *const secret[] = {
        "Authorization", "Proxy-Authorization",  "X-Api-Key",  "x-origin-verify",
        "cookie",        "X-Amz-Security-Token", "session_id", "APIKEY"};
    static const char *const open[] = {"host", "X-Forwarded-Proto", "beta", "cache-key", "user-agent"};
    for (size_t i = 0; i < iso_countof(secret); i++)
        expect_mask(secret_by_name, secret[i], "abc", "<secret>");
    for (size_t i = 0; i < iso_countof(open); i++)
        expect_mask(secret_by_name, open[i], "abc", "abc");
    expect_mask(secret_by_name, "Authorization", "*", "*");
}

static void secrets_are_hidden_wherever_they_stand(void **state)
{
    expect_shown(
        "{\"workers\":1,\"load_balancers\":[{\"name\":\"l\",\"listeners\":[{\"port\":80,\"rules\":[{"
        "\"match\":{"
        "\"headers\":{\"x-api-key\":\"k\",\"a\":\"b\"}},\"rewrite\":{\"set_headers\":{\"Authorization\":"
        "\"Basic "
        "x\",\"n\":1}}}]}]}],\"certificates\":[{\"name\":\"c\",\"cert_pem\":\"C\",\"key_pem\":\"K\"}],"
        "\"target_groups\":[{\"name\":\"g\",\"affinity\":{\"type\":\"cookie\",\"secret\":"
        "\"0123456789abcdef\"}}],"
        "\"shared_state\":{\"url\":\"redis://:p@h\"},\"l4\":{\"hash_seed\":77}}",
        "{\"workers\":1,\"load_balancers\":[{\"name\":\"l\",\"listeners\":[{\"port\":80,\"rules\":[{"
        "\"match\":{"
        "\"headers\":{\"x-api-key\":\"<secret>\",\"a\":\"b\"}},\"rewrite\":{\"set_headers\":{"
        "\"Authorization\":"
        "\"<secret>\",\"n\":1}}}]}]}],\"certificates\":[{\"name\":\"c\",\"cert_pem\":\"C\",\"key_pem\":"
        "\"<secret>\"}],\"target_groups\":[{\"name\":\"g\",\"affinity\":{\"type\":\"cookie\",\"secret\":"
        "\"<secret>\"}}],\"shared_state\":{\"url\":\"redis://"
        ":<secret>@h\"},\"l4\":{\"hash_seed\":\"<secret>\"}}");
}

static void values_of_the_wrong_kind_are_written_as_they_are(void **state)
{
    expect_shown(
        "{\"target_groups\":[1,{\"affinity\":[2]},{\"affinity\":{\"secret\":[3]}}],\"shared_state\":null,"
        "\"unknown\":{\"secret\":4}}",
        "{\"target_groups\":[1,{\"affinity\":[2]},{\"affinity\":{\"secret\":[3]}}],\"shared_state\":null,"
        "\"unknown\":{\"secret\":4}}");
}

static void a_digest_tells_twelve_bits_of_a_secret(void **state)
{
#define SHARED(password) "{\"shared_state\":{\"url\":\"redis://:" password "@h\"}}"
    uint64_t a = digest_of(SHARED("a")), b = digest_of(SHARED("b"));
    assert_int_not_equal(a, b);
    assert_int_equal(a >> 12, b >> 12);
    assert_int_not_equal(digest_of("{\"workers\":1}") >> 12, digest_of("{\"workers\":2}") >> 12);
}

static void expect_refused(const char *yaml, const char *path)
{
    struct text faults = faults_of("f", slice_str(yaml));
    assert_non_null(strstr(faults.data, path));
    assert_non_null(strstr(faults.data, "has \"<secret>\", which stands for a secret that is not shown"));
    text_fini(&faults);
}

static void a_mark_that_stands_for_nothing_is_refused(void **state)
{
    static const char *const marks[] = {
        "affinity: {type: cookie, id: signed, secret: <secret>}",
        "affinity: {type: cookie, secret: \"<secret>\"}",
    };
    for (size_t i = 0; i < iso_countof(marks); i++) {
        struct text yaml;
        text_init(&yaml);
        text_printf(&yaml,
                    "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: web}]}]\n"
                    "target_groups: [{name: web, %s, targets: [{ip: 10.0.0.1, port: 80}]}]\n",
                    marks[i]);
        expect_refused(yaml.data, "/target_groups/0/affinity/secret");
        text_fini(&yaml);
    }
    expect_refused("shared_state: {url: \"redis://:<secret>@h\"}\n", "/shared_state/url");
}

static void a_faulty_secret_is_not_quoted(void **state)
{
    static const char *const faulty[] = {
        ("target_groups: [{name: web, affinity: {type: cookie, secret: \"ge;heim\"}, targets: [{ip: "
         "10.0.0.1, "
         "port: 80}]}]\n"),
        "store: {url: \"mysql://u:geheim@h\"}\n",
        "l4: {hash_seed: geheim}\n",
        ("load_balancers: [{name: l, listeners: [{port: 80, rules: [{deny: {}, match: {headers: {x-token: \" "
         "geheim\"}}}]}]}]\n"),
    };
    for (size_t i = 0; i < iso_countof(faulty); i++) {
        struct text faults = faults_of("f", slice_str(faulty[i]));
        assert_null(strstr(faults.data, "heim"));
        assert_non_null(strstr(faults.data, "expected"));
        text_fini(&faults);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_shown_without_its_passwords),
        cmocka_unit_test(keys_within_pem_are_hidden_and_certificates_shown),
        cmocka_unit_test(fields_that_let_somebody_in_are_told_by_their_names),
        cmocka_unit_test(secrets_are_hidden_wherever_they_stand),
        cmocka_unit_test(values_of_the_wrong_kind_are_written_as_they_are),
        cmocka_unit_test(a_digest_tells_twelve_bits_of_a_secret),
        cmocka_unit_test(a_faulty_secret_is_not_quoted),
        cmocka_unit_test(a_mark_that_stands_for_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
