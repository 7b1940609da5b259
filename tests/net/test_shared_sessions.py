# SPDX-License-Identifier: Apache-2.0
"""C2 and C5: nodes share sessions through a real Redis, and go on without it."""
import json
import time

import pytest

from harness.process import wait_until
from harness.redis import SERVER, Redis, ScriptedRedis
from harness.tls import Authority

pytestmark = pytest.mark.skipif(SERVER is None, reason="no redis-server or valkey-server")
NAMES = ("A", "B", "C", "D")
PATIENT_MS = 500  # for tests that want an answer from a loaded machine; C5 tests have their own


def node(stand, backends, url, affinity="session", timeout_ms=PATIENT_MS, **shared):
    config = stand.config(backends, group={"affinity": {"type": affinity, "ttl_s": 1800}}, workers=2,
                          shared_state={"url": url, "timeout_ms": timeout_ms, **shared}, trusted_proxies=["127.0.0.0/8"])
    return stand.serve(config)


def is_up(proxy, want=1):
    return wait_until(lambda: proxy.metrics().total("shared_state_up") == want)


def session_of(response):
    for value in response.all("Set-Cookie"):
        if value.startswith("lb_session="):
            return value.split(";")[0].split("=")[1]
    return None


def ask(stand, proxy, session=None, client=None):
    fields = [("Cookie", f"lb_session={session}")] if session else []
    if client:
        fields.append(("X-Forwarded-For", client))
    response = stand.ask(proxy=proxy, fields=fields)
    assert response.status == 200, response.status
    return response


def two_nodes(stand, url, **options):
    backends = stand.backends_named(*NAMES)
    nodes = [node(stand, backends, url, **options) for _ in range(2)]
    assert all(is_up(proxy) for proxy in nodes)
    return nodes, backends


def test_C2_a_session_is_stored_as_documented_and_found_by_another_node(stand, redis):
    (first, second), backends = two_nodes(stand, redis.url)
    answer = ask(stand, first, client="192.0.2.1")
    session = session_of(answer)
    key = f"session:{session}"
    assert wait_until(lambda: redis.ask("GET", key))
    target = {name: f"127.0.0.1:{backend.target['port']}" for name, backend in zip(NAMES, backends)}[answer.body.decode()]
    assert redis.ask("GET", key).decode() == target
    assert 1700 < redis.ask("TTL", key) <= 1800
    assert redis.ask("GET", "client:web/192.0.2.1").decode() == target
    for _ in range(6):
        assert ask(stand, second, session, client="198.51.100.1").body == answer.body
    metrics = second.metrics()
    assert metrics.total("shared_state_lookups_total", result="found") == 1  # then it knows
    assert metrics.total("target_group_affinity_hits_total") == 6


def test_C2_clients_without_cookie_are_known_by_address_on_every_node(stand, redis):
    (first, second), _ = two_nodes(stand, redis.url, affinity="client_ip")
    answers = {}
    for i in range(1, 9):
        answers[f"192.0.2.{i}"] = ask(stand, first, client=f"192.0.2.{i}").body
    assert wait_until(lambda: len(redis.ask("KEYS", "client:web/*")) == 8)
    for client, body in answers.items():
        assert ask(stand, second, client=client).body == body
    assert ask(stand, first, client="2001:db8::1").body and wait_until(lambda: redis.ask("GET", "client:web/2001:db8::"))


def test_C2_each_use_renews_but_redis_sees_few(stand, redis):
    proxy = node(stand, stand.backends_named(*NAMES), redis.url)
    assert is_up(proxy)
    session = session_of(ask(stand, proxy, client="192.0.2.1"))
    assert wait_until(lambda: redis.ask("GET", f"session:{session}"))
    redis.ask("EXPIRE", f"session:{session}", 100)
    redis.ask("CONFIG", "RESETSTAT")
    until = time.monotonic() + 7
    while time.monotonic() < until:
        for _ in range(5):
            ask(stand, proxy, session)
        time.sleep(0.2)
    assert redis.ask("TTL", f"session:{session}") > 1700
    stats = redis.ask("INFO", "commandstats").decode()
    assert "cmdstat_eval:calls=1," in stats or "cmdstat_eval:calls=2," in stats, stats


def test_C2_a_binding_that_another_node_changed_is_learnt_not_undone(stand, redis):
    (first, second), backends = two_nodes(stand, redis.url)
    answer = ask(stand, first, client="192.0.2.1")
    session = session_of(answer)
    assert ask(stand, second, session).body == answer.body
    other = next(backend for name, backend in zip(NAMES, backends) if name != answer.body.decode())
    redis.ask("SET", f"session:{session}", f"127.0.0.1:{other.target['port']}", "EX", 1800)
    time.sleep(6.2)  # until a use renews
    ask(stand, second, session)
    assert wait_until(lambda: ask(stand, second, session).body.decode() == other.name)
    assert redis.ask("GET", f"session:{session}").decode().endswith(str(other.target["port"]))


def test_C1_a_cookie_that_names_the_target_never_asks_redis(stand, redis):
    proxy = node(stand, stand.backends_named(*NAMES), redis.url, affinity="cookie")
    assert is_up(proxy)
    redis.ask("CONFIG", "RESETSTAT")
    for _ in range(10):
        stand.ask(proxy=proxy)
    stats = redis.ask("INFO", "commandstats").decode()
    assert not any(f"cmdstat_{word}:" in stats for word in ("get", "set", "eval")), stats


def test_C5_a_paused_redis_costs_one_deadline_then_nothing_and_nothing_is_lost(stand, redis):
    proxy = node(stand, stand.backends_named(*NAMES), redis.url, timeout_ms=50)
    assert is_up(proxy)
    redis.pause()
    sessions = {}
    for i in range(30):
        answer = ask(stand, proxy, client=f"192.0.2.{i}")
        sessions[session_of(answer)] = answer.body
    assert is_up(proxy, 0)
    metrics = proxy.metrics()
    assert 1 <= metrics.total("shared_state_lookups_total", result="unanswered") <= 10  # then nobody asks
    assert metrics.total("shared_state_outages_total") >= 1
    for session, body in sessions.items():
        assert ask(stand, proxy, session).body == body  # from memory
    assert "shared state: 127.0.0.1" in proxy.stderr and "in memory meanwhile" in proxy.stderr
    redis.go_on()
    assert is_up(proxy)
    assert wait_until(lambda: all(redis.ask("GET", f"session:{session}") for session in sessions))
    assert proxy.metrics().total("shared_state_writes_lost_total") == 0
    assert "answers again" in proxy.stderr


def test_C5_a_stopped_redis_that_comes_back_empty_gets_everything_again(stand, redis, servers, tmp_path):
    proxy = node(stand, stand.backends_named(*NAMES), redis.url)
    assert is_up(proxy)
    before = session_of(ask(stand, proxy, client="192.0.2.1"))
    assert wait_until(lambda: redis.ask("GET", f"session:{before}"))
    assert wait_until(lambda: proxy.metrics().total("shared_state_writes_waiting") == 0)
    redis.stop()
    assert is_up(proxy, 0)
    meanwhile = [session_of(ask(stand, proxy, client=f"192.0.2.{i}")) for i in range(2, 12)]
    again = Redis(tmp_path, port=redis.port)
    servers.append(again)
    assert is_up(proxy)
    assert wait_until(lambda: all(again.ask("GET", f"session:{session}") for session in meanwhile))
    assert again.ask("GET", f"session:{before}") is None  # Redis has lost it: its next renewal puts it back
    time.sleep(6.2)
    ask(stand, proxy, before)
    assert wait_until(lambda: again.ask("GET", f"session:{before}"))


def test_C5_a_client_that_leaves_while_redis_is_asked_takes_nothing_with_it(stand, redis):
    proxy = node(stand, stand.backends_named(*NAMES), redis.url, timeout_ms=1000)
    assert is_up(proxy)
    redis.pause()
    for i in range(20):
        client = stand.client(proxy)
        client.request(fields=[("X-Forwarded-For", f"192.0.2.{i}")])
        client.close()
    redis.go_on()
    assert is_up(proxy)
    assert ask(stand, proxy, client="192.0.2.50").status == 200


def test_C5_a_body_that_comes_with_the_request_waits_with_it(stand, redis):
    backends = stand.backends_named(*NAMES)
    proxy = node(stand, backends, redis.url)
    assert is_up(proxy)
    for size in (10, 5000, 300000):
        response = stand.ask("POST", proxy=proxy, body=b"x" * size, fields=[("X-Forwarded-For", f"192.0.2.{size % 251}")])
        assert response.status == 200
    assert sorted(len(request.body) for backend in backends for request in backend.requests) == [10, 5000, 300000]


def test_C3_a_mapped_target_that_left_is_replaced_in_redis(stand, redis):
    proxy = node(stand, stand.backends_named(*NAMES), redis.url)
    assert is_up(proxy)
    redis.ask("SET", "session:0123456789abcdef0123456789abcdef", "10.9.9.9:80", "EX", 1800)
    answer = ask(stand, proxy, "0123456789abcdef0123456789abcdef")
    assert wait_until(lambda: redis.ask("GET", "session:0123456789abcdef0123456789abcdef") != b"10.9.9.9:80")
    assert ask(stand, proxy, "0123456789abcdef0123456789abcdef").body == answer.body


def test_C2_password_user_and_database_are_used(stand, servers, tmp_path):
    server = Redis(tmp_path, user="anna on >s3cr@t ~* &* +@all")
    servers.append(server)
    proxy = node(stand, stand.backends_named(*NAMES), f"redis://anna:s3cr%40t@127.0.0.1:{server.port}/3")
    assert is_up(proxy)
    session = session_of(ask(stand, proxy, client="192.0.2.1"))
    assert wait_until(lambda: server.ask("INFO", "keyspace").decode().find("db3:keys=2") >= 0), session


def test_C2_over_tls_the_server_is_verified(stand, servers, tmp_path):
    authority = Authority(tmp_path)
    pair = authority.issue("redis", "127.0.0.1")
    server = Redis(tmp_path, tls=pair)
    servers.append(server)
    backends = stand.backends_named(*NAMES)
    trusting = node(stand, backends, server.url, ca_file=authority.path("ca.pem"))
    assert is_up(trusting)
    answer = ask(stand, trusting, client="192.0.2.1")
    assert wait_until(lambda: trusting.metrics().total("shared_state_writes_total") >= 2)
    other = node(stand, backends, server.url, ca_file=authority.path("ca.pem"))
    assert is_up(other) and ask(stand, other, session_of(answer)).body == answer.body
    doubting = node(stand, backends, server.url)
    assert wait_until(lambda: "is away" in doubting.stderr) and doubting.metrics().total("shared_state_up") == 0


def test_C5_a_wrong_password_is_said_and_harms_nothing(stand, servers, tmp_path):
    server = Redis(tmp_path, password="right")
    servers.append(server)
    proxy = node(stand, stand.backends_named(*NAMES), f"redis://:wrong@127.0.0.1:{server.port}")
    session = session_of(ask(stand, proxy, client="192.0.2.1"))
    assert ask(stand, proxy, session).status == 200
    assert wait_until(lambda: "it refuses us: WRONGPASS" in proxy.stderr)
    assert proxy.metrics().total("shared_state_up") == 0
    assert ":wrong@" not in proxy.stderr


def test_C5_a_replica_that_refuses_writes_is_not_used(stand, redis, servers, tmp_path):
    folder = tmp_path / "replica"
    folder.mkdir()
    replica = Redis(folder, replicaof=f"127.0.0.1 {redis.port}")
    servers.append(replica)
    proxy = node(stand, stand.backends_named(*NAMES), replica.url)
    for i in range(5):
        ask(stand, proxy, client=f"192.0.2.{i}")
    assert wait_until(lambda: "it answers READONLY" in proxy.stderr)
    replica.ask("REPLICAOF", "NO", "ONE")  # promoted: what waited is stored
    assert wait_until(lambda: len(replica.ask("KEYS", "session:*")) == 5)


NO_REPLIES = {"moved": b"-MOVED 3999 127.0.0.1:6381\r\n", "text": b"hello\r\n", "huge": b"$99999999999\r\n", "long": b"*1000000\r\n",
              "nested": b"*2\r\n*1\r\n:1\r\n:2\r\n", "zeroes": b"\0" * 3000, "bare-lf": b"+OK\n", "digits": b":12x\r\n",
              "endless": b"x" * 70000, "unended": b"$5\r\nabcdeXY", "too-many": b"+OK\r\n+OK\r\n+OK\r\n"}


@pytest.mark.parametrize("reply", NO_REPLIES.values(), ids=NO_REPLIES)
def test_C5_replies_that_are_none_end_the_connection_and_nothing_else(stand, servers, reply):
    server = ScriptedRedis(lambda words: reply if words[0] == "GET" else None)
    servers.append(server)
    proxy = node(stand, stand.backends_named(*NAMES), server.url, timeout_ms=20)
    assert is_up(proxy)
    for i in range(4):
        answer = ask(stand, proxy, client=f"192.0.2.{i}")
        assert ask(stand, proxy, session_of(answer)).body == answer.body
    assert wait_until(lambda: "is away" in proxy.stderr)


def test_C5_a_slow_redis_is_asked_no_more_until_it_is_quick_again(stand, servers):
    delays = {"s": 0.3}
    server = ScriptedRedis(lambda words: (delays["s"], None) if words[0] in ("GET", "PING", "SET", "EVAL") else None)
    servers.append(server)
    delays["s"] = 0
    proxy = node(stand, stand.backends_named(*NAMES), server.url, timeout_ms=30)
    assert is_up(proxy)
    delays["s"] = 0.3
    for i in range(12):
        ask(stand, proxy, client=f"192.0.2.{i}")
    assert is_up(proxy, 0)
    asked = sum(words[0] == "GET" for words in server.commands)
    for i in range(20, 40):
        ask(stand, proxy, client=f"192.0.2.{i}")
    assert sum(words[0] == "GET" for words in server.commands) <= asked + 12  # those on their way then
    delays["s"] = 0
    assert is_up(proxy)


def test_C5_a_server_that_accepts_and_says_nothing_delays_nobody(stand, servers):
    server = ScriptedRedis(lambda words: (30, b""))
    servers.append(server)
    proxy = node(stand, stand.backends_named(*NAMES), server.url)
    answer = ask(stand, proxy, client="192.0.2.1")
    assert ask(stand, proxy, session_of(answer)).body == answer.body
    assert proxy.metrics().total("shared_state_lookups_total") == 0


def test_C2_a_reload_may_name_another_server_or_none(stand, redis, servers, tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    other = Redis(folder)
    servers.append(other)
    proxy = node(stand, stand.backends_named(*NAMES), redis.url)
    assert is_up(proxy)
    config = proxy.config
    config["shared_state"]["url"] = other.url
    proxy.reload(config)
    assert is_up(proxy)
    session = session_of(ask(stand, proxy, client="192.0.2.1"))
    assert wait_until(lambda: other.ask("GET", f"session:{session}")) and redis.ask("GET", f"session:{session}") is None
    del config["shared_state"]
    proxy.reload(config)
    assert is_up(proxy, 0)
    assert ask(stand, proxy, session).status == 200


@pytest.mark.parametrize("affinity", ["session", "client_ip"])
def test_the_api_of_any_node_finds_and_ends_a_session_G5(stand, redis, affinity):
    (first, second), backends = two_nodes(stand, redis.url, affinity=affinity)
    answer = ask(stand, first, client="192.0.2.7")
    target = {name: f"127.0.0.1:{backend.target['port']}" for name, backend in zip(NAMES, backends)}[answer.body.decode()]
    names = ["client_ip=192.0.2.7"] + ([f"session_id={session_of(answer)}"] if affinity == "session" else [])
    for name in names:
        def found(proxy):
            status, body = proxy.get(f"/api/sessions?{name}")
            return status == 200 and json.loads(body)

        assert found(first)["server_id"] == target and found(first)["created_at"]
        other = wait_until(lambda: found(second))
        assert other["server_id"] == target and other["target_group"] == "web", name
        assert other["created_at"] is None and other["ttl_remaining_seconds"] is None
        assert second.admin_request("DELETE", "/api/sessions/" + name.split("=")[1])[0] == 204
        assert wait_until(lambda: not found(first) and not found(second)), name
    redis.stop()
    assert wait_until(lambda: second.get("/api/sessions?client_ip=192.0.2.99")[0] == 503)


def test_explain_says_that_a_request_would_ask_the_store_K3(stand, redis):
    (first, _), _ = two_nodes(stand, redis.url, affinity="client_ip")
    port = first.config["load_balancers"][0]["listeners"][0]["port"]
    status, body = first.get(f"/v1/explain?url=http://t.example:{port}/")
    affinity = json.loads(body)["forward"][0]["affinity"]
    assert status == 200 and not affinity["followed"]
    assert affinity["why"] == "its address is not known here; a request asks the store that nodes share first"
