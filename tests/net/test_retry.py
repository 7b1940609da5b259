# SPDX-License-Identifier: Apache-2.0
"""Retries within a budget, limits of one try, backoff, and limits of what a target is given (A12)."""
import threading
import time

import pytest

from harness.backend import text_response
from harness.process import wait_until

CALM = {"outlier": {"consecutive_5xx": 0, "consecutive_gateway_errors": 0, "error_rate_pct": 0}}


def total_requests(backends):
    return sum(len(backend.requests) for backend in backends)


@pytest.mark.parametrize("group", [CALM, {}], ids=["without-ejection", "defaults"])
def test_C_036_retries_stay_within_the_budget_when_all_targets_fail(stand, group):
    backends = stand.backends_named("a", "b", "c")
    for backend in backends:
        backend.answer = lambda request: text_response(b"", "503 Service Unavailable")
    proxy = stand.proxy(backends, group={"retry": {"attempts": 4, "on": ["gateway_error"], "budget_pct": 20}, **group})
    client, n = stand.client(), 600
    for _ in range(n):
        client.request()
        assert client.read_response().status == 503
    floor = 10  # what a worker may spend before any request has earned it
    assert n * 1.1 < total_requests(backends) <= n * 1.2 + floor + 1
    metrics = proxy.metrics()
    assert metrics.total("target_group_retries_suppressed_total") > 0
    assert metrics.total("target_group_retries_total") == total_requests(backends) - n
    before = total_requests(backends)
    for _ in range(20):
        client.request("POST", body=b"x")
        assert client.read_response().status == 503
    assert total_requests(backends) - before == 20, "a POST is not repeated on 5xx"


def test_a_budget_of_0_never_repeats_what_was_sent(stand):
    backends = stand.backends_named("a", "b")
    for backend in backends:
        backend.answer = lambda request: text_response(b"", "503 Service Unavailable")
    stand.proxy(backends, group={"retry": {"attempts": 2, "on": ["gateway_error"], "budget_pct": 0}, **CALM})
    for _ in range(30):
        assert stand.ask().status == 503
    assert total_requests(backends) <= 30 + 10


def hung_and_good(stand, **group):
    """A target that takes its time with every request, until it is let go, and one that answers."""
    release = threading.Event()
    hung, good = stand.backends_named("hung", "good")

    def late(request):
        release.wait(30)
        return text_response(b"hung")

    hung.answer = late
    proxy = stand.proxy([hung, good], group={**CALM, **group})
    return proxy, hung, good, release


def test_a_try_that_takes_too_long_goes_elsewhere(stand):
    proxy, hung, good, release = hung_and_good(stand, retry={"attempts": 2, "per_try_ms": 60})
    for _ in range(6):
        response = stand.ask()
        assert response.status == 200 and response.body == b"good"
    metrics = proxy.metrics()
    assert len(hung.requests) == metrics.total("target_response_timeouts_total", target=hung.label) >= 3
    release.set()


def test_the_last_try_and_what_may_not_be_repeated_have_response_ms(stand):
    proxy, hung, good, release = hung_and_good(stand, retry={"attempts": 2, "per_try_ms": 20})
    clients = [stand.client() for _ in range(2)]
    for client in clients:
        client.request("POST", body=b"once")
    assert wait_until(lambda: len(hung.requests) == 1)
    time.sleep(0.1)
    release.set()
    assert {client.read_response().body for client in clients} == {b"hung", b"good"}
    assert proxy.metrics().total("target_group_retries_total") == 0


def test_without_budget_a_slow_try_is_waited_for_up_to_response_ms(stand):
    proxy, _, _, release = hung_and_good(stand, retry={"attempts": 2, "per_try_ms": 20, "budget_pct": 0},
                                         timeouts={"response_ms": 150})
    statuses = [stand.ask().status for _ in range(24)]
    release.set()
    assert set(statuses) == {200, 504} and 504 not in statuses[:10]
    metrics = proxy.metrics()
    assert metrics.total("target_group_retries_total") == 10, "what is there at the start"
    assert metrics.total("target_group_retries_suppressed_total") == statuses.count(504)


def test_response_ms_holds_over_per_try_ms(stand):
    backends = stand.backends_named("a", "b")
    release = threading.Event()
    for backend in backends:
        backend.answer = lambda request: (release.wait(30), text_response(b""))[1]
    stand.proxy(backends, group={"retry": {"attempts": 2, "per_try_ms": 30}, "timeouts": {"response_ms": 150}, **CALM})
    assert stand.ask().status == 504
    release.set()
    assert [len(backend.requests) for backend in backends] == [1, 1]


def test_backoff_waits_before_another_try(stand):
    bad, good = stand.backends_named("bad", "good")
    bad.answer = lambda request: text_response(b"", "503 Service Unavailable")
    stand.proxy([bad, good], group={"retry": {"attempts": 2, "on": ["gateway_error"], "backoff_ms": 200}, **CALM})
    slow = 0
    for _ in range(4):
        begun = time.monotonic()
        assert stand.ask().body == b"good"
        slow += time.monotonic() - begun >= 0.1
    assert len(bad.requests) == slow >= 2


def test_a_client_that_leaves_during_backoff_leaves_nothing_behind(stand):
    bad = stand.backend(name="bad")
    bad.answer = lambda request: text_response(b"", "503 Service Unavailable")
    proxy = stand.proxy(bad, group={"retry": {"attempts": 2, "on": ["gateway_error"], "backoff_ms": 600}, **CALM})
    for end in ("close", "reset"):
        client = stand.client()
        client.request()
        n = len(bad.requests)
        assert wait_until(lambda: len(bad.requests) > n or len(bad.requests))
        getattr(client, end)()
    assert wait_until(lambda: proxy.metrics().total("listener_active_requests") == 0)


def slow_target(stand, limits, workers=1):
    lock, state = threading.Lock(), {"now": 0, "most": 0}
    release = threading.Event()
    backend = stand.backend()

    def answer(request):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        if request.target == "/hold":
            release.wait(30)
        else:
            time.sleep(0.02)
        with lock:
            state["now"] -= 1
        return text_response(b"ok")

    backend.answer = answer
    proxy = stand.proxy(backend, group={"limits": limits, **CALM}, workers=workers)
    return proxy, backend, state, release


@pytest.mark.parametrize("workers", [1, 3])
def test_requests_of_a_target_are_limited_and_the_rest_waits(stand, workers):
    proxy, _, state, _ = slow_target(stand, {"requests": 2, "pending": 100, "pending_ms": 20000}, workers)
    statuses = []

    def run():
        client = stand.client()
        for _ in range(4):
            client.request()
            statuses.append(client.read_response().status)

    threads = [threading.Thread(target=run) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 40 and state["most"] <= 2
    assert wait_until(lambda: proxy.metrics().total("target_in_flight") == 0)


def test_a_full_target_without_a_queue_fails_fast_with_a_reason_of_its_own(stand):
    _, backend, _, release = slow_target(stand, {"requests": 1, "pending": 0})
    holder = stand.client()
    holder.request(target="/hold")
    assert wait_until(lambda: backend.requests)
    response = stand.ask(fields=[("Accept", "application/json")])
    assert response.status == 503 and b"targets-full" in response.body and response.get("Retry-After")
    release.set()
    assert holder.read_response().status == 200
    assert stand.ask().status == 200


def test_a_full_target_is_passed_over_while_another_has_room(stand):
    a, b = stand.backends_named("A", "B")
    release = threading.Event()
    a.answer = lambda request: (release.wait(30) if request.target == "/hold" else None, text_response(b"A"))[1]
    stand.proxy([a, b], group={"limits": {"requests": 1, "pending": 0}, **CALM})
    holder = stand.client()
    holder.request(target="/hold")
    assert wait_until(lambda: a.requests or b.requests)
    if not a.requests:  # it went to B: the next one goes to A
        assert holder.read_response().body == b"B"
        holder.request(target="/hold")
        assert wait_until(lambda: a.requests)
    for _ in range(5):
        assert stand.ask().body == b"B"
    release.set()
    assert holder.read_response().body == b"A"
