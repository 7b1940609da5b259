# SPDX-License-Identifier: Apache-2.0
"""Active health checks (D1) and what clients see of them (A11)."""
import collections
import copy
import json
import time

import pytest

from harness.backend import Backend, text_response
from harness.ports import free_port
from harness.process import wait_until

FAST = {"interval_s": 0.1, "timeout_ms": 400, "healthy_threshold": 2, "unhealthy_threshold": 2}
CALM = {"panic_threshold_pct": 0}  # see test_panic.py for the other ones


def healthy(name, status="200 OK", body=b"fine"):
    """An answer function: /health as told, everything else the name."""
    state = {"status": status, "body": body}

    def answer(request):
        if request.target.startswith("/health"):
            return text_response(state["body"], state["status"])
        return text_response(name.encode())

    return state, answer


def names(stand, n=12):
    return collections.Counter(stand.ask().body.decode() for _ in range(n))


def becomes(stand, wanted, n=12):
    return wait_until(lambda: set(names(stand, n)) == wanted, 20)


def test_D1_http_checks_take_a_failing_target_out_and_back_in(stand):
    a, b = stand.backends_named("A", "B")
    state, a.answer = healthy("A")
    _, b.answer = healthy("B")
    stand.proxy([a, b], group={"health_check": {"type": "http", "path": "/health", **FAST}})
    assert becomes(stand, {"A", "B"})
    state["status"] = "500 Internal Server Error"
    assert becomes(stand, {"B"})
    state["status"] = "204 No Content"
    assert becomes(stand, {"A", "B"})


def test_D1_tcp_checks_follow_the_port(stand):
    a, b = stand.backends_named("A", "B")
    stand.proxy([a, b], group={"health_check": {"type": "tcp", **FAST}, "outlier": {
        "consecutive_5xx": 0, "consecutive_gateway_errors": 0}})
    assert becomes(stand, {"A", "B"})
    a.stop()
    assert becomes(stand, {"B"})
    a.start()
    assert becomes(stand, {"A", "B"})


def test_a_new_good_target_takes_work_at_once(stand):
    backend = stand.backend()
    _, backend.answer = healthy("A")
    stand.proxy(backend, group={"health_check": {"type": "http", "path": "/health", "interval_s": 60,
                                                 "healthy_threshold": 2}})
    assert wait_until(lambda: stand.ask().status == 200, 10), "quick succession, not two intervals of a minute"


def test_A11_no_usable_target_is_503_with_retry_after_and_never_a_stall(stand):
    proxy = stand.proxy({"ip": "127.0.0.1", "port": free_port()}, group={"health_check": {"type": "tcp", **FAST}, **CALM})
    client = stand.client()
    for _ in range(3):
        client.request()
        response = client.read_response()
        assert response.status == 503 and not response.closes
        assert int(response.get("Retry-After")) >= 1
    assert proxy.metrics().total("target_group_no_target_total") >= 3


def test_C_091_redirects_are_an_answer_and_never_followed(stand):
    elsewhere = stand.backend(name="elsewhere")
    a, b = stand.backends_named("A", "B")
    a.answer = lambda request: text_response(b"A", "302 Found", [("Location", f"http://127.0.0.1:{elsewhere.port}/")]) \
        if request.target == "/health" else text_response(b"A")
    _, b.answer = healthy("B")
    stand.proxy([a, b], group={"health_check": {"type": "http", "path": "/health", "expect": {"status": "200-299"}, **FAST}})
    assert becomes(stand, {"B"})
    assert elsewhere.raw == b""


@pytest.mark.parametrize("expect,status,body,good", [
    ({"status": "200-299"}, "204 No Content", b"", True),
    ({"status": "200-299"}, "301 Moved", b"", False),
    ({"status": "404"}, "404 Not Found", b"", True),
    ({"body": "fine"}, "200 OK", b"all is fine here", True),
    ({"body": "fine"}, "200 OK", b"all is lost", False),
])
def test_D1_expectations_decide(stand, expect, status, body, good):
    backend = stand.backend()
    state, backend.answer = healthy("A", status, body)
    stand.proxy(backend, group={"health_check": {"type": "http", "path": "/health", "expect": expect, **FAST}, **CALM})
    if good:
        assert wait_until(lambda: stand.ask().status == 200, 20)
    else:
        assert wait_until(lambda: len([r for r in backend.requests if r.target == "/health"]) >= 4)
        assert stand.ask().status == 503


def test_C_092_a_check_is_a_proper_http11_request(stand):
    backend = stand.backend()
    _, backend.answer = healthy("A")
    stand.proxy(backend, group={"health_check": {"type": "http", "path": "/health?deep=1", "host": "n1.example",
                                                 "method": "HEAD", **FAST}})
    assert wait_until(lambda: [r for r in backend.requests if r.target == "/health?deep=1"])
    request = next(r for r in backend.requests if r.target.startswith("/health"))
    assert request.version == "HTTP/1.1" and request.method == "HEAD" and request.get("Host") == "n1.example"


def test_C_092_the_default_host_is_the_targets_own(stand):
    backend = stand.backend()
    stand.proxy(backend, group={"health_check": {"type": "http", **FAST}})
    assert wait_until(lambda: backend.requests)
    assert backend.requests[0].get("Host") == f"127.0.0.1:{backend.port}"


def test_a_check_may_ask_another_port(stand):
    checker = stand.backend(name="checker")
    backend = stand.backend(name="A")
    stand.proxy(backend, group={"health_check": {"type": "http", "port": checker.port, **FAST}})
    assert wait_until(lambda: stand.ask().status == 200)
    assert checker.requests and all(request.target == "/" for request in checker.requests)


def silent(wire):
    wire.read_to_end()


def trickling(wire):
    wire.read_request()
    wire.send(b"HTTP/1.1 200 OK\r\nX-A: ")
    while True:
        wire.send(b"x")
        time.sleep(0.05)


def closing(wire):
    wire.read_request()


def babbling(wire):
    wire.send(b"220 mail.example ESMTP\r\n")
    wire.read_to_end()


def endless(wire):
    wire.read_request()
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    while True:
        wire.send(b"x" * 65536)


@pytest.mark.parametrize("script,expect", [(silent, {}), (trickling, {}), (closing, {}), (babbling, {}),
                                           (endless, {"body": "never there"})],
                         ids=["silent", "trickle", "close", "not-http", "endless-body"])
def test_C_098_a_hanging_or_broken_check_target_is_down_and_delays_nobody(stand, script, expect):
    checker = stand.backend(script, name="checker")
    bad, good = stand.backends_named("bad", "good")
    config = stand.config(bad, group={"health_check": {"type": "http", "port": checker.port, "expect": expect, **FAST}, **CALM})
    config["target_groups"].append({**config["target_groups"][0], "name": "other", "targets": [good.target],
                                    "health_check": {"type": "http", **FAST}})
    config["load_balancers"][0]["listeners"][0]["rules"] = [
        {"match": {"path_prefix": "/good"}, "forward": [{"target_group": "other"}]}]
    proxy = stand.serve(config)
    assert wait_until(lambda: stand.ask(target="/good").status == 200)
    assert wait_until(lambda: checker.n_connections >= 3)
    assert stand.ask().status == 503
    assert stand.ask(target="/good").status == 200
    assert len([1 for wire in checker.wires if wire.sock.fileno() != -1]) <= 3, "a check ends by its timeout"


def test_C_095_alternating_results_change_nothing(stand):
    backend = stand.backend()
    turn = {"n": 0}

    def alternate(request):
        if request.target != "/health":
            return text_response(b"A")
        turn["n"] += 1
        # The first checks pass, so that the target is in; then every second one fails.
        return text_response(b"", "500 No" if turn["n"] > 4 and turn["n"] % 2 else "200 OK")

    backend.answer = alternate
    stand.proxy(backend, group={"health_check": {"type": "http", "path": "/health", "interval_s": 0.05, "timeout_ms": 1000,
                                                 "healthy_threshold": 2, "unhealthy_threshold": 3}})
    assert wait_until(lambda: stand.ask().status == 200)
    while turn["n"] < 30:
        assert stand.ask().status == 200
        time.sleep(0.02)


def test_health_survives_a_reload(stand):
    a, b = stand.backends_named("A", "B")
    state, a.answer = healthy("A", "500 No")
    _, b.answer = healthy("B")
    config = stand.config([a, b], group={"health_check": {"type": "http", "path": "/health", **FAST}})
    proxy = stand.serve(config)
    assert becomes(stand, {"B"})
    for algorithm in ("random", "round_robin", "maglev"):
        changed = copy.deepcopy(config)
        changed["target_groups"][0]["algorithm"] = algorithm
        proxy.reload(changed)
        assert set(names(stand, 6)) == {"B"}


def test_disabled_targets_take_nothing(stand):
    a, b = stand.backends_named("A", "B")
    stand.proxy([{**a.target, "enabled": False}, b])
    assert set(names(stand)) == {"B"}
    assert a.n_connections == 0


def test_api_health_and_metrics_tell_the_states(stand):
    a, b = stand.backends_named("A", "B")
    proxy = stand.proxy([a, b], group={"health_check": {"type": "tcp", **FAST}})
    assert becomes(stand, {"A", "B"})
    b.stop()
    assert wait_until(lambda: proxy.metrics().total("target_up") == 1)
    status, body = proxy.get("/api/health")
    health = json.loads(body)
    assert status == 200 and health["healthy"] is True and (health["healthy_backends"], health["total_backends"]) == (1, 2)
    metrics = proxy.metrics()
    assert metrics.total("target_up", target=a.label) == 1 and metrics.total("target_up", target=b.label) == 0
    assert metrics.total("target_state", target=a.label, state="active") == 1
    assert metrics.total("target_state", target=b.label, state="unhealthy") == 1
    assert metrics.total("target_group_healthy_targets") == 1


def test_D1_deep_checks_warn_and_take_nobody_out(stand):
    a, b = stand.backends_named("A", "B")
    state, a.answer = healthy("A")
    _, b.answer = healthy("B")
    deep = {"type": "deep", "path": "/health", **FAST}
    proxy = stand.proxy([a, b], group={"health_check": deep})
    assert set(names(stand)) == {"A", "B"}, "no check is waited for"
    state["status"] = "500 Database is down"
    assert wait_until(lambda: proxy.metrics().total("target_deep_check_failing", target=a.label) == 1)
    assert set(names(stand)) == {"A", "B"} and proxy.metrics().total("target_up") == 2
    state["status"] = "200 OK"
    assert wait_until(lambda: proxy.metrics().total("target_deep_check_failing") == 0)
    assert len([line for line in proxy.stderr.splitlines() if "deep checks" in line]) == 2


def test_D1_deep_checks_take_targets_out_when_told_to(stand):
    a, b = stand.backends_named("A", "B")
    state, a.answer = healthy("A")
    _, b.answer = healthy("B")
    proxy = stand.proxy([a, b], group={"health_check": {"type": "deep", "path": "/health", "deep_ejects": True, **FAST}})
    assert becomes(stand, {"A", "B"})
    state["status"] = "500 Database is down"
    assert becomes(stand, {"B"})
    assert proxy.metrics().total("target_deep_check_failing") == 0


def test_D1_a_pattern_over_the_body_decides(stand):
    good, bad = stand.backends_named("good", "bad")
    good.answer = lambda request: text_response(b'{"status": "up", "version": "1.27"}')
    bad.answer = lambda request: text_response(b'{"status": "up", "version": "none"}')
    proxy = stand.proxy([good, bad], group={"health_check": {
        "type": "http", "path": "/", "interval_s": 0.1, "expect": {"body": "up", "body_regex": '"version": "[0-9.]+"'}}})
    assert wait_until(lambda: proxy.metrics().total("target_health_last_check", target=bad.label, reason="body-mismatch"))
    assert proxy.metrics().total("target_up", target=good.label) == 1
    assert proxy.metrics().total("target_up", target=bad.label) == 0


def test_D1_checks_come_from_the_address_that_was_named(stand):
    peers = []

    def script(wire):
        peers.append(wire.sock.getpeername()[0])
        Backend.answer_all(backend, wire)

    backend = stand.backend(script)
    proxy = stand.proxy([backend], group={"health_check": {"type": "http", "source": "127.0.0.77", "interval_s": 0.1}})
    assert wait_until(lambda: len(peers) > 2)
    assert set(peers) == {"127.0.0.77"}
    assert stand.ask().status == 200
    # An address of another machine: the target is not to blame, and keeps its state.
    config = copy.deepcopy(proxy.config)
    config["target_groups"][0]["health_check"]["source"] = "192.0.2.1"
    proxy.reload(config)
    assert wait_until(lambda: "health checks cannot be made" in proxy.stderr)
    assert stand.ask().status == 200
