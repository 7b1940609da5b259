# SPDX-License-Identifier: Apache-2.0
"""Where clients arrive and targets live: IPv4, IPv6, unix sockets, several workers."""
import collections
import copy
import os

from harness.ports import free_port
from harness.stand import address_of
from harness.wire import connect


def test_ipv6_listener(stand):
    backend = stand.backend()
    config = stand.config(backend)
    config["load_balancers"][0]["vip"] = "::1"
    stand.serve(config)
    assert stand.ask().status == 200


def test_without_a_vip_all_addresses_of_both_families_answer(stand):
    backend = stand.backend()
    config = stand.config(backend)
    del config["load_balancers"][0]["vip"]
    stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    for host in ("127.0.0.1", "::1"):
        client = connect((host, port))
        stand.clients.append(client)
        client.request()
        assert client.read_response().status == 200
        assert backend.requests[-1].get("X-Forwarded-For") == host


def test_unix_sockets_on_both_sides(stand):
    path = os.path.join(stand.folder, "front.sock")
    backend = stand.backend(path=os.path.join(stand.folder, "back.sock"))
    config = stand.config(backend)
    listener = config["load_balancers"][0]["listeners"][0]
    del listener["port"]
    listener["unix"] = path
    proxy = stand.serve(config)
    for _ in range(3):
        assert stand.ask("POST", body=b"x").status == 200
    assert len(backend.wires) == 1
    assert proxy.stop() == 0
    assert not os.path.exists(path), "the socket file goes with its listener"


def test_a_stale_unix_socket_file_does_not_stop_the_start(stand):
    import socket
    path = os.path.join(stand.folder, "front.sock")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    backend = stand.backend()
    config = stand.config(backend)
    listener = config["load_balancers"][0]["listeners"][0]
    del listener["port"]
    listener["unix"] = path
    stand.serve(config)
    assert stand.ask().status == 200


def test_several_listeners_share_target_groups(stand):
    a, b = stand.backends_named("A", "B")
    config = stand.config(a)
    config["target_groups"].append({**config["target_groups"][0], "name": "other", "targets": [b.target]})
    first = config["load_balancers"][0]["listeners"][0]
    config["load_balancers"][0]["listeners"].append({**first, "port": free_port(), "default_target_group": "other"})
    config["load_balancers"].append({"name": "second", "vip": "127.0.0.2", "listeners": [copy.deepcopy(first)]})
    stand.serve(config)
    assert stand.ask().body == b"A"
    assert stand.ask(listener=1).body == b"B"
    client = connect(address_of(config, 0, 1))
    stand.clients.append(client)
    client.request()
    assert client.read_response().body == b"A"


def test_every_worker_serves(stand):
    backends = stand.backends_named("A", "B")
    proxy = stand.proxy(backends, workers=3)
    counts = collections.Counter(stand.ask().body for _ in range(120))
    assert set(counts) == {b"A", b"B"}
    metrics = proxy.metrics()
    assert metrics.total("target_requests_total", **{"class": "2xx"}) == 120
    assert metrics.total("listener_connections_total") == 120
