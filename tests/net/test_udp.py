# SPDX-License-Identifier: Apache-2.0
"""UDP listeners (A9): sessions by client port, their targets, their number and their end."""
import copy
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from harness.ports import free_port
from harness.process import wait_until
from harness.udp import UdpBackend, UdpClient

IDLE_MS = 1500  # sessions end before the stand looks for what is left


class Udp:
    """UDP backends behind one listener."""

    def __init__(self, stand, names=("a",), backends=None, listener=None, group=None, targets=None, **top):
        self.stand = stand
        self.backends = backends or [UdpBackend(name=name) for name in names]
        stand.backends.extend(self.backends)
        config = stand.config(targets or [b.target for b in self.backends], **top)
        entry = config["load_balancers"][0]["listeners"][0]
        entry.update({"protocol": "UDP", "timeouts": {"idle_ms": IDLE_MS}, **(listener or {})})
        config["target_groups"][0].update({"protocol": "UDP", **(group or {})})
        if not group or "health_check" not in group:
            del config["target_groups"][0]["health_check"]
        self.config = config
        self.proxy = stand.serve(config)
        self.address = ("127.0.0.1", entry["port"])

    def client(self, **options):
        client = UdpClient(options.pop("address", self.address), **options)
        self.stand.clients.append(client)
        return client

    def total(self, name, **labels):
        return self.proxy.metrics().total(name, **labels)


def test_A9_datagrams_go_to_a_target_and_back(stand):
    udp = Udp(stand)
    client = udp.client()
    for size in (0, 1, 64, 1400, 9000, 60000):
        assert client.ask(b"x" * size) == b"a:" + b"x" * size
    assert udp.total("listener_connections_total") == 1
    assert udp.total("listener_datagrams_total", result="received") == 6
    assert udp.total("listener_datagrams_total", result="sent") == 6
    assert udp.total("listener_active_connections") == 1
    assert len(udp.backends[0].peers) == 1


def test_A9_a_client_port_keeps_its_target(stand):
    udp = Udp(stand, ["a", "b", "c"], workers=2)
    clients = [udp.client() for _ in range(12)]
    first = [client.ask(b"1") for client in clients]
    assert {answer[:1] for answer in first} == {b"a", b"b", b"c"}
    for _ in range(3):
        assert [client.ask(b"1") for client in clients] == first


def test_A9_sessions_of_one_address_stay_together_with_a_hash(stand):
    udp = Udp(stand, ["a", "b", "c"], group={"algorithm": "maglev"})
    assert len({udp.client().ask(b"1") for _ in range(8)}) == 1
    assert len({udp.client(source=(f"127.0.0.{i}", 0)).ask(b"1") for i in range(2, 30)}) == 3


def test_A9_a_target_may_send_more_than_it_got_and_later(stand):
    udp = Udp(stand, backends=[UdpBackend(lambda data, peer: [b"%d" % i for i in range(100)])])
    client = udp.client()
    client.send(b"go")
    assert sorted(int(client.read()) for _ in range(100)) == list(range(100))
    udp.backends[0].sock.sendto(b"later", udp.backends[0].got[0][1])
    assert client.read() == b"later"


def test_A9_bulk_goes_through_unchanged(stand):
    """QUIC-like: numbered packets of a full size, echoed; bursts small enough for any socket's buffer."""
    udp = Udp(stand, backends=[UdpBackend(lambda data, peer: data)])
    client = udp.client()
    for burst in range(40):
        sent = {b"%08d" % (burst * 32 + i) + os.urandom(1192) for i in range(32)}
        for data in sent:
            client.send(data)
        assert {client.read() for _ in range(32)} == sent


def test_A9_glued_datagrams_are_cut_as_they_were(stand):
    """UDP_SEGMENT: what leaves as one large send arrives as the datagrams it stands for."""
    udp = Udp(stand, backends=[UdpBackend(lambda data, peer: data)])
    client = udp.client()
    client.sock.setsockopt(socket.IPPROTO_UDP, 103, 1000)
    data = os.urandom(10500)
    client.send(data)
    got = [client.read() for _ in range(11)]
    assert sorted(len(one) for one in got) == [500] + [1000] * 10
    assert b"".join(got) == data
    assert udp.total("listener_datagrams_total", result="received") == 11
    assert udp.total("listener_datagrams_total", result="sent") == 11


def test_C_139_an_idle_session_ends_and_an_active_one_stays(stand):
    udp = Udp(stand, listener={"timeouts": {"idle_ms": 2000}})
    idle, active = udp.client(), udp.client()
    idle.ask(b"1")
    for _ in range(20):
        active.ask(b"1")
        time.sleep(0.2)
    assert udp.total("listener_active_connections") == 1
    assert udp.total("listener_connections_total") == 2
    assert len(udp.backends[0].peers) == 2
    assert wait_until(lambda: udp.total("listener_active_connections") == 0)
    assert wait_until(lambda: udp.proxy.sockets() <= udp.proxy.baseline)
    assert idle.ask(b"2") == b"a:2"


def test_C_139_the_number_of_sessions_is_bounded(stand):
    silent = UdpBackend(lambda data, peer: None)
    udp = Udp(stand, backends=[silent], listener={"limits": {"connections": 50}, "timeouts": {"idle_ms": 6000}})
    for _ in range(200):
        udp.client().send(b"x")  # they stay open, so that no port comes twice
    assert wait_until(lambda: udp.total("listener_datagrams_total", result="received") == 200)
    assert udp.total("listener_active_connections") == 50
    assert udp.total("listener_sessions_evicted_total") == 150
    assert wait_until(lambda: len(silent.got) == 200)
    assert wait_until(lambda: udp.total("listener_active_connections") == 0)


def test_C_139_answered_sessions_are_not_given_up_for_new_ones(stand):
    udp = Udp(stand, listener={"limits": {"connections": 3}})
    served = [udp.client() for _ in range(3)]
    for client in served:
        assert client.ask(b"1") == b"a:1"
    late = udp.client()
    late.send(b"1")
    assert late.hears_nothing()
    assert udp.total("listener_connections_refused_total") == 1
    for client in served:
        assert client.ask(b"2") == b"a:2"


def test_A9_a_session_may_end_with_its_answers(stand):
    udp = Udp(stand, listener={"limits": {"replies": 1}, "timeouts": {"idle_ms": 60000}})
    client = udp.client()
    for _ in range(3):
        assert client.ask(b"q") == b"a:q"
    assert wait_until(lambda: udp.total("listener_active_connections") == 0)
    assert udp.total("listener_connections_total") == 3


def test_C_137_the_next_datagram_goes_to_another_target_when_one_is_removed(stand):
    udp = Udp(stand, ["a", "b"])
    client = udp.client()
    bound = client.ask(b"1")[:1].decode()
    other = "b" if bound == "a" else "a"
    config = copy.deepcopy(udp.config)
    config["target_groups"][0]["targets"] = [b.target for b in udp.backends if b.name == other]
    udp.proxy.reload(config)
    assert client.ask(b"2") == other.encode() + b":2"
    config["target_groups"][0]["targets"] = []
    udp.proxy.reload(config)
    client.send(b"3")
    assert client.hears_nothing()
    assert udp.total("listener_active_connections") == 0
    udp.proxy.reload(udp.config)
    assert client.ask(b"4").endswith(b":4")


def test_E5_a_reload_keeps_sessions(stand):
    udp = Udp(stand, ["a", "b", "c"])
    clients = [udp.client() for _ in range(9)]
    first = [client.ask(b"1") for client in clients]
    ports = {peer for b in udp.backends for peer in b.peers}
    config = copy.deepcopy(udp.config)
    config["target_groups"][0]["targets"].append({"ip": "127.0.0.1", "port": free_port()})
    udp.proxy.reload(config)
    assert [client.ask(b"1") for client in clients] == first
    assert {peer for b in udp.backends for peer in b.peers} == ports
    assert udp.total("listener_connections_total") == 9


def test_C_137_a_target_that_refuses_is_left(stand):
    udp = Udp(stand, ["a", "b"], group={"outlier": {"consecutive_gateway_errors": 1, "consecutive_5xx": 1,
                                                    "max_ejection_pct": 50}, "panic_threshold_pct": 0})
    client = udp.client()
    bound = next(b for b in udp.backends if b.name == client.ask(b"1")[:1].decode())
    bound.stop()

    def moved():
        client.send(b"2")
        try:
            return client.read(0.1)[:1].decode() != bound.name
        except (TimeoutError, ConnectionError):
            return False

    assert wait_until(moved, 5)
    assert udp.total("target_connect_errors_total", target=bound.label) >= 1
    assert wait_until(lambda: udp.proxy.metrics().total("target_usable", target=bound.label) == 0 or
                      "ejected" in udp.proxy.stderr)


def test_A9_a_check_by_tcp_takes_a_target_out(stand):
    udp = Udp(stand, ["a", "b"], group={"health_check": {"type": "tcp", "interval_s": 0.2, "unhealthy_threshold": 1,
                                                         "healthy_threshold": 1}, "panic_threshold_pct": 0})
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", udp.backends[0].port))
    listener.listen()
    try:
        assert wait_until(lambda: "active" in udp.proxy.stderr and f"{udp.backends[0].label} is active" in udp.proxy.stderr)
        assert {udp.client().ask(b"1") for _ in range(6)} == {b"a:1"}
    finally:
        listener.close()


def test_A9_without_a_target_datagrams_are_counted_and_leave_nothing(stand):
    udp = Udp(stand, group={"algorithm": "round_robin"}, targets=[{"ip": "127.0.0.1", "port": free_port(), "enabled": False}])
    client = udp.client()
    client.send(b"1")
    assert wait_until(lambda: udp.total("listener_datagrams_total", result="undelivered") == 1)
    assert udp.total("listener_active_connections") == 0


def test_A9_answers_come_from_the_address_that_was_asked(stand):
    backend = UdpBackend()
    stand.backends.append(backend)
    config = stand.config([backend.target], group={"protocol": "UDP"}, listener={"protocol": "UDP", "timeouts": {"idle_ms": IDLE_MS}})
    del config["load_balancers"][0]["vip"]
    proxy = stand.serve(config)
    port = config["load_balancers"][0]["listeners"][0]["port"]
    for host in ("127.0.0.1", "127.0.0.7", "::1"):
        client = UdpClient((host, port))
        stand.clients.append(client)
        assert client.ask(b"1") == b"udp:1"  # the socket is connected: another source would not be heard
    assert proxy.metrics().total("listener_connections_total") == 3


def test_A9_ipv6_targets(stand):
    udp = Udp(stand, backends=[UdpBackend(name="six", family=socket.AF_INET6)])
    assert udp.client().ask(b"1") == b"six:1"


def test_A9_a_limit_of_the_target_sends_sessions_elsewhere(stand):
    udp = Udp(stand, ["a", "b"], group={"limits": {"connections": 2}})
    assert sorted(udp.client().ask(b"1")[:1] for _ in range(4)) == [b"a", b"a", b"b", b"b"]
    fifth = udp.client()
    fifth.send(b"1")
    assert fifth.hears_nothing()


def test_E3_the_end_lets_answers_through(stand):
    def slow(data, peer):
        time.sleep(0.5)
        return b"late"

    udp = Udp(stand, backends=[UdpBackend(slow)])
    client = udp.client()
    client.send(b"1")
    assert wait_until(lambda: udp.backends[0].got)
    started = time.monotonic()
    udp.proxy.signal(15)
    assert client.read() == b"late"
    assert udp.proxy.stop() == 0
    assert time.monotonic() - started < 8


def test_E3_the_end_does_not_wait_for_answers_that_do_not_come(stand):
    udp = Udp(stand, backends=[UdpBackend(lambda data, peer: None)])
    udp.client().send(b"1")
    assert wait_until(lambda: udp.backends[0].got)
    started = time.monotonic()
    assert udp.proxy.stop() == 0
    assert time.monotonic() - started < 10


def test_E5_a_removed_listener_closes_its_socket(stand):
    udp = Udp(stand)
    assert udp.client().ask(b"1") == b"a:1"
    config = copy.deepcopy(udp.config)
    config["load_balancers"][0]["listeners"][0]["port"] = free_port()
    udp.proxy.reload(config)
    other = UdpClient(("127.0.0.1", config["load_balancers"][0]["listeners"][0]["port"]))
    stand.clients.append(other)
    assert other.ask(b"2") == b"a:2"

    def is_closed():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind(udp.address)
                return True
            except OSError:
                return False

    assert wait_until(is_closed)


def test_A9_tcp_and_udp_may_share_a_port(stand):
    udp_backend, tcp_backend = UdpBackend(), stand.backend(lambda wire: wire.send(wire.read_exact(1)))
    stand.backends.append(udp_backend)
    config = stand.config([udp_backend.target], group={"protocol": "UDP"},
                          listener={"protocol": "UDP", "timeouts": {"idle_ms": IDLE_MS}, "name": "dns-udp"})
    port = config["load_balancers"][0]["listeners"][0]["port"]
    config["load_balancers"][0]["listeners"].append({"port": port, "protocol": "TCP", "default_target_group": "tcp", "name": "dns-tcp"})
    config["target_groups"].append({"name": "tcp", "protocol": "TCP", "health_check": {"type": "none"}, "targets": [tcp_backend.target]})
    stand.serve(config)
    client = UdpClient(("127.0.0.1", port))
    stand.clients.append(client)
    assert client.ask(b"1") == b"udp:1"
    wire = stand.client()
    wire.send(b"x")
    assert wire.read_exact(1) == b"x"


def test_A9_sessions_are_logged(stand):
    log = stand.folder + "/access.log"
    udp = Udp(stand, access_log={"file": log, "format": "json"}, listener={"timeouts": {"idle_ms": 200}})
    client = udp.client()
    client.ask(b"12345")
    assert wait_until(lambda: os.path.exists(log) and open(log, encoding="utf-8").read())
    with open(log, encoding="utf-8") as lines:
        entry = json.loads(lines.readline())
    assert entry["protocol"] == "UDP" and entry["received_bytes"] == 5 and entry["sent_bytes"] == 7
    assert entry["target"] == udp.backends[0].label and entry["peer_port"] == client.port


def test_E5_an_upgrade_hands_the_socket_over(stand):
    udp = Udp(stand, workers=2)
    stand.proxies.remove(udp.proxy)  # it ends here, and its successor with it
    successor = None
    try:
        assert udp.client().ask(b"1") == b"a:1"
        status, out, err = stand.isobar("upgrade", "--pid", str(udp.proxy.pid), timeout_s=90)
        assert status == 0, err + udp.proxy.stderr
        successor = int(out.split()[1])
        for _ in range(8):
            assert udp.client().ask(b"2") == b"a:2"
    finally:
        udp.proxy.kill()
        if successor:
            os.kill(successor, signal.SIGKILL)


@pytest.mark.parametrize("listener, group, words", [
    ({"protocol": "UDP"}, {"protocol": "TCP"}, "but the listener has UDP"),
    ({"protocol": "TCP"}, {"protocol": "UDP"}, "but the listener has TCP"),
    ({"protocol": "UDP", "rules": []}, {"protocol": "UDP"}, "but this one has UDP"),
    ({"protocol": "UDP", "proxy_protocol": {"from": ["10.0.0.0/8"]}}, {"protocol": "UDP"}, "has protocol: UDP"),
    ({"protocol": "UDP"}, {"protocol": "UDP", "proxy_protocol": "v2"}, "has protocol: UDP"),
    ({"protocol": "UDP"}, {"protocol": "UDP", "affinity": {"type": "client_ip"}}, "has protocol: UDP"),
])
def test_A9_what_does_not_fit_is_refused(stand, listener, group, words):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], listener=listener, group=group)
    assert words in stand.refuses(config)


def test_A9_dns_by_real_programs(stand):
    if not shutil.which("dnsmasq") or not shutil.which("dig"):
        pytest.skip("skipped, because dnsmasq or dig is not installed")
    port = free_port()
    stand.run(["dnsmasq", "--no-daemon", "--no-resolv", "--no-hosts", f"--port={port}", "--listen-address=127.0.0.1", "--bind-interfaces",
               "--address=/a.example/192.0.2.77", "--user=", "--group=", "--pid-file=", "--conf-file=/dev/null"])
    udp = Udp(stand, backends=[UdpBackend()], targets=[{"ip": "127.0.0.1", "port": port}], listener={"limits": {"replies": 1}})

    def resolved():
        done = subprocess.run(["dig", "+short", "+tries=1", "+time=2", "-p", str(udp.address[1]), "@127.0.0.1", "www.a.example"],
                              capture_output=True, text=True, check=False)
        return done.stdout.strip() == "192.0.2.77"

    assert wait_until(resolved)
