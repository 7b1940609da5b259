# SPDX-License-Identifier: Apache-2.0
"""TCP listeners (A9): bytes both ways, by the same balancing, health, drain, limits and log."""
import copy
import hashlib
import json
import os
import socket
import threading
import time

import pytest

from harness.ports import free_port
from harness.process import wait_until


def tcp_config(stand, targets, listener=None, group=None, **top):
    config = stand.config(targets, **top)
    config["load_balancers"][0]["listeners"][0] = {
        **{k: v for k, v in config["load_balancers"][0]["listeners"][0].items()}, "protocol": "TCP", **(listener or {})}
    config["target_groups"][0] = {**config["target_groups"][0], "protocol": "TCP", **(group or {})}
    return config


def echo(wire):
    while wire.fill():
        wire.send(wire.take(len(wire.pending)))


def greeter(name):
    def script(wire):
        wire.send(b"220 " + name + b"\r\n")
        echo(wire)

    return script


def test_A9_the_server_may_speak_first(stand):
    stand.serve(tcp_config(stand, [stand.backend(greeter(b"mail"))]))
    client = stand.client()
    assert client.read_until(b"\r\n") == b"220 mail\r\n"
    client.send(b"EHLO")
    assert client.read_exact(4) == b"EHLO"


def test_A9_a_megabyte_passes_unchanged_both_ways(stand):
    stand.serve(tcp_config(stand, [stand.backend(echo)], workers=2))
    data = os.urandom(1 << 20)
    client = stand.client()
    sender = threading.Thread(target=client.send, args=(data,))
    sender.start()
    assert client.read_exact(len(data)) == data
    sender.join()


@pytest.mark.parametrize("pause", [0, 0.3])
def test_A9_bulk_passes_unchanged_both_ways_and_at_the_readers_pace(stand, pause):
    """Enough for pipes to be used: what is read at once fills the buffer; then both ends of both directions."""
    up, down = os.urandom(1 << 20) * 24, os.urandom(1 << 20) * 24
    seen = {}

    def script(wire):
        sender = threading.Thread(target=wire.send, args=(down,))
        sender.start()
        time.sleep(pause)
        seen["up"] = hashlib.sha256(wire.read_exact(len(up) + 3)).digest()
        sender.join()
        wire.sock.shutdown(socket.SHUT_WR)

    stand.serve(tcp_config(stand, [stand.backend(script)]))
    client = stand.client(timeout_s=60)
    sender = threading.Thread(target=client.send, args=(up + b"end",))
    sender.start()
    time.sleep(2 * pause)
    assert hashlib.sha256(client.read_exact(len(down))).digest() == hashlib.sha256(down).digest()
    client.expect_end()
    sender.join()
    assert seen["up"] == hashlib.sha256(up + b"end").digest()


def test_A9_descriptors_of_bulk_that_is_cut_come_back(stand):
    def script(wire):
        try:
            wire.send(b"x" * (64 << 20))
        except OSError:
            pass

    proxy = stand.serve(tcp_config(stand, [stand.backend(script)]))
    before = len(proxy.descriptors())
    for _ in range(20):
        client = stand.client(timeout_s=30)
        client.read_exact(1 << 20)
        client.reset()
    wait_until(lambda: len(proxy.descriptors()) <= before + 2 * 64)  # empty pipes are kept, at most 64
    wait_until(lambda: proxy.metrics().total("listener_active_connections") == 0)


def test_A9_each_side_may_end_its_direction_alone(stand):
    seen = {}

    def count_then_answer(wire):
        wire.read_to_end()
        seen["bytes"] = bytes(wire.received)
        wire.send(b"x" * 300000)

    stand.serve(tcp_config(stand, [stand.backend(count_then_answer)]))
    client = stand.client()
    client.send(b"the whole request")
    client.end_writing()
    assert client.read_to_end() == b"x" * 300000
    assert seen["bytes"] == b"the whole request"


def test_A9_connections_are_spread_and_a_dead_target_is_passed_over(stand):
    alive = [stand.backend(greeter(b"a")), stand.backend(greeter(b"b"))]
    dead = {"ip": "127.0.0.1", "port": free_port()}
    proxy = stand.serve(tcp_config(stand, [alive[0], dead, alive[1]]))
    names = [stand.client().read_until(b"\r\n") for _ in range(9)]
    assert set(names) == {b"220 a\r\n", b"220 b\r\n"}
    assert proxy.metrics().total("target_connect_errors_total") >= 1


def test_A11_without_a_target_the_connection_ends(stand):
    proxy = stand.serve(tcp_config(stand, [{"ip": "127.0.0.1", "port": free_port()}]))
    stand.client().expect_end()
    assert proxy.is_alive()


def test_A9_a_client_of_one_address_stays_with_its_target(stand):
    stand.serve(tcp_config(stand, [stand.backend(greeter(n)) for n in (b"a", b"b", b"c")], group={"algorithm": "ip_hash"}))
    assert len({stand.client().read_until(b"\r\n") for _ in range(6)}) == 1


def test_A9_an_idle_connection_ends_after_its_time(stand):
    stand.serve(tcp_config(stand, [stand.backend(echo)], listener={"timeouts": {"tunnel_ms": 300}}))
    client = stand.client()
    client.send(b"x")
    assert client.read_exact(1) == b"x"
    client.expect_end()


def test_E1_a_removed_target_keeps_its_connections_until_the_deadline(stand):
    gone, stays = stand.backend(greeter(b"gone")), stand.backend(greeter(b"stays"))
    config = tcp_config(stand, [gone, stays], group={"deregistration_delay_s": 1})
    proxy = stand.serve(config)
    clients = [stand.client() for _ in range(2)]
    bound = {client.read_until(b"\r\n"): client for client in clients}
    changed = copy.deepcopy(config)
    del changed["target_groups"][0]["targets"][0]
    proxy.reload(changed)
    bound[b"220 gone\r\n"].send(b"ping")
    assert bound[b"220 gone\r\n"].read_exact(4) == b"ping"
    assert stand.client().read_until(b"\r\n") == b"220 stays\r\n"
    bound[b"220 gone\r\n"].expect_end()
    bound[b"220 stays\r\n"].send(b"ping")
    assert bound[b"220 stays\r\n"].read_exact(4) == b"ping"
    assert proxy.metrics().total("target_group_drain_cut_total") == 1


def test_A9_a_target_that_resets_ends_the_client_too(stand):
    stand.serve(tcp_config(stand, [stand.backend(lambda wire: (wire.fill(), wire.reset()))]))
    client = stand.client()
    client.send(b"x")
    client.expect_end()


def test_A9_connections_are_logged(stand):
    log = stand.folder + "/access.log"
    stand.serve(tcp_config(stand, [stand.backend(echo)], access_log={"file": log, "format": "json"}))
    client = stand.client()
    client.send(b"12345")
    assert client.read_exact(5) == b"12345"
    client.close()
    assert wait_until(lambda: os.path.exists(log) and open(log, encoding="utf-8").read())
    with open(log, encoding="utf-8") as lines:
        entry = json.loads(lines.readline())
    assert entry["protocol"] == "TCP" and entry["sent_bytes"] == 5 and entry["received_bytes"] == 5


@pytest.mark.parametrize("listener, group, words", [
    ({"protocol": "TCP"}, {"protocol": "HTTP"}, "the listener has TCP"),
    ({"protocol": "HTTP"}, {"protocol": "TCP"}, "but the listener has HTTP"),
    ({"protocol": "TCP", "redirect": {"scheme": "https"}}, {"protocol": "TCP"}, "but this one has TCP"),
])
def test_A9_protocols_that_do_not_fit_are_refused(stand, listener, group, words):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], listener=listener, group=group)
    assert words in stand.refuses(config)
