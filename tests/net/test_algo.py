# SPDX-License-Identifier: Apache-2.0
"""Balancing methods through the running proxy. Their arithmetic has unit tests; here is what a client sees."""
import collections
import copy
import threading
import time

import pytest

from harness.backend import text_response

ALGORITHMS = ["round_robin", "weighted_round_robin", "least_connections", "p2c_least_request", "random", "ip_hash",
              "consistent_hash", "maglev"]


def weighted(backends, weights):
    return [{**backend.target, "weight": weight} for backend, weight in zip(backends, weights)]


def sequence(stand, n, fields=lambda turn: (), target=lambda turn: "/"):
    """Which backend answered each of n requests on one connection."""
    client = stand.client()
    names = []
    for turn in range(n):
        client.request(target=target(turn), fields=fields(turn))
        response = client.read_response()
        assert response.status == 200, response.start
        names.append(response.body.decode())
    return names


def test_C_105_weighted_round_robin_is_exact_and_smooth(stand):
    backends = stand.backends_named("A", "B", "C")
    stand.proxy(weighted(backends, [5, 1, 1]), group={"algorithm": "weighted_round_robin"})
    names = sequence(stand, 700)
    assert collections.Counter(names) == {"A": 500, "B": 100, "C": 100}
    assert "".join(names[:7]) == "AABACAA"


def test_C_105_three_to_one_gives_a_a_b_a(stand):
    backends = stand.backends_named("A", "B")
    stand.proxy(weighted(backends, [3, 1]), group={"algorithm": "weighted_round_robin"})
    assert "".join(sequence(stand, 8)) == "AABAAABA"


def test_C_105_fifty_to_one_interleaves(stand):
    backends = stand.backends_named("A", "B", "C", "D")
    stand.proxy(weighted(backends, [50, 1, 1, 1]), group={"algorithm": "weighted_round_robin"})
    names = "".join(sequence(stand, 106))
    assert collections.Counter(names) == {"A": 100, "B": 2, "C": 2, "D": 2}
    assert "A" * 50 not in names


def test_round_robin_takes_turns(stand):
    stand.proxy(stand.backends_named("A", "B", "C"))
    assert "".join(sequence(stand, 6)) in ("ABCABC", "BCABCA", "CABCAB")


@pytest.mark.parametrize("algorithm", ["consistent_hash", "maglev"])
def test_C_108_a_key_stays_with_its_server_whatever_the_order(stand, algorithm):
    backends = stand.backends_named(*"ABCDE")
    group = {"algorithm": algorithm, "hash_key": {"header": "X-Key"}}
    stand.proxy(backends, group=group)
    keys = [f"/products/sku-{n}" for n in range(300)]
    first = sequence(stand, len(keys), fields=lambda turn: [("X-Key", keys[turn])])
    assert sequence(stand, len(keys), fields=lambda turn: [("X-Key", keys[turn])]) == first
    assert len(set(first)) == 5
    shuffled = [backends[i] for i in (3, 0, 4, 2, 1)]
    other = stand.proxy(shuffled, group=group)
    client = stand.client(other)
    again = []
    for key in keys:
        client.request(fields=[("X-Key", key)])
        again.append(client.read_response().body.decode())
    assert again == first
    third = stand.proxy([backend for backend in shuffled if backend.name != "C"], group=group)
    client = stand.client(third)
    moved = 0
    for key, name in zip(keys, first):
        client.request(fields=[("X-Key", key)])
        now = client.read_response().body.decode()
        moved += name != "C" and now != name
    assert moved <= len(keys) * 0.05, "only the keys of the removed server move (Maglev: and a few more)"


@pytest.mark.parametrize("kind,request_of", [
    ({"header": "X-User"}, lambda key: ("/", [("X-User", key)])),
    ({"cookie": "user"}, lambda key: ("/", [("Cookie", f"a=b; user={key}; z=1")])),
    ({"cookie": "user"}, lambda key: ("/", [("Cookie", "a=b"), ("Cookie", f"user={key}")])),
    ({"query": "user"}, lambda key: (f"/x?a=1&user={key}", [])),
    ("path", lambda key: (f"/{key}", [])),
], ids=["header", "cookie", "second-cookie-field", "query", "path"])
def test_hash_keys_select_by_what_they_name(stand, kind, request_of):
    stand.proxy(stand.backends_named(*"ABCD"), group={"algorithm": "consistent_hash", "hash_key": kind})
    client = stand.client()
    seen = {}
    for turn in range(120):
        target, fields = request_of(f"key{turn % 40}")
        client.request(target=target, fields=fields)
        seen.setdefault(turn % 40, set()).add(client.read_response().body)
    assert all(len(names) == 1 for names in seen.values())
    assert len(set().union(*seen.values())) > 1, "a key that is not seen leaves the client's address, and one target"
    assert len(set().union(*seen.values())) == 4


def test_ip_hash_keeps_a_client_with_its_server(stand):
    stand.proxy(stand.backends_named(*"ABCD"), group={"algorithm": "ip_hash"}, trusted_proxies=["127.0.0.0/8"])
    client = stand.client()
    seen = {}
    for turn in range(160):
        client.request(fields=[("X-Forwarded-For", f"203.0.113.{turn % 80}")])
        seen.setdefault(turn % 80, set()).add(client.read_response().body)
    assert all(len(names) == 1 for names in seen.values())
    assert len(set().union(*seen.values())) == 4


@pytest.mark.parametrize("algorithm", ["p2c_least_request", "least_connections"])
def test_C_109_a_slow_server_gets_little_of_the_work(stand, algorithm):
    backends = stand.backends_named(*"ABCDE")
    slow = backends[0]

    def answer_slowly(request):
        time.sleep(0.4)
        return text_response(b"A")

    slow.answer = answer_slowly
    stand.proxy(backends, group={"algorithm": algorithm}, workers=2)
    counts = collections.Counter()
    stop = time.monotonic() + 3

    def run():
        client = stand.client()
        while time.monotonic() < stop:
            client.request()
            counts[client.read_response().body.decode()] += 1

    threads = [threading.Thread(target=run) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum(counts.values())
    assert total > 300
    assert counts["A"] / total < 0.1, counts
    assert all(counts[name] for name in "BCDE")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n", [1, 2])
def test_C_109_pools_of_one_and_two_work(stand, algorithm, n):
    stand.proxy(stand.backends_named(*"AB"[:n]), group={"algorithm": algorithm})
    names = sequence(stand, 40, target=lambda turn: f"/{turn}")
    assert set(names) <= set("AB"[:n])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_C_110_all_weights_zero_is_503_that_names_the_weights(stand, algorithm):
    backends = stand.backends_named("A", "B")
    log = stand.folder + "/access.log"
    stand.proxy(weighted(backends, [0, 0]), group={"algorithm": algorithm},
                access_log={"file": log, "format": "{status} {reason}"})
    response = stand.ask()
    assert response.status == 503
    end = time.monotonic() + 20
    line = ""
    while not line and time.monotonic() < end:
        time.sleep(0.02)
        with open(log, encoding="utf-8") as text:
            line = text.read()
    status, reason = line.split()
    assert status == "503" and "weight" in reason


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_weight_zero_takes_no_new_work(stand, algorithm):
    backends = stand.backends_named("A", "B", "C")
    stand.proxy(weighted(backends, [7, 0, 7]), group={"algorithm": algorithm, "hash_key": "path"})
    assert set(sequence(stand, 60, target=lambda turn: f"/{turn}")) <= {"A", "C"}
    assert backends[1].raw == b""


def test_C_110_backups_serve_only_when_nobody_else_can(stand):
    primary, backup = stand.backends_named("primary", "backup")
    targets = [primary.target, {**backup.target, "backup": True}]
    stand.proxy(targets, group={"health_check": {"type": "tcp", "interval_s": 0.1, "timeout_ms": 500,
                                                 "unhealthy_threshold": 1, "healthy_threshold": 1}})
    assert set(sequence(stand, 10)) == {"primary"}
    primary.stop()
    end = time.monotonic() + 20
    while time.monotonic() < end and stand.ask().body != b"backup":
        time.sleep(0.05)
    assert set(sequence(stand, 10)) == {"backup"}
    primary.start()
    while time.monotonic() < end and stand.ask().body != b"primary":
        time.sleep(0.05)
    assert set(sequence(stand, 10)) == {"primary"}


def test_B2_switching_the_algorithm_applies_to_the_next_pick(stand):
    backends = stand.backends_named("A", "B")
    config = stand.config(weighted(backends, [1, 0]), group={"algorithm": "weighted_round_robin"})
    proxy = stand.serve(config)
    client = stand.client()
    for turn, algorithm in enumerate(ALGORITHMS * 2):
        changed = copy.deepcopy(config)
        changed["target_groups"][0]["algorithm"] = algorithm
        changed["target_groups"][0]["targets"] = weighted(backends, [1, 0] if turn % 2 else [0, 1])
        proxy.reload(changed)
        client.request()
        assert client.read_response().body == (b"A" if turn % 2 else b"B"), algorithm
