# SPDX-License-Identifier: Apache-2.0
"""Rules (A2, A10): which one takes a request, and what it does with it."""
import collections

import pytest

NAMES = ["default", "r0", "r1", "r2", "r3", "r4", "r5"]


def routed(stand, rules, **top):
    """isobar with a target group per name and the given rules; returns the backends by name."""
    backends = {name: stand.backend(name=name) for name in NAMES}
    config = stand.config(backends["default"], **top)
    for name in NAMES[1:]:
        config["target_groups"].append({**config["target_groups"][0], "name": name, "targets": [backends[name].target]})
    config["load_balancers"][0]["listeners"][0]["rules"] = rules
    stand.serve(config)
    return backends


def to(name, **match):
    return {"match": match, "forward": [{"target_group": name}]}


def where(stand, target="/", host="t.example", fields=(), method="GET"):
    response = stand.ask(method, target, fields, host=host)
    return response.get("X-Backend") if response.status == 200 else response.status


def test_hosts_exact_before_wildcard_before_any(stand):
    routed(stand, [to("r0", path_prefix="/"), to("r1", host="*.example"), to("r2", host="*.b.example"),
                   to("r3", host="a.b.example")])
    for host, wanted in (("a.b.example", "r3"), ("A.B.EXAMPLE", "r3"), ("a.b.example:8080", "r3"), ("a.b.example.", "r3"),
                         ("x.b.example", "r2"), ("y.x.b.example", "r2"), ("b.example", "r1"), ("example", "r0"),
                         ("other", "r0"), ("[::1]", "r0")):
        assert where(stand, host=host) == wanted, host


def test_paths_exact_before_longer_prefix_before_regex(stand):
    routed(stand, [to("r0", path_regex="^/a"), to("r1", path_prefix="/a"), to("r2", path_prefix="/a/b"),
                   to("r3", path="/a/b/c"), to("r4", path_regex=r"\.php$")])
    for target, wanted in (("/a/b/c", "r3"), ("/a/b/c?q=1", "r3"), ("/a/b/c/", "r2"), ("/a/b", "r2"), ("/a/bc", "r1"),
                           ("/a", "r1"), ("/a?x", "r1"), ("/ab", "r0"), ("/b.php", "r4"), ("/b.php?x=.html", "r4"),
                           ("/b", "default")):
        assert where(stand, target) == wanted, target


def test_methods_headers_cookies_and_queries(stand):
    routed(stand, [to("r0", methods=["POST", "PURGE"]), to("r1", headers={"x-beta": "1"}), to("r2", cookies={"group": "b"}),
                   to("r3", query={"v": "2"}), to("r4", headers={"x-any": "*"})])
    assert where(stand, method="POST") == "r0"
    assert where(stand, method="PURGE") == "r0"
    assert where(stand, fields=[("X-Beta", "1")]) == "r1"
    assert where(stand, fields=[("X-Beta", "2")]) == "default"
    assert where(stand, fields=[("Cookie", "a=1; group=b")]) == "r2"
    assert where(stand, fields=[("Cookie", "group=bb")]) == "default"
    assert where(stand, "/?a=1&v=2") == "r3"
    assert where(stand, "/?v=22") == "default"
    assert where(stand, fields=[("x-any", "whatever")]) == "r4"


def test_all_conditions_of_a_rule_must_hold_and_more_conditions_win(stand):
    routed(stand, [to("r0", path_prefix="/v2/"), to("r1", path_prefix="/v2/", methods=["GET"]),
                   to("r2", path_prefix="/v2/", methods=["GET"], headers={"x-beta": "1"})])
    assert where(stand, "/v2/x", method="DELETE") == "r0"
    assert where(stand, "/v2/x") == "r1"
    assert where(stand, "/v2/x", fields=[("x-beta", "1")]) == "r2"


def test_sources_match_the_client_behind_trusted_proxies(stand):
    routed(stand, [to("r0", source=["198.51.100.0/24", "2001:db8::/32"])], trusted_proxies=["127.0.0.1/32"])
    assert where(stand) == "default"
    assert where(stand, fields=[("X-Forwarded-For", "198.51.100.7")]) == "r0"
    assert where(stand, fields=[("X-Forwarded-For", "2001:db8::7")]) == "r0"
    assert where(stand, fields=[("X-Forwarded-For", "198.51.101.7")]) == "default"


def test_among_equals_the_order_of_the_file_decides(stand):
    routed(stand, [to("r0", path_prefix="/x"), to("r1", path_prefix="/x")])
    assert where(stand, "/x") == "r0"


def test_no_rule_and_no_default_is_404(stand):
    backend = stand.backend()
    config = stand.config(backend)
    listener = config["load_balancers"][0]["listeners"][0]
    del listener["default_target_group"]
    listener["rules"] = [{"match": {"path": "/only"}, "forward": [{"target_group": "web"}]}]
    stand.serve(config)
    assert where(stand, "/only") == "backend"
    client = stand.client()
    for _ in range(2):
        client.request(target="/other")
        response = client.read_response()
        assert response.status == 404 and not response.closes


def test_A10_weights_split_between_target_groups(stand):
    routed(stand, [{"match": {"path_prefix": "/"}, "forward": [
        {"target_group": "r0", "weight": 90}, {"target_group": "r1", "weight": 10}, {"target_group": "r2", "weight": 0}]}])
    client = stand.client()
    counts = collections.Counter()
    for _ in range(1000):
        client.request()
        counts[client.read_response().get("X-Backend")] += 1
    assert set(counts) == {"r0", "r1"}
    assert 850 <= counts["r0"] <= 945


def test_redirects(stand):
    routed(stand, [
        {"match": {"path": "/s"}, "redirect": {"scheme": "https"}},
        {"match": {"path": "/h"}, "redirect": {"host": "new.example", "status": 301}},
        {"match": {"path_prefix": "/p/"}, "redirect": {"path": "/moved{path}", "status": 302}},
        {"match": {"path": "/port"}, "redirect": {"scheme": "http", "host": "new.example", "port": 8081, "status": 307}},
    ])
    for target, status, location in (
            ("/s?a=b", 308, "https://t.example/s?a=b"), ("/h?q", 301, "http://new.example/h?q"),
            ("/p/x", 302, "http://t.example/moved/p/x"), ("/port", 307, "http://new.example:8081/port")):
        response = stand.ask(target=target)
        assert (response.status, response.get("Location")) == (status, location)
    client = stand.client()
    client.request("POST", "/s", body=b"a body that nobody reads")
    assert client.read_response().status == 308
    client.request(target="/")
    assert client.read_response().get("X-Backend") == "default"


def test_a_whole_listener_may_redirect(stand):
    backend = stand.backend()
    config = stand.config(backend)
    del config["load_balancers"][0]["listeners"][0]["default_target_group"]
    config["load_balancers"][0]["listeners"][0]["redirect"] = {"scheme": "https"}
    stand.serve(config)
    response = stand.ask(target="/x?y", host="shop.example:8080")
    assert response.status == 308 and response.get("Location") == "https://shop.example/x?y"


def test_redirects_cannot_be_split(stand):
    backends = routed(stand, [{"match": {"path_prefix": "/p"}, "redirect": {"scheme": "https"}}])
    response = stand.ask(target="/p/%0d%0aSet-Cookie:%20x=1?%0d%0a")
    assert response.status == 308 and response.all("Set-Cookie") == []
    assert backends["default"].raw == b""


def test_fixed_responses_and_denials(stand):
    routed(stand, [
        {"match": {"path": "/robots.txt"}, "respond": {"status": 200, "body": "User-agent: *\n",
                                                       "headers": {"Cache-Control": "max-age=60"}}},
        {"match": {"path": "/teapot"}, "respond": {"status": 418, "body": "short and stout"}},
        {"match": {"path": "/empty"}, "respond": {"status": 204}},
        {"match": {"path_prefix": "/.git"}, "deny": {"status": 403}},
    ])
    client = stand.client()
    client.request(target="/robots.txt")
    response = client.read_response()
    assert response.status == 200 and response.body == b"User-agent: *\n" and response.get("Cache-Control") == "max-age=60"
    client.request("HEAD", "/robots.txt")
    response = client.read_response("HEAD")
    assert response.status == 200 and response.length == 14
    client.request(target="/teapot")
    assert client.read_response().body == b"short and stout"
    client.request(target="/empty")
    assert client.read_response().status == 204
    client.request(target="/.git/config")
    assert client.read_response().status == 403
    client.request()
    assert client.read_response().get("X-Backend") == "default"


def test_A3_rewrites_of_requests_and_responses(stand):
    backends = routed(stand, [{
        "match": {"path_prefix": "/api/"}, "forward": [{"target_group": "r0"}],
        "rewrite": {"path_prefix": "/v2/", "host": "internal.example", "set_headers": {"X-Set": "new"},
                    "add_headers": {"X-Add": "second"}, "remove_headers": ["X-Secret", "Cookie"],
                    "response": {"set_headers": {"Server": "isobar-test"}, "add_headers": {"X-Resp": "added"},
                                 "remove_headers": ["X-Backend"]}}}])
    client = stand.client()
    client.request(target="/api/users?id=1", fields=[("X-Set", "old"), ("X-Set", "older"), ("X-Add", "first"),
                                                     ("x-secret", "1"), ("Cookie", "a=b")])
    response = client.read_response()
    assert response.status == 200 and response.body == b"r0"
    assert response.get("Server") == "isobar-test" and response.get("X-Resp") == "added" and response.get("X-Backend") is None
    request = backends["r0"].requests[0]
    assert request.target == "/v2/users?id=1" and request.get("Host") == "internal.example"
    assert request.get("X-Set") == "new" and request.all("X-Add") == ["first", "second"]
    assert request.all("X-Secret") == [] and request.all("Cookie") == []
    assert request.get("X-Forwarded-Host") == "t.example"


@pytest.mark.parametrize("prefix,replacement,target,wanted", [
    ("/a", "/", "/a", "/"), ("/a", "/", "/a/b", "/b"), ("/a/", "/", "/a/b", "/b"), ("/a", "/x/y", "/a", "/x/y"),
    ("/a", "/x", "/a/b?c", "/x/b?c"), ("/", "/x", "/b", "/x/b"),
])
def test_A3_path_prefixes_are_replaced_without_doubled_or_lost_slashes(stand, prefix, replacement, target, wanted):
    backends = routed(stand, [{"match": {"path_prefix": prefix}, "forward": [{"target_group": "r0"}],
                               "rewrite": {"path_prefix": replacement}}])
    assert where(stand, target) == "r0"
    assert backends["r0"].requests[0].target == wanted


def test_a_hostile_path_does_not_stall_a_regex(stand):
    routed(stand, [to("r0", path_regex="^/(a+)+$")])
    assert where(stand, "/aaaa") == "r0"
    assert where(stand, "/" + "a" * 5000 + "!") == "default"
