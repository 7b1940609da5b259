# SPDX-License-Identifier: Apache-2.0
"""A target that leaves (removed or disabled) gets no new work and may end what it has; a process that leaves says so."""
import copy
import json
import signal
import struct
import threading
import time

from harness.backend import text_response
from harness.process import wait_until
from harness.websocket import frame, open_websocket, read_frame


def websocket_backend(seen, half_frame=False):
    """Accepts the upgrade and echoes frames; with half_frame it stays in the middle of one until told."""

    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        if half_frame:
            wire.send(frame(b"x" * 100)[:50])
            seen["rest"].wait(20)
            wire.send(frame(b"x" * 100)[50:])
        while True:
            opcode, payload = read_frame(wire)
            seen.setdefault("frames", []).append((opcode, payload))
            if opcode == 0x8:
                break
            wire.send(frame(payload, opcode))
        wire.read_to_end()

    return script


def without_first_target(config):
    changed = copy.deepcopy(config)
    del changed["target_groups"][0]["targets"][0]
    return changed


def test_E2_a_websocket_gets_a_close_frame_before_the_deadline_and_then_ends(stand):
    seen = {}
    gone, stays = stand.backend(websocket_backend(seen), name="gone"), stand.backend(name="stays")
    config = stand.config([gone, stays], group={"deregistration_delay_s": 2})
    proxy = stand.serve(config)
    client = open_websocket(stand)
    client.send(frame(b"hello", masked=True))
    assert read_frame(client) == (2, b"hello")
    proxy.reload(without_first_target(config))
    client.send(frame(b"still here", masked=True))
    assert read_frame(client) == (2, b"still here")
    assert read_frame(client) == (8, struct.pack(">H", 1001))
    assert wait_until(lambda: (8, struct.pack(">H", 1001)) in seen["frames"])
    client.expect_end()
    assert proxy.metrics().total("target_group_drain_cut_total") == 1
    assert stand.ask().body == b"stays"


def test_E2_the_close_frame_never_stands_inside_another_frame(stand):
    seen = {"rest": threading.Event()}
    gone, stays = stand.backend(websocket_backend(seen, half_frame=True), name="gone"), stand.backend(name="stays")
    config = stand.config([gone, stays], group={"deregistration_delay_s": 4})
    proxy = stand.serve(config)
    client = open_websocket(stand)
    proxy.reload(without_first_target(config))
    time.sleep(3.3)  # past the notice, a second before the deadline of 4 s
    seen["rest"].set()
    assert read_frame(client) == (2, b"x" * 100)
    assert read_frame(client) == (8, struct.pack(">H", 1001))
    client.expect_end()


def test_E1_a_request_in_flight_on_a_removed_target_ends_in_order(stand):
    release = threading.Event()

    def slow(wire):
        wire.read_request()
        release.wait(20)
        wire.send(text_response(b"late"))

    gone, stays = stand.backend(slow, name="gone"), stand.backend(name="stays")
    config = stand.config([gone, stays])
    proxy = stand.serve(config)
    client = stand.client()
    client.request()
    assert wait_until(lambda: gone.requests)
    proxy.reload(without_first_target(config))
    assert all(stand.ask().body == b"stays" for _ in range(6))
    release.set()
    assert client.read_response().body == b"late"


def test_E1_at_the_deadline_what_is_left_is_cut_and_counted(stand):
    def silent(wire):
        wire.read_request()
        wire.read_to_end()

    gone, stays = stand.backend(silent, name="gone"), stand.backend(name="stays")
    config = stand.config([gone, stays], group={"deregistration_delay_s": 0.5})
    proxy = stand.serve(config)
    client = stand.client()
    client.request()
    assert wait_until(lambda: gone.requests)
    proxy.reload(without_first_target(config))
    response = client.read_response()
    assert response.status == 503 and b"deregistration_delay_s" in response.body
    assert proxy.metrics().total("target_group_drain_cut_total") == 1


def test_E1_a_disabled_target_gets_no_new_work_and_its_idle_connections_end(stand):
    gone, stays = stand.backend(name="gone"), stand.backend(name="stays")
    config = stand.config([gone, stays])
    proxy = stand.serve(config)
    client = stand.client()
    names = set()
    for _ in range(4):
        client.request()
        names.add(client.read_response().body)
    assert names == {b"gone", b"stays"}
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"][0]["enabled"] = False
    proxy.reload(changed)
    assert wait_until(lambda: proxy.metrics().total("target_idle_connections", target=gone.label) == 0)
    for _ in range(6):  # the client's own connection lives on
        client.request()
        assert client.read_response().body == b"stays"


def test_E3_a_lame_duck_says_so_serves_on_and_ends_connections_with_their_answer(stand):
    backend = stand.backend(name="a")
    proxy = stand.proxy(backend, lame_duck_s=2)
    client = stand.client()
    client.request()
    assert not client.read_response().closes
    proxy.signal(signal.SIGTERM)
    assert wait_until(lambda: proxy.get("/healthz")[0] == 503)
    client.request()
    response = client.read_response()
    assert response.status == 200 and response.closes
    client.expect_end()
    assert stand.ask().status == 200  # new connections are still taken
    assert proxy.stop() == 0


def wait_for_word(stand, proxy, word):
    assert wait_until(lambda: word in proxy.stderr), proxy.stderr


def test_E1_a_removed_target_is_shown_with_its_deadline_until_it_is_gone_C_104(stand):
    """C-104: what a removed target still does is visible, and it is "removed" when the last of it has ended."""
    release = threading.Event()

    def slow(wire):
        wire.read_request()
        release.wait(60)
        wire.send(text_response(b"late"))

    old, new = stand.backend(slow), stand.backend(name="new")
    proxy = stand.proxy([old], group={"deregistration_delay_s": 60})
    label = {"target_group": "web", "target": old.label}
    wire = stand.client()
    wire.request("GET", "/")
    assert wait_until(lambda: proxy.metrics().total("target_in_flight") == 1)
    before = time.time()
    config = copy.deepcopy(proxy.config)
    config["target_groups"][0]["targets"] = [new.target]
    proxy.reload(config)

    for _ in range(3):
        metrics = proxy.metrics()
        assert metrics.total("target_state", state="draining", **label) == 1
        assert metrics.total("target_state_reason", reason="gone", **label) == 1
        assert metrics.total("target_in_flight", **label) == 1
        deadline = metrics.total("target_drain_deadline_timestamp_seconds", **label)
        assert before + 59 <= deadline <= time.time() + 61
    health = json.loads(proxy.get("/api/health")[1])
    assert [(row["target"], row["state"], row["reason"], row["active_connections"]) for row in health["draining"]] == [
        (old.label, "draining", "gone", 1)]
    assert health["total_backends"] == 1
    assert "is removed" not in proxy.stderr

    release.set()
    assert wire.read_response().body == b"late"
    wait_for_word(stand, proxy, f"{old.label} is removed (was draining): empty")
    assert proxy.metrics().select("target_state", **label) == []
    assert json.loads(proxy.get("/api/health")[1])["draining"] == []


def test_a_target_that_comes_back_while_it_leaves_is_the_same_one_and_afterwards_a_new_one_C_142(stand):
    release = threading.Event()

    def answer(request):
        if request.target == "/slow":
            release.wait(60)
        return text_response(b"old")

    old, new = stand.backend(), stand.backend(name="new")
    old.answer = answer
    proxy = stand.proxy([old, new])
    both, one = proxy.config, copy.deepcopy(proxy.config)
    one["target_groups"][0]["targets"] = [new.target]
    label = {"target_group": "web", "target": old.label}
    wire = stand.client()
    wire.request("GET", "/slow")
    assert wait_until(lambda: proxy.metrics().total("target_in_flight", **label) == 1)

    proxy.reload(one)
    assert proxy.metrics().total("target_state", state="draining", **label) == 1
    proxy.reload(both)
    metrics = proxy.metrics()
    assert metrics.total("target_state", state="active", **label) == 1
    assert metrics.total("target_in_flight", **label) == 1, "it is the one that still works"
    assert metrics.total("target_drain_deadline_timestamp_seconds", **label) == 0
    release.set()
    assert wire.read_response().body == b"old"

    proxy.reload(one)
    wait_for_word(stand, proxy, f"{old.label} is removed")
    assert proxy.metrics().select("target_state", **label) == []
    proxy.reload(both)
    metrics = proxy.metrics()
    assert metrics.total("target_state", state="active", **label) == 1
    assert metrics.total("target_requests_total", **label) == 0, "its counters begin anew"
    assert {stand.ask().body for _ in range(4)} == {b"old", b"new"}


def test_E1_a_disabled_target_has_a_deadline_until_it_is_enabled(stand):
    one, two = stand.backends_named("one", "two")
    proxy = stand.proxy([one, two], group={"deregistration_delay_s": 100})
    config = copy.deepcopy(proxy.config)
    config["target_groups"][0]["targets"][0]["enabled"] = False
    deadline = lambda: proxy.metrics().total("target_drain_deadline_timestamp_seconds", target=one.label)
    before = time.time()
    proxy.reload(config)
    assert before + 99 <= deadline() <= time.time() + 101
    config["target_groups"][0]["targets"][0]["enabled"] = True
    proxy.reload(config)
    assert deadline() == 0
    assert {stand.ask().body for _ in range(4)} == {b"one", b"two"}


def test_E2_two_hundred_websockets_end_in_order_or_at_the_deadline_C_104(stand):
    """C-104: half end by themselves, a quarter when they are told, the rest is cut at the deadline and counted."""
    n = 200

    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while read_frame(wire)[0] != 0x8:
            pass
        wire.read_to_end()

    gone, stays = stand.backend(script, name="gone"), stand.backend(name="stays")
    config = stand.config([gone, stays], group={"deregistration_delay_s": 8})
    proxy = stand.serve(stand_only_first(config))
    clients = [open_websocket(stand) for _ in range(n)]
    label = {"target": gone.label}
    assert wait_until(lambda: proxy.metrics().total("target_in_flight", **label) == n)
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = [stays.target]
    proxy.reload(changed)
    metrics = proxy.metrics()
    assert metrics.total("target_state", state="draining", **label) == 1
    deadline = metrics.total("target_drain_deadline_timestamp_seconds", **label)
    assert 0 < deadline - time.time() <= 8

    for client in clients[:n // 2]:
        client.send(frame(struct.pack(">H", 1000), 0x8, masked=True))
        client.close()
    assert wait_until(lambda: proxy.metrics().total("target_in_flight", **label) == n // 2, 6)
    for i, client in enumerate(clients[n // 2:]):
        assert read_frame(client) == (8, struct.pack(">H", 1001)), i
        assert time.time() < deadline + 0.5
        if i % 2:
            client.send(frame(struct.pack(">H", 1001), 0x8, masked=True))
            client.close()
    assert proxy.metrics().total("target_state", state="removed", **label) == 0
    wait_for_word(stand, proxy, f"{gone.label} is removed (was draining)")
    assert time.time() > deadline - 0.1, "the rest keeps what it has until the deadline"
    metrics = proxy.metrics()
    assert metrics.select("target_in_flight", **label) == []
    assert n // 4 <= metrics.total("target_group_drain_cut_total") <= n // 2
    assert stand.ask().body == b"stays"


def stand_only_first(config):
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = config["target_groups"][0]["targets"][:1]
    return changed
