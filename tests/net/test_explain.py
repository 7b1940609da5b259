# SPDX-License-Identifier: Apache-2.0
"""isobar explain (K3): what it says of a request is what the request meets."""
import http.client
import json
import random
import urllib.parse

import pytest

from harness.ports import free_port
from harness.process import wait_until


def explain(stand, config_file, url, *args, status=0):
    done, out, err = stand.isobar("explain", url, "--config", config_file, "--json", *args)
    assert done == status, err
    return json.loads(out) if status == 0 else err


def everything(stand):
    """A configuration with rules of every kind in front of groups that hash, draw, take turns and bind."""
    backends = {name: stand.backend(name=name) for name in ("a", "b", "c", "d")}
    targets = [{**backend.target, "weight": weight} for backend, weight in zip(backends.values(), (100, 100, 50, 0))]
    config = stand.config(targets, trusted_proxies=["127.0.0.1/32"])
    group = config["target_groups"][0]
    config["target_groups"] += [
        {**group, "name": "hash", "algorithm": "ip_hash"},
        {**group, "name": "ring", "algorithm": "consistent_hash", "hash_key": {"header": "x-user"}},
        {**group, "name": "table", "algorithm": "maglev", "hash_key": "path"},
        {**group, "name": "wrr", "algorithm": "weighted_round_robin"},
        {**group, "name": "p2c", "algorithm": "p2c_least_request",
         "affinity": {"type": "cookie", "cookie": "stay", "id": "plain"}},
        {**group, "name": "none", "targets": [{**targets[0], "weight": 0}]},
    ]
    config["load_balancers"][0]["listeners"][0]["rules"] = [
        {"match": {"path_prefix": "/hash"}, "forward": [{"target_group": "hash"}]},
        {"match": {"path_prefix": "/hash/deep", "methods": ["POST"]}, "forward": [{"target_group": "ring"}]},
        {"match": {"path_prefix": "/ring"}, "forward": [{"target_group": "ring"}]},
        {"match": {"path_regex": "^/t[0-9]+$"}, "forward": [{"target_group": "table"}]},
        {"match": {"host": "*.shop.example"}, "forward": [{"target_group": "wrr", "weight": 90},
                                                          {"target_group": "p2c", "weight": 10}]},
        {"match": {"host": "a.shop.example", "headers": {"x-beta": "1"}}, "forward": [{"target_group": "p2c"}]},
        {"match": {"query": {"go": "*"}}, "redirect": {"scheme": "https", "host": "new.example"}},
        {"match": {"cookies": {"stay": "*"}}, "forward": [{"target_group": "p2c"}]},
        {"match": {"path": "/fixed"}, "respond": {"status": 203, "body": "fixed"}},
        {"match": {"path_prefix": "/secret"}, "deny": {"status": 403}},
        {"match": {"path": "/none"}, "forward": [{"target_group": "none"}]},
        {"match": {"source": ["198.51.100.0/24"], "path": "/from"}, "forward": [{"target_group": "hash"}]},
    ]
    return backends, config


def random_request(dice, backends):
    fields = []
    if dice.random() < 0.4:
        fields.append(("X-Beta", dice.choice("12")))
    if dice.random() < 0.5:
        fields.append(("X-User", f"user-{dice.randrange(1000)}"))
    if dice.random() < 0.3:
        stay = dice.choice([f"127.0.0.1:{backend.target['port']}" for backend in backends.values()] + ["10.0.0.1:1"])
        fields.append(("Cookie", f"x=1; stay={stay}"))
    if dice.random() < 0.7:
        fields.append(("X-Forwarded-For", f"198.51.{dice.choice((100, 101))}.{dice.randrange(256)}"))
    host = dice.choice(["a.shop.example", "b.shop.example", "shop.example", "A.SHOP.example."])
    path = dice.choice(["/", "/hash", "/hash/deep/x", "/hashed", f"/ring/{dice.randrange(9)}", f"/t{dice.randrange(999)}", "/t",
                        "/fixed", "/secret/x", "/none", "/from", "/x?go=1&a=b", "/x?gone=1", "/%2f/..//x"])
    return dice.choice(["GET", "POST", "DELETE"]), host, path, fields


def test_a_request_meets_what_explain_says(stand):
    backends, config = everything(stand)
    proxy = stand.serve(config)
    names = {f"127.0.0.1:{backend.target['port']}": name for name, backend in backends.items()}
    port = config["load_balancers"][0]["listeners"][0]["port"]
    dice = random.Random(3)
    seen = set()
    for _ in range(120):
        method, host, path, fields = random_request(dice, backends)
        args = [part for name, value in fields for part in ("-H", f"{name}: {value}")]
        said = explain(stand, proxy.file, f"http://{host}:{port}{path}", "-X", method, *args)
        got = stand.ask(method, path, fields, host=f"{host}:{port}")
        what = (method, host, path, fields, said)
        seen.add(said["action"])
        if said["answer"]:
            assert got.status == said["answer"]["status"], what
            assert got.get("X-Backend") is None, what
            assert got.get("Location") == said["answer"]["location"], what
            continue
        groups = said["forward"]
        assert abs(sum(group["share_pct"] for group in groups) - 100) < 0.1, what
        if groups[0]["fails"]:
            assert got.status == groups[0]["fails"]["status"], what
            seen.add("fails")
            continue
        assert got.status == 200, what
        possible = set()
        for group in groups:
            if group["chosen"]:
                possible.add(names[group["chosen"]])
                seen.add("bound" if group["affinity"] and group["affinity"]["followed"] else "chosen")
            else:
                possible |= {names[c["target"]] for c in group["candidates"] if c["share_pct"] > 0}
        assert got.get("X-Backend") in possible, what
    assert seen == {"forward", "redirect", "respond", "deny", "fails", "chosen", "bound"}


@pytest.mark.parametrize("algorithm,shares", [("round_robin", (33.3, 33.3, 33.3, 0)), ("weighted_round_robin", (40, 40, 20, 0)),
                                              ("random", (40, 40, 20, 0)), ("least_connections", (40, 40, 20, 0))])
def test_methods_that_draw_or_take_turns_are_shown_by_their_shares(stand, algorithm, shares):
    _, config = everything(stand)
    config["target_groups"][0]["algorithm"] = algorithm
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    group = explain(stand, proxy.file, f"http://t.example:{port}/")["forward"][0]
    assert group["chosen"] is None and group["algorithm"] == algorithm
    for candidate, share in zip(group["candidates"], shares):
        assert abs(candidate["share_pct"] - share) < 3, group


def test_every_rule_passed_over_says_why(stand):
    _, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    said = explain(stand, proxy.file, f"http://a.shop.example:{port}/hash/deep/x", "-H", "X-Beta: 2")
    rules = {rule["index"]: rule for rule in said["rules"]}
    assert [rule["index"] for rule in said["rules"]][:2] == [5, 4]
    assert rules[5]["why"] == 'header x-beta is not "1"'
    assert rules[4]["taken"] and [rule["index"] for rule in said["rules"] if rule["taken"]] == [4]
    assert rules[0]["why"] == "it would take it, but the one taken goes before it"
    assert rules[1]["why"] == "another method"
    assert rules[2]["why"] == "another path"
    assert rules[6]["why"] == "there is no query parameter go"
    assert rules[7]["why"] == "there is no cookie stay"
    assert rules[11]["why"] == "another path"
    assert len(rules) == 12


def test_disabled_targets_backups_and_the_order_of_retries(stand):
    _, config = everything(stand)
    group = config["target_groups"][1]
    group["retry"] = {"attempts": 3}
    group["targets"] = [{"ip": "10.0.0.1", "port": 80}, {"ip": "10.0.0.2", "port": 80, "enabled": False},
                        {"ip": "10.0.0.3", "port": 80, "backup": True}, {"ip": "10.0.0.4", "port": 80}]
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    said = explain(stand, proxy.file, f"http://t.example:{port}/hash", "--from", "203.0.113.9")["forward"][0]
    candidates = {candidate["target"]: candidate for candidate in said["candidates"]}
    assert candidates["10.0.0.2:80"]["why"] == "it is disabled" and candidates["10.0.0.2:80"]["state"] == "draining"
    assert candidates["10.0.0.3:80"]["why"] == "a backup: others are usable"
    assert said["hash_of"] == "client_ip 203.0.113.9"
    assert {said["chosen"], said["retries_go_to"][0]} == {"10.0.0.1:80", "10.0.0.4:80"}


def test_a_tcp_listener_and_the_text_form(stand):
    backend = stand.backend(name="a")
    config = stand.config(backend, {"protocol": "TCP"}, {"protocol": "TCP"})
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    status, out, _ = stand.isobar("explain", f"tcp://127.0.0.1:{port}", "--config", proxy.file, "--from", "2001:db8::1")
    assert status == 0
    assert f"* 127.0.0.1:{backend.target['port']}" in out and "from 2001:db8::1" in out


def test_what_the_parser_refuses_and_what_no_listener_takes(stand):
    _, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    said = explain(stand, proxy.file, f"http://t.example:{port}/", "-H", "Transfer-Encoding: chunked", "-H", "Content-Length: 1")
    assert said["action"] == "error" and said["answer"]["status"] == 400 and said["rules"] == []
    assert "where no listener is" in explain(stand, proxy.file, f"http://t.example:{free_port()}/", status=1)
    assert "speaks HTTP" in explain(stand, proxy.file, f"https://t.example:{port}/", status=1)
    assert "control character" in explain(stand, proxy.file, f"http://t.example:{port}/", "-H", "A: b\r\nC: d", status=1)
    assert "absolute URL" in explain(stand, proxy.file, "/x", status=1)
    assert stand.isobar("explain", "http://t.example/")[0] == 2
    assert stand.isobar("explain", "--config", proxy.file)[0] == 2


def ask_live(proxy, method="GET", body=None, **query):
    connection = http.client.HTTPConnection(*proxy.admin, timeout=30)
    try:
        path = "/v1/explain" + ("?" + urllib.parse.urlencode(query) if query else "")
        connection.request(method, path, body=body and json.dumps(body), headers={"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def is_idle(proxy):
    """What was answered is also counted and closed."""
    assert wait_until(lambda: not proxy.metrics().total("target_in_flight") and not proxy.metrics().total("listener_active_connections"))


def test_a_running_process_explains_with_its_states_loads_and_sessions(stand):
    backends, config = everything(stand)
    group = config["target_groups"][1]
    gone = stand.backend(name="gone")
    gone.stop()
    group.update(affinity={"type": "client_ip"}, algorithm="least_connections", health_check={"type": "tcp", "interval_s": 1})
    group["targets"] = [backends["a"].target, backends["b"].target, gone.target]
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    url = f"http://t.example:{port}/hash"
    status, said = ask_live(proxy, url=url)
    assert status == 200, said
    candidates = {c["target"]: c for c in said["forward"][0]["candidates"]}
    assert candidates[f"127.0.0.1:{gone.target['port']}"]["why"] == "pending"
    assert said["forward"][0]["chosen"] is None and not said["forward"][0]["affinity"]["followed"]
    served = stand.ask("GET", "/hash", host="t.example").get("X-Backend")
    status, said = ask_live(proxy, url=url)
    bound = f"127.0.0.1:{backends[served].target['port']}"
    assert said["forward"][0]["affinity"] == {"type": "client_ip", "bound_to": bound, "followed": True,
                                              "ttl_left_s": said["forward"][0]["affinity"]["ttl_left_s"],
                                              "why": f"the client is bound to {bound} by its address"}
    assert said["forward"][0]["chosen"] == bound
    is_idle(proxy)
    status, said = ask_live(proxy, "POST", {"url": url, "method": "POST", "from": "127.0.0.1",
                                            "headers": {"X-Forwarded-For": "198.51.100.9", "X-User": ["u1", "u2"]}})
    assert status == 200 and said["request"]["client_ip"] == "198.51.100.9" and said["forward"][0]["chosen"] is None


def test_explaining_changes_no_counter_no_turn_and_no_session(stand):
    backends, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]

    def counted():
        return [(name, labels, value) for name, labels, value in proxy.metrics().samples
                if name.startswith(("isobar_target_", "isobar_listener_", "isobar_rule")) and "time" not in name]

    turns = [stand.ask(host="t.example").get("X-Backend") for _ in range(2)]
    is_idle(proxy)
    before = counted()
    for i in range(40):
        assert ask_live(proxy, url=f"http://t.example:{port}/", method="GET")[0] == 200
    assert counted() == before
    turns += [stand.ask(host="t.example").get("X-Backend") for _ in range(4)]
    assert turns[:3] == turns[3:]


def test_what_is_wrong_with_a_question_is_said(stand):
    _, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    url = f"http://t.example:{port}/"
    for path, query in (("url", {"method": "GET"}), ("/url", {"url": "nonsense"}), ("from", {"url": url, "from": "me"}),
                        ("/listener", {"url": url, "listener": "none"})):
        status, said = ask_live(proxy, **query)
        assert (status, said["error"]["path"]) == (400, path), said
    for path, body in (("/headers/A", {"url": url, "headers": {"A": 1}}), ("/url", {"url": 5}), ("/host", {"url": url, "host": "x"}),
                       ("/headers/0", {"url": url, "headers": {"A": "b\r\nC: d"}})):
        status, said = ask_live(proxy, "POST", body)
        assert (status, said["error"]["path"]) == (400, path), said


@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_window"])
def test_rate_limits_are_asked_without_being_used_F1(stand, algorithm):
    backend = stand.backend()
    config = stand.config(backend)
    listener = config["load_balancers"][0]["listeners"][0]
    listener["rules"] = [{"match": {"path_prefix": "/"}, "forward": [{"target_group": "web"}],
                          "rate_limit": {"key": ["client_ip", "header:x-user"], "requests": 3, "per_s": 60, "algorithm": algorithm}}]
    proxy = stand.serve(config)
    question = {"url": f"http://t.example:{listener['port']}/", "headers": {"X-User": "ann"}}
    for used in range(3):
        for _ in range(5):
            said = ask_live(proxy, "POST", question)[1]
            assert said["action"] == "forward" and said["rate_limit"]["passes"]
            assert said["rate_limit"]["remaining"] == 2 - used  # what would be left after it
        assert stand.ask(fields=[("X-User", "ann")]).status == 200
    said = ask_live(proxy, "POST", question)[1]
    assert said["action"] == "rate_limit" and said["answer"]["status"] == 429 and said["forward"] == []
    assert not said["rate_limit"]["passes"] and said["rate_limit"]["retry_after_ms"] > 0
    assert said["rate_limit"]["key"] == ["client_ip", "header:x-user"]
    assert stand.ask(fields=[("X-User", "ann")]).status == 429
    assert ask_live(proxy, "POST", {**question, "headers": {"X-User": "bob"}})[1]["rate_limit"]["remaining"] == 2
