# SPDX-License-Identifier: Apache-2.0
"""Slow start (B7): who comes back begins with a small share. Shares are judged by isobar's own ratio, read before and after, and
never by the clock of a machine that has other things to do."""
import collections

import pytest

from harness.backend import text_response
from harness.process import wait_until

# Checks never time out here: a machine that stands still for seconds would take all targets out together.
CHECK = {"type": "http", "path": "/health", "interval_s": 0.03, "timeout_ms": 20000, "healthy_threshold": 1,
         "unhealthy_threshold": 1}


def with_health(backend):
    state = {"status": "200 OK"}
    backend.answer = lambda request: text_response(b"", state["status"]) if request.target == "/health" \
        else text_response(backend.name.encode())
    return state


def ratio(proxy, backend):
    return proxy.metrics().total("target_slow_start_ratio", target=backend.label)


def ups(proxy):
    return proxy.metrics().total("target_up")


def served_by(stand, n, target="/"):
    """On one connection: the names, and no request may fail."""
    client = stand.client()
    seen = collections.Counter()
    for _ in range(n):
        client.request(target=target)
        response = client.read_response()
        assert response.status == 200
        seen[response.body.decode()] += 1
    client.close()
    return seen


def four(stand, slow_start_s=20, **group):
    backends = stand.backends_named("A", "B", "C", "D")
    states = [with_health(backend) for backend in backends]
    proxy = stand.proxy(backends, group={"health_check": CHECK, "slow_start_s": slow_start_s, **group})
    assert wait_until(lambda: ups(proxy) == 4)
    return proxy, backends, states


def flap(proxy, state, n_up=4):
    state["status"] = "500 No"
    assert wait_until(lambda: ups(proxy) == n_up - 1)
    state["status"] = "200 OK"
    assert wait_until(lambda: ups(proxy) == n_up)


@pytest.mark.parametrize("algorithm", ["round_robin", "weighted_round_robin", "least_connections", "p2c_least_request", "random"])
def test_C_100_the_share_grows_with_the_ratio_up_to_an_equal_one(stand, algorithm):
    proxy, backends, states = four(stand, slow_start_s=6, algorithm=algorithm)
    # p2c draws two: at equal loads the first drawn wins, so that shares are those of the weights in force. What is drawn
    # may be off by chance: five standard deviations of the share, which is one failure in a million measurements.
    n, off = (1200, 5 * (0.25 * 0.75 / 1200) ** 0.5) if algorithm in ("p2c_least_request", "random") else (400, 0.04)
    off += 0.02  # the worker's ratio is up to 100 ms old
    assert served_by(stand, n)["A"] / n > 0.25 - off, "warm at the start"
    flap(proxy, states[0])
    seen = []
    while True:
        before = ratio(proxy, backends[0])
        share = served_by(stand, n)["A"] / n
        after = ratio(proxy, backends[0])
        low, high = before / (3 + before) - off, after / (3 + after) + off
        assert low < share < high, (before, share, after)
        seen.append((share, high))
        if before == 1:
            break
    # A machine so slow that the first measurement covers most of the growth has shown what it could by the bounds.
    assert seen[0][0] < seen[-1][0] or seen[0][1] > 0.25, seen
    assert ratio(proxy, backends[1]) == 1


def test_C_100_each_return_begins_anew(stand):
    proxy, backends, states = four(stand, slow_start_s=3)
    for _ in range(3):
        flap(proxy, states[0])
        assert ratio(proxy, backends[0]) < 0.9
        assert wait_until(lambda: ratio(proxy, backends[0]) == 1)
    flap(proxy, states[0])
    assert ratio(proxy, backends[0]) < 0.9


def test_targets_of_a_new_group_have_their_whole_share_at_once(stand):
    proxy, backends, _ = four(stand, algorithm="round_robin")
    assert all(ratio(proxy, backend) == 1 for backend in backends)
    assert served_by(stand, 40) == {"A": 10, "B": 10, "C": 10, "D": 10}


def test_C_100_all_in_slow_start_refuse_nobody_and_share_equally(stand):
    proxy, backends, states = four(stand, panic_threshold_pct=0)
    for state in states:
        state["status"] = "500 No"
    assert wait_until(lambda: ups(proxy) == 0)
    for state in states:
        state["status"] = "200 OK"
    assert wait_until(lambda: ups(proxy) == 4)
    assert all(ratio(proxy, backend) < 1 for backend in backends)
    seen = served_by(stand, 400)
    assert all(40 < seen[name] < 200 for name in "ABCD"), seen


def test_C_100_a_group_that_begins_with_one_target_refuses_nobody(stand):
    backend = stand.backend(name="A")
    state = with_health(backend)
    config = stand.config([], group={"health_check": CHECK, "slow_start_s": 20, "panic_threshold_pct": 0})
    proxy = stand.serve(config)
    assert stand.ask().status == 503
    config["target_groups"][0]["targets"] = [backend.target]
    proxy.reload(config)
    assert wait_until(lambda: ups(proxy) == 1)
    assert served_by(stand, 20) == {"A": 20}
    state["status"] = "500 No"
    assert wait_until(lambda: ups(proxy) == 0)
    state["status"] = "200 OK"
    assert wait_until(lambda: ups(proxy) == 1)
    assert ratio(proxy, backend) < 1 and served_by(stand, 20) == {"A": 20}


def test_a_target_added_to_a_warm_group_starts_slowly(stand):
    backends = stand.backends_named("A", "B", "C")
    for backend in backends:
        with_health(backend)
    config = stand.config(backends[1:], group={"health_check": CHECK, "slow_start_s": 60})
    proxy = stand.serve(config)
    assert wait_until(lambda: ups(proxy) == 2)
    # Those that come within the group's first seconds are no newcomers in it.
    served_by(stand, 10)
    assert wait_until(lambda: proxy.metrics().total("target_health_checks_total") > 450, 60)
    config["target_groups"][0]["targets"] = [backend.target for backend in backends]
    proxy.reload(config)
    assert wait_until(lambda: ups(proxy) == 3)
    assert ratio(proxy, backends[0]) < 0.5 and served_by(stand, 100)["A"] < 20


def test_B7_stepped_knows_three_levels(stand):
    proxy, backends, states = four(stand, slow_start_s=1, slow_start_shape="stepped")
    flap(proxy, states[0])
    seen = set()
    assert wait_until(lambda: seen.add(round(ratio(proxy, backends[0]), 2)) or 1 in seen)
    assert seen <= {0.1, 0.5, 1}, seen


@pytest.mark.parametrize("algorithm", ["consistent_hash", "maglev"])
def test_B7_hashing_moves_only_the_keys_of_the_target_that_returns(stand, algorithm):
    proxy, backends, states = four(stand, slow_start_s=2, algorithm=algorithm, hash_key={"query": "k"})
    keys = [f"/?k={n}" for n in range(120)]

    def owners():
        client = stand.client()
        found = {}
        for key in keys:
            client.request(target=key)
            found[key] = client.read_response().body.decode()
        client.close()
        return found

    whole = owners()
    states[0]["status"] = "500 No"
    assert wait_until(lambda: ups(proxy) == 3)
    without = owners()
    states[0]["status"] = "200 OK"
    assert wait_until(lambda: ups(proxy) == 4)
    back = set()
    while ratio(proxy, backends[0]) < 1:
        now = owners()
        assert all(now[key] == without[key] for key in keys if now[key] != "A"), "nobody else's key moves"
        returned = {key for key in keys if now[key] == "A"}
        assert back <= returned and all(whole[key] == "A" for key in returned), "step by step, and for good"
        back = returned
    assert wait_until(lambda: owners() == whole)
