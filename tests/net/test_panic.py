# SPDX-License-Identifier: Apache-2.0
"""Panic (D5): with too few usable targets health is ignored, so that checks never turn a part's failure into everybody's."""
import collections
import re

import pytest

from harness.backend import text_response
from harness.ports import free_port
from harness.process import wait_until

CHECK = {"type": "http", "path": "/health", "interval_s": 0.05, "timeout_ms": 20000, "healthy_threshold": 2,
         "unhealthy_threshold": 2}


def with_health(backend):
    """Every request but the checks is answered well; checks as state["status"] says."""
    state = {"status": "200 OK"}
    backend.answer = lambda request: text_response(b"", state["status"]) if request.target == "/health" \
        else text_response(backend.name.encode())
    return state


def served_by(stand, n=16):
    answers = [stand.ask() for _ in range(n)]
    return collections.Counter(answer.body.decode() if answer.status == 200 else answer.status for answer in answers)


def is_panicking(proxy):
    return proxy.metrics().total("target_group_panic") == 1


def said(proxy, what):
    return len(re.findall(f"target group web is {what} panic", proxy.stderr))


def four(stand, **group):
    backends = stand.backends_named("A", "B", "C", "D")
    states = [with_health(backend) for backend in backends]
    proxy = stand.proxy(backends, group={"health_check": CHECK, **group})
    assert wait_until(lambda: proxy.metrics().total("target_up") == 4)
    return proxy, backends, states


def test_D5_below_half_requests_go_to_all_and_above_to_the_healthy(stand):
    proxy, _, states = four(stand)
    states[0]["status"] = states[1]["status"] = "500 No"
    assert wait_until(lambda: proxy.metrics().total("target_up") == 2)
    assert not is_panicking(proxy) and set(served_by(stand)) == {"C", "D"}
    states[2]["status"] = "500 No"
    assert wait_until(lambda: is_panicking(proxy))
    assert set(served_by(stand)) == {"A", "B", "C", "D"}
    assert proxy.metrics().total("target_up") == 1, "what is known of the targets is still told"
    for state in states[:3]:
        state["status"] = "200 OK"
    assert wait_until(lambda: not is_panicking(proxy))
    assert said(proxy, "in") == 1 and said(proxy, "out of") == 1
    assert proxy.metrics().total("target_group_panics_total") == 1


def test_D5_all_checks_fail_and_everything_goes_on(stand):
    proxy, _, states = four(stand)
    for state in states:
        state["status"] = "500 No"
    assert wait_until(lambda: is_panicking(proxy) and proxy.metrics().total("target_up") == 0)
    assert served_by(stand) == {"A": 4, "B": 4, "C": 4, "D": 4}


def test_D5_just_at_the_threshold_panic_ends_a_while_later(stand):
    proxy, _, states = four(stand)
    for state in states[:3]:
        state["status"] = "500 No"
    assert wait_until(lambda: is_panicking(proxy))
    states[0]["status"] = "200 OK"
    assert wait_until(lambda: proxy.metrics().total("target_up") == 2)
    assert is_panicking(proxy), "it does not flap"
    assert wait_until(lambda: not is_panicking(proxy))
    assert set(served_by(stand)) == {"A", "D"}


def test_a_threshold_of_0_is_503_when_nobody_is_usable(stand):
    proxy, _, states = four(stand, panic_threshold_pct=0)
    for state in states:
        state["status"] = "500 No"
    assert wait_until(lambda: proxy.metrics().total("target_up") == 0)
    assert served_by(stand) == {503: 16} and not is_panicking(proxy)


def test_targets_that_never_came_up_are_tried_when_there_is_nobody_else(stand):
    proxy = stand.proxy({"ip": "127.0.0.1", "port": free_port()},
                        group={"health_check": {"type": "tcp", "interval_s": 0.05, "timeout_ms": 20000,
                                                "unhealthy_threshold": 2}})
    assert wait_until(lambda: is_panicking(proxy))
    assert stand.ask().status == 502


def test_targets_that_never_came_up_do_not_count_beside_others(stand):
    good = stand.backend(name="good")
    with_health(good)
    dead = [{"ip": "127.0.0.1", "port": free_port()} for _ in range(3)]
    proxy = stand.proxy([good, *dead], group={"health_check": CHECK})
    assert wait_until(lambda: proxy.metrics().total("target_health_check_failures_total") >= 9)
    assert not is_panicking(proxy)
    assert served_by(stand) == {"good": 16}


def test_disabled_targets_and_weight_0_stay_out_of_panic(stand):
    backends = stand.backends_named("A", "B", "C")
    for backend in backends:
        with_health(backend)["status"] = "500 No"
    a, b, c = backends
    proxy = stand.proxy([a, {**b.target, "enabled": False}, {**c.target, "weight": 0}], group={"health_check": CHECK})
    assert wait_until(lambda: is_panicking(proxy))
    assert served_by(stand) == {"A": 16}


def test_C_110_a_usable_backup_serves_in_place_of_panic(stand):
    primary, backup = stand.backends_named("primary", "backup")
    state, other = with_health(primary), with_health(backup)
    proxy = stand.proxy([primary, {**backup.target, "backup": True}], group={"health_check": CHECK})
    assert wait_until(lambda: proxy.metrics().total("target_up") == 2)
    state["status"] = "500 No"
    assert wait_until(lambda: set(served_by(stand, 4)) == {"backup"})
    assert not is_panicking(proxy)
    other["status"] = "500 No"
    assert wait_until(lambda: is_panicking(proxy))
    assert set(served_by(stand)) == {"primary"}


@pytest.mark.parametrize("algorithm", ["round_robin", "p2c_least_request", "maglev"])
def test_D5_in_panic_a_retry_finds_a_target_that_lives(stand, algorithm):
    backends = stand.backends_named("A", "B", "C")
    states = [with_health(backend) for backend in backends]
    proxy = stand.proxy(backends, group={"health_check": CHECK, "algorithm": algorithm, "retry": {"attempts": 3},
                                         "outlier": {"consecutive_gateway_errors": 0, "consecutive_5xx": 0}})
    assert wait_until(lambda: proxy.metrics().total("target_up") == 3)
    backends[0].stop()
    backends[1].stop()
    assert wait_until(lambda: is_panicking(proxy))
    assert states and served_by(stand) == {"C": 16}
