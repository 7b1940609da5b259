# SPDX-License-Identifier: Apache-2.0
"""Passive checks (D2, D4): real requests take a target out, within limits, and let it come back."""
import collections
import re

import pytest

from harness.backend import text_response
from harness.process import wait_until

QUICK = {"consecutive_5xx": 3, "consecutive_gateway_errors": 3, "error_rate_pct": 0, "base_ejection_s": 60}
FAILING = "503 Service Unavailable"


def moody(backend):
    """Makes a backend answer with its name, or with state["status"]; /health is always fine unless state["sick"]."""
    state = {"status": "200 OK", "sick": False}

    def answer(request):
        if request.target == "/health":
            return text_response(b"", "500 Sick" if state["sick"] else "200 OK")
        return text_response(backend.name.encode(), state["status"])

    backend.answer = answer
    return state


def ask_many(stand, n):
    return [stand.ask() for _ in range(n)]


def served_by(stand, n=12):
    return collections.Counter(response.body.decode() for response in ask_many(stand, n))


def transitions(proxy, backend):
    """What the log says happened to a target, in order."""
    return re.findall(rf"target web {re.escape(backend.label)} (is \w+ \(was \w+\): \S+|is not ejected)", proxy.stderr)


def is_out(proxy, backend):
    return proxy.metrics().total("target_up", target=backend.label) == 0


def ejected(proxy):
    return proxy.metrics().total("target_ejected")


def group(**outlier):
    return {"outlier": {**QUICK, **outlier}, "retry": {"attempts": 1}}


@pytest.mark.parametrize("workers", [1, 4])
def test_D2_consecutive_5xx_eject_at_once_on_every_worker(stand, workers):
    a, b = stand.backends_named("A", "B")
    state = moody(a)
    proxy = stand.proxy([a, b], group=group(consecutive_gateway_errors=0), workers=workers)
    state["status"] = "500 Broken"
    assert wait_until(lambda: stand.ask() and len(a.requests) == 3), "each round gives A another failure"
    # The health thread hears of it at once, and decides when the machine lets it.
    assert wait_until(lambda: is_out(proxy, a))
    assert set(served_by(stand)) == {"B"}
    assert transitions(proxy, a)[-1] == "is unhealthy (was active): consecutive-5xx,"
    metrics = proxy.metrics()
    assert metrics.total("target_ejections_total", target=a.label) == 1 and metrics.total("target_ejected") == 1
    assert len(a.requests) == 3


def test_D2_refused_connections_eject(stand):
    a, b = stand.backends_named("A", "B")
    proxy = stand.proxy([a, b], group=group())
    a.stop()
    assert wait_until(lambda: stand.ask() and is_out(proxy, a))
    assert all(response.status == 200 for response in ask_many(stand, 10))
    assert transitions(proxy, a)[-1] == "is unhealthy (was active): consecutive-gateway-errors,"


def test_D2_resets_and_timeouts_eject(stand):
    good, silent = stand.backend(name="good"), stand.backend(lambda wire: wire.read_to_end(), name="silent")
    closing = stand.backend(lambda wire: wire.read_request() and None, name="closing")
    proxy = stand.proxy([good, silent, closing], group={**group(max_ejection_pct=70), "panic_threshold_pct": 0,
                                                        "timeouts": {"response_ms": 50}})
    assert wait_until(lambda: stand.ask() and is_out(proxy, silent) and is_out(proxy, closing))
    assert set(served_by(stand)) == {"good"}


def test_D2_a_success_between_failures_ejects_nobody(stand):
    a, b = stand.backends_named("A", "B")
    turn = {"n": 0}

    def two_of_three(request):
        turn["n"] += 1
        return text_response(b"A", "200 OK" if turn["n"] % 3 == 0 else FAILING)

    a.answer = two_of_three
    proxy = stand.proxy([a, b], group=group())
    ask_many(stand, 40)
    assert not is_out(proxy, a) and turn["n"] >= 18


def test_D2_an_error_rate_ejects_what_runs_of_failures_do_not(stand):
    a, b = stand.backends_named("A", "B")
    turn = {"n": 0}

    def every_second(request):
        turn["n"] += 1
        return text_response(b"A", "200 OK" if turn["n"] % 2 else "500 Broken")

    a.answer = every_second
    proxy = stand.proxy([a, b], group=group(error_rate_pct=40, min_requests=20, window_s=1))
    ask_many(stand, 20)
    assert wait_until(lambda: ask_many(stand, 10) and is_out(proxy, a))
    assert transitions(proxy, a)[-1] == "is unhealthy (was active): error-rate,"


def test_D2_ejections_grow_and_the_target_comes_back(stand):
    a, b = stand.backends_named("A", "B")
    state = moody(a)
    proxy = stand.proxy([a, b], group=group(base_ejection_s=0.2))
    state["status"] = FAILING
    assert wait_until(lambda: ask_many(stand, 4) and proxy.stderr.count("ejected for 0.4 s"))
    state["status"] = "200 OK"
    assert "ejected for 0.2 s" in proxy.stderr
    assert wait_until(lambda: set(served_by(stand)) == {"A", "B"})
    assert transitions(proxy, a)[-1] == "is active (was unhealthy): ejection-over"
    assert proxy.metrics().total("target_ejected") == 0


@pytest.mark.parametrize("by_checks", [True, False])
def test_C_095_after_a_passive_mark_down_it_comes_back_and_is_never_stuck(stand, by_checks):
    a, b = stand.backends_named("A", "B")
    state = moody(a)
    outlier = group(base_ejection_s=60 if by_checks else 0.3, checks_end_ejection=by_checks, consecutive_5xx=10,
                    consecutive_gateway_errors=0)
    proxy = stand.proxy([a, b], group={**outlier, "health_check": {
        "type": "http", "path": "/health", "interval_s": 0.2, "timeout_ms": 20000, "healthy_threshold": 2,
        "unhealthy_threshold": 3}})
    state["status"] = "500 Broken"
    assert wait_until(lambda: ask_many(stand, 5) and any("consecutive-5xx" in line for line in transitions(proxy, a)))
    state["status"] = "200 OK"
    assert wait_until(lambda: set(served_by(stand)) == {"A", "B"})
    seen = transitions(proxy, a)
    assert seen[-1] == ("is active (was unhealthy): ok," if by_checks else "is active (was unhealthy): ejection-over")
    assert len([line for line in seen if "consecutive-5xx" in line]) == \
        len([line for line in seen if "(was unhealthy)" in line]), "one line for each change"


def test_C_095_checks_do_not_shorten_an_ejection_unless_told_to(stand):
    a, b = stand.backends_named("A", "B")
    state = moody(a)
    proxy = stand.proxy([a, b], group={**group(), "health_check": {
        "type": "http", "path": "/health", "interval_s": 0.05, "timeout_ms": 20000}})
    state["status"] = FAILING
    assert wait_until(lambda: stand.ask() and is_out(proxy, a))
    checks = proxy.metrics().total("target_health_checks_total", target=a.label)
    assert wait_until(lambda: proxy.metrics().total("target_health_checks_total", target=a.label) >= checks + 5)
    assert is_out(proxy, a)


def test_C_096_a_failed_check_wins_though_the_ejection_quota_is_full(stand):
    names = stand.backends_named("A", "B", "C", "D")
    states = [moody(backend) for backend in names]
    a, b = names[:2]
    proxy = stand.proxy(names, group={**group(), "panic_threshold_pct": 25, "health_check": {
        "type": "http", "path": "/health", "interval_s": 0.05, "timeout_ms": 20000}})
    states[0]["status"] = FAILING
    assert wait_until(lambda: stand.ask() and is_out(proxy, a))
    states[1]["status"] = FAILING
    assert wait_until(lambda: stand.ask() and "is not ejected" in transitions(proxy, b)), "the quota is full"
    assert not is_out(proxy, b)
    states[1]["sick"] = True
    assert wait_until(lambda: is_out(proxy, b)), "a failed check needs no quota"
    assert set(served_by(stand)) == {"C", "D"}
    assert proxy.metrics().total("target_ejections_withheld_total", target=b.label) == 1


def test_C_096_a_passing_check_does_not_bring_back_what_the_next_one_fails(stand):
    a, b = stand.backends_named("A", "B")
    state = moody(a)
    proxy = stand.proxy([a, b], group={**group(base_ejection_s=0.2), "health_check": {
        "type": "http", "path": "/health", "interval_s": 0.05, "timeout_ms": 20000, "unhealthy_threshold": 3}})
    state["status"], state["sick"] = FAILING, True
    assert wait_until(lambda: stand.ask() and is_out(proxy, a))
    assert wait_until(lambda: ejected(proxy) == 0), "its ejection is over"
    failures = proxy.metrics().total("target_health_check_failures_total", target=a.label)
    assert wait_until(lambda: proxy.metrics().total("target_health_check_failures_total", target=a.label) > failures + 3)
    assert is_out(proxy, a), "but its checks fail"
    state["status"], state["sick"] = "200 OK", False
    assert wait_until(lambda: set(served_by(stand)) == {"A", "B"})


def test_C_096_a_failed_check_wins_over_an_operator_who_says_that_it_is_up(stand):
    """The other source of C-096: there is no agent beside the checks, but an operator may enable what checks fail."""
    a, b = stand.backends_named("A", "B")
    moody(a)["sick"] = True
    config = stand.config([a, b], group={**group(), "panic_threshold_pct": 0, "health_check": {
        "type": "http", "path": "/health", "interval_s": 0.05, "timeout_ms": 20000}})
    config["target_groups"][0]["targets"][0]["enabled"] = False
    proxy = stand.serve(config)
    config["target_groups"][0]["targets"][0]["enabled"] = True
    proxy.reload(config)
    failures = lambda: proxy.metrics().total("target_health_check_failures_total", target=a.label)
    assert wait_until(lambda: failures() > 5)
    assert set(served_by(stand)) == {"B"}
    proxy.reload(config)  # said again
    assert set(served_by(stand)) == {"B"} and is_out(proxy, a)


def test_C_113_never_more_are_ejected_than_the_quota_allows(stand):
    backends = stand.backends_named("A", "B", "C", "D")
    for backend in backends:
        moody(backend)["status"] = FAILING
    proxy = stand.proxy(backends, group=group(max_ejection_pct=50, consecutive_5xx=5, consecutive_gateway_errors=5))
    assert wait_until(lambda: ask_many(stand, 8) and ejected(proxy) >= 2)
    for _ in range(5):
        ask_many(stand, 8)
        assert ejected(proxy) == 2
    assert proxy.metrics().total("target_ejections_total") == 2


def test_C_113_the_default_quota_is_a_tenth_and_at_least_one(stand):
    backends = stand.backends_named("A", "B", "C", "D")
    for backend in backends:
        moody(backend)["status"] = FAILING
    proxy = stand.proxy(backends)
    ejections = lambda: proxy.metrics().total("target_ejections_total")
    assert wait_until(lambda: ask_many(stand, 8) and ejections() >= 1)
    for _ in range(5):
        ask_many(stand, 8)
    assert ejections() == 1


def test_C_113_with_a_quota_of_all_and_no_panic_it_is_503(stand):
    backends = stand.backends_named("A", "B", "C", "D")
    for backend in backends:
        moody(backend)["status"] = "500 Broken"
    proxy = stand.proxy(backends, group={**group(max_ejection_pct=100, consecutive_5xx=5), "panic_threshold_pct": 0})
    assert wait_until(lambda: ask_many(stand, 4) and ejected(proxy) == 4)
    response = stand.ask()
    assert response.status == 503 and b"no target" in response.body
    assert proxy.metrics().total("target_group_panic") == 0


def test_C_113_with_a_quota_of_all_and_panic_traffic_spreads_over_all(stand):
    backends = stand.backends_named("A", "B", "C", "D")
    states = [moody(backend) for backend in backends]
    for state in states:
        state["status"] = "500 Broken"
    proxy = stand.proxy(backends, group={**group(max_ejection_pct=100, consecutive_5xx=5), "panic_threshold_pct": 50})
    assert wait_until(lambda: ask_many(stand, 4) and proxy.metrics().total("target_group_panic") == 1)
    assert ejected(proxy) == 2, "ejection never goes below the panic threshold"
    assert set(served_by(stand, 16)) == {"A", "B", "C", "D"}
    assert len(re.findall("target group web is in panic", proxy.stderr)) == 1


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("workers", [1, 3])
def test_C_114_small_pools_lose_at_most_one_and_never_the_last(stand, n, workers):
    backends = stand.backends_named(*"ABC"[:n])
    state = moody(backends[0])
    proxy = stand.proxy(backends, group=group(), workers=workers)
    state["status"] = "500 Broken"

    def ask_six():
        assert all(response.status in (200, 500) for response in ask_many(stand, 6)), "never 'no backend'"
        return True

    # The last one would have to go: then ejections have told nothing, and it is panic.
    is_panicking = lambda: proxy.metrics().total("target_group_panic") == 1
    assert wait_until(lambda: ask_six() and (ejected(proxy) == 1 if n > 1 else is_panicking()))
    for _ in range(5):
        ask_six()
        assert ejected(proxy) == (1 if n > 1 else 0)
    if n == 1:
        assert is_panicking()
        state["status"] = "200 OK"
        assert stand.ask().status == 200
    else:
        assert set(served_by(stand)) == set("ABC"[1:n])


def test_an_ejection_survives_a_reload(stand):
    a, b = stand.backends_named("A", "B")
    state = moody(a)
    config = stand.config([a, b], group=group())
    proxy = stand.serve(config)
    state["status"] = FAILING
    assert wait_until(lambda: stand.ask() and is_out(proxy, a))
    proxy.reload({**config, "via": True})
    assert set(served_by(stand)) == {"B"} and ejected(proxy) == 1


def test_what_clients_do_is_no_failure_of_a_target(stand):
    a, b = stand.backends_named("A", "B")
    proxy = stand.proxy([a, b], group=group())
    for _ in range(10):
        client = stand.client()
        client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        client.close()
    assert set(served_by(stand)) == {"A", "B"} and ejected(proxy) == 0
