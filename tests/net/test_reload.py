# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: a right file is in force for the next request and costs nobody anything; a wrong one changes nothing."""
import copy
import os
import time

from harness.backend import text_response
from harness.load import Load
from harness.ports import free_port
from harness.process import is_sanitized, wait_until
from harness.wire import connect
from harness.stand import address_of


def test_C_120_twenty_reloads_under_load_lose_nothing(stand):
    backends = stand.backends_named("A", "B")
    config = stand.config(backends, workers=2)
    proxy = stand.serve(config)
    load = Load(stand, proxy)
    for turn in range(20):
        changed = copy.deepcopy(config)
        changed["target_groups"][0]["algorithm"] = ["random", "round_robin", "p2c_least_request", "maglev"][turn % 4]
        changed["load_balancers"][0]["listeners"][0]["limits"] = {"headers": 50 + turn}
        proxy.reload(changed)
        time.sleep(0.05)
    assert load.finish() > 200


def test_E5_targets_come_and_go_without_a_failed_request(stand):
    backends = stand.backends_named(*"ABCD")
    config = stand.config(backends)
    proxy = stand.serve(config)
    load = Load(stand, proxy)
    for turn in range(12):
        changed = copy.deepcopy(config)
        del changed["target_groups"][0]["targets"][turn % 4]
        proxy.reload(changed)
        time.sleep(0.05)
    assert load.finish() > 100


def test_a_reload_keeps_counters_and_idle_connections(stand):
    backend = stand.backend()
    config = stand.config(backend)
    proxy = stand.serve(config)
    client = stand.client()
    for turn in range(5):
        client.request()
        assert client.read_response().status == 200
        changed = copy.deepcopy(config)
        changed["target_groups"][0]["algorithm"] = "random" if turn % 2 else "round_robin"
        proxy.reload(changed)
    assert backend.n_connections == 1
    metrics = proxy.metrics()
    assert metrics.total("target_requests_total", **{"class": "2xx"}) == 5
    assert metrics.total("listener_connections_total") == 1
    assert metrics.total("target_pool_hits_total") == 4


def test_a_changed_route_is_in_force_for_the_next_request_of_a_connection(stand):
    a, b = stand.backends_named("A", "B")
    config = stand.config(a)
    proxy = stand.serve(config)
    client = stand.client()
    client.request()
    assert client.read_response().body == b"A"
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = [b.target]
    proxy.reload(changed)
    client.request()
    assert client.read_response().body == b"B"


def test_a_request_in_flight_ends_where_it_began(stand):
    a, b = stand.backends_named("A", "B")

    def answer_late(request):
        time.sleep(0.8)
        return text_response(b"late A")

    a.answer = answer_late
    config = stand.config(a)
    proxy = stand.serve(config)
    client = stand.client()
    client.request()
    assert wait_until(lambda: a.requests)
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = [b.target]
    proxy.reload(changed)
    assert stand.ask().body == b"B"
    assert client.read_response().body == b"late A"


def test_listeners_can_be_added_and_removed(stand):
    backend = stand.backend()
    config = stand.config(backend)
    proxy = stand.serve(config)
    changed = copy.deepcopy(config)
    extra = {**config["load_balancers"][0]["listeners"][0], "port": free_port()}
    changed["load_balancers"][0]["listeners"].append(extra)
    proxy.reload(changed)
    client = connect(("127.0.0.1", extra["port"]))
    stand.clients.append(client)
    client.request()
    assert client.read_response().status == 200
    proxy.reload(config)

    def refused():
        try:
            connect(("127.0.0.1", extra["port"])).close()
            return False
        except ConnectionRefusedError:
            return True

    assert wait_until(refused)
    assert stand.ask().status == 200


def upgraded(stand, target):
    client = stand.client()
    client.send(f"GET {target} HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    assert client.read_response().status == 101
    return client


def echo_tunnel(wire):
    wire.read_request()
    wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    while True:
        wire.send(wire.read_exact(4))


def test_C_123_unchanged_routes_keep_their_tunnels(stand):
    tunnels, other = stand.backend(echo_tunnel, name="tunnels"), stand.backend(name="other")
    config = stand.config(other)
    config["target_groups"].append({**config["target_groups"][0], "name": "ws", "targets": [tunnels.target]})
    rules = [{"match": {"path_prefix": "/ws"}, "forward": [{"target_group": "ws"}]}]
    config["load_balancers"][0]["listeners"][0]["rules"] = rules
    proxy = stand.serve(config)
    clients = [upgraded(stand, "/ws") for _ in range(50)]
    for turn in range(10):
        changed = copy.deepcopy(config)
        changed["load_balancers"][0]["listeners"][0]["rules"] = rules + [
            {"match": {"path_prefix": f"/added{turn}"}, "forward": [{"target_group": "web"}],
             "rewrite": {"set_headers": {"X-Turn": str(turn)}}}]
        proxy.reload(changed)
        for client in clients:
            client.send(b"%04d" % turn)
        for client in clients:
            assert client.read_exact(4) == b"%04d" % turn


def test_C_124_a_failed_reload_leaves_the_running_configuration_alone(stand):
    backend = stand.backend()
    config = stand.config(backend)
    proxy = stand.serve(config)
    load = Load(stand, proxy, n_keepalive=2, n_single=1)
    blocker = stand.backend(name="blocker")
    in_use = copy.deepcopy(config)
    in_use["load_balancers"][0]["listeners"].append(
        {**config["load_balancers"][0]["listeners"][0], "port": blocker.port})
    in_use["target_groups"][0]["targets"] = [blocker.target]
    unknown = copy.deepcopy(config)
    unknown["target_groups"][0]["algoritm"] = "random"

    def put(text):
        with open(proxy.file, "w", encoding="utf-8") as out:
            out.write(text)

    def refused(n):
        return wait_until(lambda: proxy.reload_counts()[1] == n)

    put("{ this is: [no document")
    proxy.reload(wait=False)
    assert refused(1), proxy.stderr
    assert f"{proxy.file}:" in proxy.stderr
    proxy.reload(unknown, wait=False)
    assert refused(2), proxy.stderr
    assert "algorithm" in proxy.stderr
    proxy.reload(in_use, wait=False)
    assert refused(3), proxy.stderr
    assert str(blocker.port) in proxy.stderr
    os.unlink(proxy.file)
    proxy.reload(wait=False)
    assert refused(4), proxy.stderr
    assert load.finish() > 5
    assert blocker.raw == b"", "nothing of a refused file is applied"
    assert proxy.reload_counts() == (0, 4)
    proxy.reload(config)
    assert proxy.reload_counts() == (1, 4)
    assert stand.ask().status == 200


def test_reloads_in_quick_succession_end_with_the_last_file(stand):
    a, b = stand.backends_named("A", "B")
    config = stand.config(a)
    proxy = stand.serve(config)
    for turn in range(30):
        changed = copy.deepcopy(config)
        changed["target_groups"][0]["targets"] = [(a if turn % 2 else b).target]
        proxy.reload(changed, wait=False)
    proxy.reload(stand_config_with(config, b), wait=False)
    assert wait_until(lambda: stand.ask().body == b"B")
    time.sleep(0.3)
    assert stand.ask().body == b"B"


def stand_config_with(config, backend):
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = [backend.target]
    return changed


def test_a_hundred_reloads_leak_nothing(stand):
    backend = stand.backend()
    config = stand.config(backend)
    proxy = stand.serve(config)
    for turn in range(20):
        proxy.reload(config)
        assert stand.ask().status == 200
    before, sockets = proxy.rss_kb(), proxy.sockets()
    for turn in range(80):
        proxy.reload(config)
    assert stand.ask().status == 200
    assert proxy.sockets() <= sockets + 1
    assert is_sanitized() or proxy.rss_kb() - before < 8192
