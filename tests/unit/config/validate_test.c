/* SPDX-License-Identifier: Apache-2.0 */
/* What keys mean together. */
#include "faults.h"

#define TARGET "{ip: 10.0.0.1, port: 80}"
#define GROUP  "target_groups: [{name: g, targets: [" TARGET "]}]\n"
#define LISTEN "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"
/* On line 2, behind a load balancer on line 1. */
#define LISTENER(keys)   "load_balancers: [{name: l, listeners: [\n{" keys "}]}]\n" GROUP
#define RULES(rules)     "load_balancers: [{name: l, listeners: [{port: 80, rules: [\n" rules "]}]}]\n" GROUP
#define GROUP_WITH(keys) LISTEN "target_groups: [{name: g,\n" keys ", targets: [" TARGET "]}]\n"
#define TARGETS(targets) LISTEN "target_groups: [{name: g, targets: [\n" targets "]}]\n"
#define FORWARD          "forward: [{target_group: g}]"

static void references_must_exist_C125(void **state)
{
    expect_faults(
        "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: gg}]}]\n" GROUP,
        "f:1:73: /load_balancers/0/listeners/0/default_target_group: is \"gg\", but no target group has that "
        "name; did you mean \"g\"?\n");
    expect_faults(
        LISTEN,
        "f:1:73: /load_balancers/0/listeners/0/default_target_group: is \"g\", but no target group has "
        "that name; there are no target_groups\n");
    expect_faults(RULES("{forward: [{target_group: other}]}"),
                  "f:2:27: /load_balancers/0/listeners/0/rules/0/forward/0/target_group: is \"other\", but "
                  "no target group "
                  "has that name\n");
}

static void http2_belongs_to_listeners_that_can_speak_it(void **state)
{
    expect_faults(
        "load_balancers: [{name: l, listeners: [{port: 80, protocol: H2C, http2: {cleartext: true}, "
        "default_target_group: g}]}]\n" GROUP,
        "f:1:85: /load_balancers/0/listeners/0/http2/cleartext: belongs to listeners with protocol: "
        "HTTP, but this one has H2C, which is nothing else\n");
    config_free(load_good("load_balancers: [{name: l, listeners: [{port: 80, protocol: H2C, http2: "
                          "{max_streams: 7}, default_target_group: g}]}]\n" GROUP));
}

static void references_become_indexes(void **state)
{
    struct config *config =
        load_good("load_balancers: [{name: l, listeners: [{port: 80, default_target_group: b, rules: "
                  "[{match: {path: /a}, "
                  "forward: [{target_group: b, weight: 3}, {target_group: a, weight: 0}]}]}, {port: 81, "
                  "redirect: {scheme: "
                  "https}}]}]\n"
                  "target_groups: [{name: a, targets: [" TARGET "]}, {name: b, targets: [" TARGET "]}]\n");
    const struct config_listener *listeners = config->load_balancers[0].listeners;
    assert_int_equal(listeners[0].default_target_group, 1);
    assert_int_equal(listeners[1].default_target_group, -1);
    assert_true(listeners[1].redirect.set);
    assert_int_equal(listeners[1].redirect.status, 308);
    const struct config_rule *rule = &listeners[0].rules[0];
    assert_int_equal(rule->n_forward, 2);
    assert_int_equal(rule->forward[0].target_group, 1);
    assert_int_equal(rule->forward[0].weight, 3);
    assert_int_equal(rule->forward[1].target_group, 0);
    assert_false(rule->redirect.set || rule->respond.set || rule->deny_status);
    config_free(config);
}

static void names_and_endpoints_are_unique(void **state)
{
    expect_faults(
        "load_balancers:\n"
        "  - { name: l, listeners: [{ port: 80, default_target_group: g }] }\n"
        "  - { name: l, vip: 10.0.0.9, listeners: [{ name: x, port: 80, default_target_group: g }] }\n"
        "  - { name: m, listeners: [{ name: x, port: 80, default_target_group: g }] }\n"
        "target_groups:\n"
        "  - { name: g, targets: [" TARGET "] }\n"
        "  - { name: g, targets: [" TARGET "] }\n",
        "f:3:13: /load_balancers/1/name: is \"l\", a name that is taken on line 2; expected a unique one\n"
        "f:4:36: /load_balancers/2/listeners/0/name: is \"x\", a name that is taken on line 3; expected a "
        "unique "
        "one\n"
        "f:4:45: /load_balancers/2/listeners/0/port: listens on :80, as does the listener on line 2; "
        "expected "
        "another address or port\n"
        "f:7:13: /target_groups/1/name: is \"g\", a name that is taken on line 6; expected a unique one\n");
}

static void one_address_on_two_ports_and_one_port_on_two_addresses_are_fine(void **state)
{
    config_free(load_good(
        "load_balancers:\n"
        "  - { name: a, vip: 10.0.0.1, listeners: [{ port: 80, default_target_group: g }, { port: 81, "
        "default_target_group: g }] }\n"
        "  - { name: b, vip: 10.0.0.2, listeners: [{ port: 80, default_target_group: g }] }\n" GROUP));
}

static void a_listener_needs_one_place_and_something_to_do(void **state)
{
    expect_faults(
        LISTENER("default_target_group: g"),
        "f:2:1: /load_balancers/0/listeners/0: has neither \"port\" nor \"unix\", expected one of them\n");
    expect_faults(LISTENER("port: 80, unix: x, default_target_group: g"),
                  "f:2:18: /load_balancers/0/listeners/0/unix: stands beside port, expected one of them\n");
    expect_faults(LISTENER("port: 80"),
                  "f:2:1: /load_balancers/0/listeners/0: would answer every request with 404, "
                  "expected default_target_group, rules or redirect\n");
    expect_faults(LISTENER("port: 80, redirect: {scheme: https}, default_target_group: g"),
                  "f:2:22: /load_balancers/0/listeners/0/redirect: answers every request, so "
                  "default_target_group and rules "
                  "would never be used; expected one or the other (a rule may have a redirect of its own)\n");
    expect_faults(LISTENER("port: 80, redirect: {status: 301}"),
                  "f:2:22: /load_balancers/0/listeners/0/redirect: leads back to the same place, expected "
                  "scheme, host, port "
                  "or path\n");
    expect_faults(
        LISTENER("port: 80, default_target_group: g, limits: {header_bytes: 1024}"),
        "f:2:60: /load_balancers/0/listeners/0/limits/header_bytes: uri_bytes is 8192 and header_bytes 1024, "
        "expected the head to have room for the URI\n");
}

static void others_reach_the_admin_listener_with_tokens_and_tls_only_G8(void **state)
{
    expect_faults("admin: { listen: \":8443\", token_file: t }\n" LISTEN GROUP,
                  "f:1:18: /admin/listen: is all addresses, :8443, which other machines can reach; expected "
                  "tls, or insecure: true to send tokens in the clear\n");
    config_free(load_good("admin: { listen: \":8443\", token_file: t, insecure: true }\n" LISTEN GROUP));
    config_free(
        load_good("admin: { listen: \":8443\", token_file: t, tls: { cert_file: c } }\n" LISTEN GROUP));
}

static void the_admin_listener_stays_on_this_machine(void **state)
{
    const char *why =
        ", which other machines can reach; expected a loopback address such as 127.0.0.1:8443, a unix "
        "socket, \"off\", or a token_file for authentication\n";
    static const struct {
        const char *listen, *shown;
    } cases[] = {
        {":8443", "all addresses, :8443"}, {"0.0.0.0:8443", "0.0.0.0:8443"}, {"192.0.2.1:1", "192.0.2.1:1"}};
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct text yaml, expected;
        text_init(&yaml);
        text_init(&expected);
        text_printf(&yaml, "admin: { listen: \"%s\" }\n" LISTEN GROUP, cases[i].listen);
        text_printf(&expected, "f:1:18: /admin/listen: is %s%s", cases[i].shown, why);
        expect_faults(yaml.data, expected.data);
        text_fini(&yaml);
        text_fini(&expected);
    }
    struct config *config = load_good("admin: { listen: off }\n" LISTEN GROUP);
    assert_null(config->admin.listen.text.ptr);
    config_free(config);
    config = load_good("admin: { listen: \"[::1]:0\" }\n" LISTEN GROUP);
    assert_string_equal(config->admin.listen.text.ptr, "[::1]:0");
    config_free(config);
}

static void a_listener_does_not_take_the_port_of_the_admin_listener(void **state)
{
    const char *fault =
        "f:2:8: /load_balancers/0/listeners/0/port: listens on :8443, as does the admin listener "
        "(admin.listen: 127.0.0.1:8443); expected another port for one of them\n";
    expect_faults(LISTENER("port: 8443, default_target_group: g"), fault);
    config_free(load_good("admin: {listen: off}\n" LISTENER("port: 8443, default_target_group: g")));
}

static void a_rule_has_exactly_one_action(void **state)
{
    expect_faults(RULES("{match: {path: /a}}"),
                  "f:2:1: /load_balancers/0/listeners/0/rules/0: has no action, expected one of "
                  "forward, redirect, respond, deny\n");
    expect_faults(
        RULES("{" FORWARD ", deny: {}, respond: {}}"),
        "f:2:38: /load_balancers/0/listeners/0/rules/0/deny: stands beside forward, expected one action\n"
        "f:2:51: /load_balancers/0/listeners/0/rules/0/respond: stands beside forward, expected one "
        "action\n");
    expect_faults(RULES("{forward: []}"),
                  "f:2:11: /load_balancers/0/listeners/0/rules/0/forward: is an empty list, expected "
                  "one target group at least\n");
    expect_faults(
        RULES("{forward: [{target_group: g}, {target_group: g}]}"),
        "f:2:46: /load_balancers/0/listeners/0/rules/0/forward/1/target_group: is \"g\" again, as on line 2; "
        "expected each target group once\n");
    expect_faults(RULES("{forward: [{weight: 65536}]}"),
                  "f:2:12: /load_balancers/0/listeners/0/rules/0/forward/0: has no \"target_group\": name of "
                  "the target "
                  "group\n"
                  "f:2:21: /load_balancers/0/listeners/0/rules/0/forward/0/weight: is the number 65536, "
                  "expected a whole "
                  "number from 0 to 65535\n");
    expect_faults(RULES("{redirect: {scheme: https, status: 300}}"),
                  "f:2:36: /load_balancers/0/listeners/0/rules/0/redirect/status: is the number 300, "
                  "expected one of 301, "
                  "302, 303, 307, 308\n");
    expect_faults(RULES("{respond: {status: 204, body: x}}"),
                  "f:2:31: /load_balancers/0/listeners/0/rules/0/respond/body: is given, but an answer with "
                  "status 204 has no "
                  "body\n");
}

static void a_rewrite_needs_something_to_act_on(void **state)
{
    expect_faults(
        RULES("{" FORWARD ", rewrite: {path_prefix: /}}"),
        "f:2:55: /load_balancers/0/listeners/0/rules/0/rewrite/path_prefix: stands in place of the match's "
        "path_prefix, but the match has none\n");
    expect_faults(RULES("{deny: {}, rewrite: {host: a}}"),
                  "f:2:21: warning: /load_balancers/0/listeners/0/rules/0/rewrite: changes what is "
                  "forwarded, but this rule "
                  "forwards nothing\n"
                  "f:3:24: warning: /target_groups/0/name: is used by no listener and no rule\n");
}

static void a_rule_behind_an_equal_one_is_a_warning(void **state)
{
    expect_faults(RULES("{match: {path: /a, methods: [GET]}, " FORWARD "},\n{match: {path: /a}, " FORWARD
                        "},\n"
                        "{match: {methods: GET, path: /a}, deny: {}}"),
                  "f:4:1: warning: /load_balancers/0/listeners/0/rules/2: never takes a request: the rule on "
                  "line 2 has the "
                  "same match\n");
    expect_faults(
        RULES("{name: a, match: {path: /a}, " FORWARD "},\n{name: a, match: {path: /b}, " FORWARD "}"),
        "f:3:8: /load_balancers/0/listeners/0/rules/1/name: is \"a\", the name of the rule on line 2; "
        "expected a "
        "unique one in this listener\n");
}

static void a_target_has_one_way_to_be_reached(void **state)
{
    expect_faults(TARGETS("{port: 80}"), "f:3:1: /target_groups/0/targets/0: has neither \"ip\" nor "
                                         "\"host\", \"srv\" or \"unix\", expected one of "
                                         "them\n");
    expect_faults(TARGETS("{ip: 10.0.0.1}"),
                  "f:3:1: /target_groups/0/targets/0: has no \"port\", expected the port to connect to\n");
    expect_faults(TARGETS("{ip: 10.0.0.1, unix: /x}"),
                  "f:3:22: /target_groups/0/targets/0/unix: stands beside ip, expected one way to "
                  "reach the target\n");
    expect_faults(
        TARGETS("{ip: \"::\", port: 80}"),
        "f:3:6: /target_groups/0/targets/0/ip: is an address to listen on, expected one to connect to\n");
    expect_faults(TARGETS("{ip: \"::ffff:10.0.0.1\", port: 80},\n" TARGET),
                  "f:4:1: /target_groups/0/targets/1: is 10.0.0.1:80, the target on line 3; expected each "
                  "target once\n");
}

static void a_target_may_be_a_name(void **state)
{
    struct config *config = load_good(
        TARGETS("{host: App.Internal., port: 80},\n{host: app.internal, port: 81},\n{srv: _http._tcp.app}"));
    const struct config_target *targets = config->target_groups[0].targets;
    assert_string_equal(targets[0].endpoint.text.ptr, "app.internal:80");
    assert_string_equal(targets[1].endpoint.text.ptr, "app.internal:81");
    assert_string_equal(targets[2].endpoint.text.ptr, "srv:_http._tcp.app");
    config_free(config);
    expect_faults(TARGETS("{host: app.internal}"),
                  "f:3:1: /target_groups/0/targets/0: has no \"port\", expected the port to connect to\n");
    expect_faults(
        TARGETS("{host: 10.0.0.1, port: 80}"),
        "f:3:8: /target_groups/0/targets/0/host: is the text \"10.0.0.1\", expected a host name such "
        "as app.internal; an address belongs to \"ip\"\n");
    expect_faults(
        TARGETS("{host: a..b, port: 80}"),
        "f:3:8: /target_groups/0/targets/0/host: is the text \"a..b\", expected a host name such as "
        "app.internal; an address belongs to \"ip\"\n");
    expect_faults(TARGETS("{host: a, ip: 10.0.0.1, port: 80}"),
                  "f:3:8: /target_groups/0/targets/0/host: stands beside ip, expected one way to reach the "
                  "target\n");
    expect_faults(
        TARGETS("{srv: _http._tcp.app, port: 80}"),
        "f:3:29: /target_groups/0/targets/0/port: stands beside srv, whose records have ports, which "
        "needs none\n");
    expect_faults(
        TARGETS("{srv: _http._tcp.app, weight: 3}"),
        "f:3:31: /target_groups/0/targets/0/weight: stands beside srv, whose records have weights\n");
    expect_faults(
        TARGETS("{srv: app.internal}"),
        "f:3:7: /target_groups/0/targets/0/srv: is the text \"app.internal\", expected the name of a "
        "service such as _http._tcp.app.internal\n");
    expect_faults(
        TARGETS("{host: a, port: 80},\n{host: A, port: 80}"),
        "f:4:1: /target_groups/0/targets/1: is a:80, the target on line 3; expected each target once\n");
}

static void name_servers_are_addresses(void **state)
{
    struct config *config =
        load_good("resolver: {servers: [10.0.0.2, \"10.0.0.3:5353\", \"::1\"]}\n" LISTEN GROUP);
    assert_string_equal(config->resolver.servers[0].ptr, "10.0.0.2:53");
    assert_string_equal(config->resolver.servers[1].ptr, "10.0.0.3:5353");
    assert_string_equal(config->resolver.servers[2].ptr, "[::1]:53");
    config_free(config);
    expect_faults(
        "resolver: {servers: ns.internal}\n" LISTEN GROUP,
        "f:1:21: /resolver/servers: is the text \"ns.internal\", expected an address with or without a "
        "port, such as 10.0.0.2, 10.0.0.2:5353 or [::1]:53\n");
    expect_faults("resolver: {min_ttl_s: 60, max_ttl_s: 5}\n" LISTEN GROUP,
                  "f:1:23: /resolver/min_ttl_s: min_ttl_s is longer than max_ttl_s\n");
}

static void one_name_is_what_its_targets_certificates_show(void **state)
{
    struct config *config = load_good(
        LISTEN "target_groups: [{name: g, protocol: HTTPS, targets: [{host: app.internal, port: 443}]}]\n");
    assert_string_equal(config->target_groups[0].tls.sni.ptr, "app.internal");
    config_free(config);
    expect_faults(
        LISTEN "target_groups: [{name: g, protocol: HTTPS, targets: [{host: a, port: 1},\n{host: b, port: "
               "1}]}]\n",
        "f:3:1: /target_groups/0/targets/1: is not the only name in the group, so which one certificates "
        "must show is open; expected tls.sni, or tls.verify: false\n");
}

static void weights_outside_their_bounds_are_refused_C110(void **state)
{
    expect_faults(TARGETS("{ip: 10.0.0.1, port: 80, weight: -1},\n{ip: 10.0.0.2, port: 80, weight: 65536},\n"
                          "{ip: 10.0.0.3, port: 80, weight: 9223372036854775808}"),
                  "f:3:34: /target_groups/0/targets/0/weight: is the number -1, expected a whole number from "
                  "0 to 65535\n"
                  "f:4:34: /target_groups/0/targets/1/weight: is the number 65536, expected a whole number "
                  "from 0 to 65535\n"
                  "f:5:34: /target_groups/0/targets/2/weight: is the number 9223372036854775808, expected a "
                  "whole number from "
                  "0 to 65535\n");
}

static void a_group_that_takes_no_work_is_a_warning_C110(void **state)
{
    expect_faults(TARGETS("{ip: 10.0.0.1, port: 80, weight: 0},\n{ip: 10.0.0.2, port: 80, enabled: false}"),
                  "f:2:36: warning: /target_groups/0/targets: none takes new work: 1 with weight 0, 1 "
                  "disabled; requests are "
                  "answered with 503\n");
    expect_faults(
        TARGETS(""),
        "f:2:36: warning: /target_groups/0/targets: has no targets: requests are answered with 503\n");
    expect_faults(TARGETS("{ip: 10.0.0.1, port: 80, backup: true}"), "");
}

static void maglev_has_room_for_its_targets_C112(void **state)
{
    struct text yaml;
    text_init(&yaml);
    text_printf(&yaml, LISTEN "target_groups:\n- name: g\n  algorithm: maglev\n  targets:\n");
    for (uint32_t i = 0; i < 70000; i++)
        text_printf(&yaml, "  - {ip: 10.%u.%u.%u, port: 80}\n", i >> 16, (i >> 8) & 255, (i & 255));
    expect_faults(
        yaml.data,
        "f:4:14: /target_groups/0/algorithm: has 70000 targets for the 65537 slots of its table, expected "
        "fewer\n");
    text_fini(&yaml);
}

static void settings_without_effect_are_told(void **state)
{
    expect_faults(GROUP_WITH("hash_key: path"), "f:3:11: warning: /target_groups/0/hash_key: has no effect: "
                                                "only consistent_hash and maglev have a choice "
                                                "of key\n");
    expect_faults(GROUP_WITH("health_check: {host: h}"),
                  "f:3:22: /target_groups/0/health_check/host: belongs to checks of type http, but the type "
                  "is tcp (the "
                  "default)\n");
    expect_faults(GROUP_WITH("health_check: {type: tcp, path: /h}"),
                  "f:3:33: /target_groups/0/health_check/path: belongs to checks of type http, but the type "
                  "is tcp\n");
    expect_faults(GROUP_WITH("health_check: {type: none, path: /h}"), "");
    expect_faults(GROUP_WITH("health_check: {interval_s: 1}"),
                  "f:3:28: warning: /target_groups/0/health_check/interval_s: a check may take 2000 ms and "
                  "the next is due "
                  "after 1000 ms\n");
    expect_faults(
        "trusted_proxies: [0.0.0.0/0]\n" LISTEN GROUP,
        "f:1:18: warning: /trusted_proxies: trusts every client, so anyone can claim any address in "
        "X-Forwarded-For\n");
}

static void a_configuration_that_serves_nothing_is_a_warning(void **state)
{
    expect_faults("workers: 1\n", "f:1:1: warning: has no listener: nothing will be served\n");
    expect_faults("load_balancers: [{name: l}]\n",
                  "f:1:1: warning: has no listener: nothing will be served\n"
                  "f:1:18: warning: /load_balancers/0: has no listeners: nothing arrives here\n");
}

static void targets_behind_the_packet_tier_keep_the_port_and_have_an_address(void **state)
{
    expect_faults(
        "l4: {interfaces: [eth0], reals: targets}\n"
        "load_balancers:\n"
        "  - {name: lb, vip: 203.0.113.10, listeners: [{port: 5432, protocol: TCP, "
        "default_target_group: db}]}\n"
        "target_groups:\n"
        "  - name: db\n"
        "    protocol: TCP\n"
        "    targets:\n"
        "      - {ip: 10.0.0.1, port: 5432}\n"
        "      - {ip: 10.0.0.2, port: 5433}\n"
        "      - {unix: /run/db}\n",
        "f:9:30: /target_groups/0/targets/1/port: is 5433, expected 5432, the port of lb/5432: l4.reals "
        "is targets, and packets keep their port\n"
        "f:10:9: /target_groups/0/targets/2: is no IP address, expected one: l4.reals is targets, and lb "
        "has a vip\n");
}

static void a_tunnel_ends_for_named_addresses_only(void **state)
{
    expect_faults("decap: {}\n", "f:1:8: /decap: has no interfaces, expected at least one, such as [eth0]\n"
                                 "f:1:8: /decap: has no vips, expected some: no load balancer has a vip\n");
    expect_faults("decap: {interfaces: [eth0], vips: [10.0.0.0/8]}\n",
                  "f:1:35: /decap/vips: has a prefix, expected whole addresses\n");
}

static void one_run_shows_all_faults_in_the_order_of_the_lines_G7(void **state)
{
    expect_faults("worker: 1\n"
                  "load_balancers:\n"
                  "  - name: l\n"
                  "    listeners: [{ port: 0, default_target_group: x }]\n"
                  "target_groups:\n"
                  "  - name: g g\n"
                  "    algorithm: rr\n"
                  "    targets: [{ ip: 10.0.0.1 }]\n",
                  "f:1:1: /worker: is not a key of a configuration, did you mean \"workers\"?\n"
                  "f:4:25: /load_balancers/0/listeners/0/port: is the number 0, expected a whole number from "
                  "1 to 65535\n"
                  "f:4:50: /load_balancers/0/listeners/0/default_target_group: is \"x\", but no target group "
                  "has that name\n"
                  "f:6:11: /target_groups/0/name: is the text \"g g\", expected a name of 1 to 128 letters, "
                  "digits and . _ - "
                  "/ : @\n"
                  "f:7:16: /target_groups/0/algorithm: is the text \"rr\", expected one of round_robin, "
                  "weighted_round_robin, "
                  "least_connections, p2c_least_request, random, ip_hash, consistent_hash, maglev\n"
                  "f:8:15: /target_groups/0/targets/0: has no \"port\", expected the port to connect to\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_must_exist_C125),
        cmocka_unit_test(references_become_indexes),
        cmocka_unit_test(http2_belongs_to_listeners_that_can_speak_it),
        cmocka_unit_test(names_and_endpoints_are_unique),
        cmocka_unit_test(one_address_on_two_ports_and_one_port_on_two_addresses_are_fine),
        cmocka_unit_test(a_listener_needs_one_place_and_something_to_do),
        cmocka_unit_test(others_reach_the_admin_listener_with_tokens_and_tls_only_G8),
        cmocka_unit_test(the_admin_listener_stays_on_this_machine),
        cmocka_unit_test(a_listener_does_not_take_the_port_of_the_admin_listener),
        cmocka_unit_test(a_rule_has_exactly_one_action),
        cmocka_unit_test(a_rewrite_needs_something_to_act_on),
        cmocka_unit_test(a_rule_behind_an_equal_one_is_a_warning),
        cmocka_unit_test(a_target_has_one_way_to_be_reached),
        cmocka_unit_test(a_target_may_be_a_name),
        cmocka_unit_test(name_servers_are_addresses),
        cmocka_unit_test(one_name_is_what_its_targets_certificates_show),
        cmocka_unit_test(weights_outside_their_bounds_are_refused_C110),
        cmocka_unit_test(a_group_that_takes_no_work_is_a_warning_C110),
        cmocka_unit_test(maglev_has_room_for_its_targets_C112),
        cmocka_unit_test(settings_without_effect_are_told),
        cmocka_unit_test(a_configuration_that_serves_nothing_is_a_warning),
        cmocka_unit_test(targets_behind_the_packet_tier_keep_the_port_and_have_an_address),
        cmocka_unit_test(a_tunnel_ends_for_named_addresses_only),
        cmocka_unit_test(one_run_shows_all_faults_in_the_order_of_the_lines_G7),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
