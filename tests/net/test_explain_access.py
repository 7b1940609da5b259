# SPDX-License-Identifier: Apache-2.0
"""Whatever may refuse a connection or a request is shown by explain with its verdict, and the verdict is the proxy's (K3)."""
import json
import random
import threading
import time

import pytest

from harness.backend import text_response
from harness.ports import free_port
from harness.process import wait_until
from harness.redis import SERVER, Redis
from harness.wire import Closed, connect
from test_api_v1 import Api
from test_basic_auth import USERS, credentials, password_file
from test_jwt import Keys

TOKENS = {
    "good": {}, "other": {"sub": "zoe"}, "expired": {"exp": 1000}, "not_yet": {"nbf": 4000000000}, "no_exp": {"exp": None},
    "audience": {"aud": "them"},
}


def explain(proxy, url, method="GET", fields=(), **more):
    headers = {}
    for name, value in fields:
        headers.setdefault(name, []).append(value)
    status, _, said = Api(proxy)("POST", "/v1/explain", {"url": url, "method": method, "headers": headers, **more})
    assert status == 200, said
    return said


def verdicts(said):
    return {stage["stage"]: stage["verdict"] for stage in said["stages"]}


def everything(stand):
    """Rules that refuse for every reason there is, one by one and together."""
    backends = {backend.label: name for name, backend in zip("abc", stand.backends_named("a", "b", "c"))}
    keys = Keys(stand.folder)
    targets = [{"ip": label.split(":")[0], "port": int(label.split(":")[1])} for label in backends]
    sources = {"allow": ["198.51.0.0/16"], "deny": ["198.51.100.0/25"]}
    jwt = {"jwks_file": keys.file, "claims": {"X-User": "sub"}, "audience": ["us"]}
    limit = {"requests": 3, "per_s": 3600}
    ring = [{"target_group": "ring"}]
    config = stand.config(targets, listener={"limits": {"body_bytes": 100}, "rules": [
        {"match": {"path_prefix": "/sources"}, "sources": sources, "forward": ring},
        {"match": {"path_prefix": "/token"}, "jwt": jwt, "forward": ring},
        {"match": {"path_prefix": "/password"}, "basic_auth": {"password_file": password_file(stand), "user_field": "X-User"}, "forward": ring},
        {"match": {"path_prefix": "/limit"}, "rate_limit": limit, "forward": ring},
        {"match": {"path_prefix": "/window"}, "rate_limit": {**limit, "algorithm": "sliding_window", "key": ["header:x-who"]}, "forward": ring},
        {"match": {"path_prefix": "/dry"}, "rate_limit": {**limit, "dry_run": True}, "forward": ring},
        {"match": {"path_prefix": "/all"}, "sources": sources, "rate_limit": {"requests": 6, "per_s": 3600}, "jwt": jwt, "forward": ring},
        {"match": {"path_prefix": "/gone"}, "sources": sources, "jwt": jwt, "redirect": {"host": "new.example"}},
        {"match": {"path_prefix": "/match", "headers": {"X-Api-Key": "opensesame"}}, "respond": {"status": 204}},
    ]}, trusted_proxies=["127.0.0.1/32"])
    config["target_groups"].append({**config["target_groups"][0], "name": "ring", "algorithm": "consistent_hash", "hash_key": {"header": "x-user"}})
    return backends, keys, config


def random_request(dice, tokens):
    fields = [("Accept", "application/json")]
    if dice.random() < 0.85:
        fields.append(("X-Forwarded-For", dice.choice(["198.51.100.3", "198.51.100.200", "198.51.7.7", "203.0.113.1", "2001:db8::1"])))
    if dice.random() < 0.5:
        fields.append(("X-User", dice.choice(["ann", "ben"])))
    if dice.random() < 0.7:
        fields.append(("X-Who", dice.choice(["x", "y", "z"])))
    path = dice.choice(["/sources", "/token", "/token", "/password", "/password", "/limit", "/window", "/dry", "/all", "/gone", "/other", "/match"])
    name = dice.choice(list(USERS))
    authorization = dice.choice([None, ("Authorization", "Bearer " + dice.choice(list(tokens.values()))), credentials(name, USERS[name]),
                                 credentials(name, "wrong"), credentials("nobody", "x"), ("Authorization", "Bearer a.b.c")])
    if path in ("/token", "/all", "/gone") and dice.random() < 0.6:
        authorization = ("Authorization", "Bearer " + dice.choice([tokens["good"], tokens["other"], tokens["expired"]]))
    if authorization:
        fields.append(authorization)
    body = b"x" * dice.choice([10, 200]) if dice.random() < 0.3 else None
    return "POST" if body else "GET", path, fields, body


def test_requests_meet_what_explain_says(stand):
    backends, keys, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    tokens = {name: keys.token("HS256", "h", **{"aud": "us", **claims}) for name, claims in TOKENS.items()}
    dice, seen = random.Random(11), set()
    for _ in range(300):
        method, path, fields, body = random_request(dice, tokens)
        length = [("Content-Length", str(len(body)))] if body else []
        said = explain(proxy, f"http://127.0.0.1:{port}{path}", method, fields + length)
        got = stand.ask(method, path, fields, body=body)
        what = (method, path, fields, len(body or b""), got.status, said)
        seen |= {(stage["stage"], stage["verdict"]) for stage in said["stages"]}
        assert [stage["verdict"] for stage in said["stages"]].count("refuses") == (1 if said["refused_by"] else 0), what
        if said["answer"]:
            assert got.status == said["answer"]["status"], what
            if got.status >= 400:
                assert said["answer"]["code"] in got.body.decode(), what
                assert said["refused_by"] and said["action"] in ("refuse", "rate_limit"), what
            continue
        assert got.status == 200 and said["action"] == "forward" and said["refused_by"] is None, what
        group = said["forward"][0]
        if group["chosen"]:
            assert got.get("X-Backend") == backends[group["chosen"]], what
    both = {(stage, verdict) for stage in ("rule_sources", "jwt", "basic_auth", "rate_limit", "body_bytes") for verdict in ("passes", "refuses")}
    assert seen == both | {("rate_limit", "would_refuse")}


def test_the_command_compares_passwords_and_tokens_of_a_file(stand):
    _, keys, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]

    def ask(path, *fields):
        args = [part for name, value in fields for part in ("-H", f"{name}: {value}")]
        status, out, err = stand.isobar("explain", f"http://127.0.0.1:{port}{path}", "--config", proxy.file, "--json", *args)
        assert status == 0, err
        said = json.loads(out)
        return said["refused_by"], said["answer"] and said["answer"]["code"]

    assert ask("/password", credentials("alice", USERS["alice"])) == (None, None)
    assert ask("/password", credentials("alice", "wrong")) == ("basic_auth", "bad-credentials")
    assert ask("/password") == ("basic_auth", "no-credentials")
    assert ask("/token", ("Authorization", "Bearer " + keys.token("ES256", "e", aud="us"))) == (None, None)
    assert ask("/token", ("Authorization", "Bearer " + keys.token("ES256", "e", aud="us", exp=5))) == ("jwt", "token-expired")
    status, out, _ = stand.isobar("explain", f"http://127.0.0.1:{port}/sources", "--config", proxy.file, "--from", "203.0.113.9")
    assert status == 0 and "x rule_sources: refuses: the rule does not let 203.0.113.9 in" in out and "403 denied-source" in out


def test_a_secret_that_a_rule_asks_for_is_not_told(stand):
    _, _, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    said = explain(proxy, f"http://127.0.0.1:{port}/match", fields=[("X-Api-Key", "guess")])
    assert 'header x-api-key is not "<secret>"' in [rule["why"] for rule in said["rules"]] and "opensesame" not in json.dumps(said)


def test_one_password_is_compared_at_a_time_and_traffic_is_first(stand):
    """What explain compares goes through the thread of the logins, and is not remembered as a login."""
    _, _, config = everything(stand)
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    good = credentials("bob", USERS["bob"])
    for _ in range(3):
        assert explain(proxy, f"http://127.0.0.1:{port}/password", fields=[good])["action"] == "forward"
    assert explain(proxy, f"http://127.0.0.1:{port}/password", fields=[credentials("bob", "x")])["answer"]["code"] == "bad-credentials"
    assert stand.ask("GET", "/password", [good]).status == 200


def test_a_limit_of_the_fleet_that_refuses_while_the_store_is_away(stand):
    for away, status in (("refuse", 503), ("alone", 200)):
        config = stand.config(stand.backend(), shared_state={"url": f"redis://127.0.0.1:{free_port()}"}, listener={"rules": [
            {"forward": [{"target_group": "web"}], "rate_limit": {"requests": 5, "per_s": 3600, "scope": "fleet", "when_away": away}}]})
        proxy = stand.serve(config)
        assert wait_until(lambda: proxy.metrics().total("shared_state_up") == 0)
        said = explain(proxy, f"http://127.0.0.1:{config['load_balancers'][0]['listeners'][0]['port']}/")
        assert verdicts(said)["rate_limit"] == ("refuses" if away == "refuse" else "passes")
        assert stand.ask(proxy=proxy).status == status == (said["answer"] or {"status": 200})["status"]


def closes(port, prelude=b""):
    """Is a connection closed without an answer?"""
    wire = connect(("127.0.0.1", port))
    try:
        wire.send(prelude + b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return wire.read_response("GET").status != 200
    except (Closed, ConnectionError, OSError):
        return True
    finally:
        wire.close()


@pytest.mark.parametrize("protocol", ["HTTP", "TCP"])
def test_connections_meet_what_explain_says(stand, protocol):
    scheme = protocol.lower()
    backend = stand.backend()
    config = stand.config(backend, listener={"protocol": protocol, "name": "l0", "sources": {"allow": ["127.0.0.2/32"]}})
    listeners, ports = config["load_balancers"][0]["listeners"], [free_port() for _ in range(3)]
    proxied = {"from": ["127.0.0.1"]}
    if protocol == "TCP":
        config["target_groups"][0]["protocol"] = "TCP"
    for index, extra in enumerate(({"connection_rate": {"connections": 3, "per_s": 3600}},
                                   {"proxy_protocol": proxied, "sources": {"deny": ["192.0.2.0/24"]}, "connection_rate": {"connections": 2, "per_s": 3600}},
                                   {"limits": {"connections": 1}})):
        listeners.append({"name": f"l{index + 1}", "port": ports[index], "protocol": protocol, "default_target_group": "web", **extra})
    proxy = stand.serve(config, ready=False)
    proxy.baseline = None
    proxy.ready()
    first = listeners[0]["port"]

    def said(port, **more):
        answer = explain(proxy, f"{scheme}://127.0.0.1:{port}/".rstrip("/" if protocol == "TCP" else ""), **more)
        assert (answer["action"] == "close") == (answer["refused_by"] is not None) and not answer["answer"]
        return answer["refused_by"]

    assert said(first) == "sources" and closes(first)
    assert said(first, **{"from": "127.0.0.2"}) is None
    for _ in range(5):
        assert (said(ports[0]) == "connection_rate") == closes(ports[0])
    for client in ("192.0.2.1", "198.51.100.1", "198.51.100.1", "198.51.100.1", "198.51.100.2"):
        refused = said(ports[1], **{"from": client, "via": "127.0.0.1"})
        header = f"PROXY TCP4 {client} 127.0.0.1 1000 {ports[1]}\r\n".encode()
        assert (refused is not None) == closes(ports[1], header), (client, refused)
    assert said(ports[1], via="127.0.0.9") == "proxy_protocol"
    assert verdicts(explain(proxy, f"{scheme}://127.0.0.1:{ports[1]}"))["proxy_protocol"] == "assumed"
    assert said(ports[2]) is None
    held = connect(("127.0.0.1", ports[2]))
    assert wait_until(lambda: said(ports[2]) == "connections")
    assert closes(ports[2])
    held.close()
    assert wait_until(lambda: said(ports[2]) is None)


def test_names_of_tls_with_other_policies(stand, tmp_path):
    from harness.tls import Authority, tls_wire
    authority = Authority(tmp_path)
    strict = {**authority.issue("strict", "strict.example"), "client_ca_file": authority.file, "client_auth": "required"}
    config = stand.config(stand.backend(), listener={"protocol": "HTTPS", "certificates": ["open", "strict"]},
                          certificates=[authority.issue("open", "open.example"), strict])
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    said = explain(proxy, f"https://open.example:{port}/", fields=[("Host", "strict.example")])
    wire = tls_wire(("127.0.0.1", port), authority.context(), "open.example")
    wire.request("GET", "/", [("Connection", "close")], host="strict.example")
    assert wire.read_response("GET").status == 421 == said["answer"]["status"] and said["refused_by"] == "tls_name"
    wire.close()
    assert explain(proxy, f"https://open.example:{port}/")["action"] == "forward"
    said = explain(proxy, f"https://strict.example:{port}/")
    assert said["action"] == "forward" and verdicts(said) == {"client_certificate": "assumed"}


def test_targets_without_room_are_told(stand):
    gate = threading.Event()
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"done") if gate.wait(60) else None
    config = stand.config(backend, group={"limits": {"requests": 1, "pending": 1, "pending_ms": 50000}})
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    wires = []

    def begin():
        wires.append(connect(("127.0.0.1", port)))
        wires[-1].send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

    begin()
    assert wait_until(lambda: proxy.metrics().total("target_in_flight") == 1)
    assert explain(proxy, f"http://127.0.0.1:{port}/")["forward"][0]["fails"] is None  # it would wait
    begin()
    assert wait_until(lambda: proxy.metrics().total("target_group_pending") == 1)
    assert explain(proxy, f"http://127.0.0.1:{port}/")["forward"][0]["fails"] == {"status": 503, "code": "targets-full"}
    assert stand.ask().status == 503
    gate.set()
    for wire in wires:
        assert wire.read_response("GET").status == 200
        wire.close()


@pytest.mark.skipif(SERVER is None, reason="no redis-server or valkey-server")
@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_window"])
def test_a_limit_of_the_fleet_is_what_other_nodes_have_left(stand, tmp_path, algorithm):
    redis = Redis(tmp_path)
    try:
        nodes = []
        for _ in range(2):
            config = stand.config(stand.backend(), shared_state={"url": redis.url, "timeout_ms": 500}, listener={"name": "front", "rules": [
                {"name": "r", "forward": [{"target_group": "web"}],
                 "rate_limit": {"requests": 6, "per_s": 3600, "scope": "fleet", "algorithm": algorithm}}]})
            nodes.append(stand.serve(config))
            assert wait_until(lambda: nodes[-1].metrics().total("shared_state_up") == 1)
        url = f"http://127.0.0.1:{nodes[1].config['load_balancers'][0]['listeners'][0]['port']}/"
        while stand.ask(proxy=nodes[0]).status == 200:
            assert wait_until(lambda: redis.ask("KEYS", "limit:*"))
        passed = 0
        for _ in range(12):
            said = explain(nodes[1], url)
            got = stand.ask(proxy=nodes[1]).status
            assert (said["answer"] or {"status": 200})["status"] == got, (said["stages"], got)
            passed += got == 200
            time.sleep(0.2)  # the store's answer is on its way
        assert passed < 6
    finally:
        redis.stop()
