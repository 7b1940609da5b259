# SPDX-License-Identifier: Apache-2.0
"""A12: the PROXY protocol, v1 and v2, from proxies in front and to targets."""
import copy
import json
import os
import socket
import struct
import time

import pytest

from harness.backend import Backend, text_response
from harness.ports import free_port
from harness.process import wait_until
from harness.tls import Authority, TlsBackend, tls_wire
from harness.wire import Wire

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
GET = b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n"
V1 = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"


def v2(command=0x21, family=0x11, body=b""):
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(body)) + body


def ends(src="192.0.2.3", dst="198.51.100.2", sport=1000, dport=443):
    return socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack(">HH", sport, dport)


def tlv(kind, value):
    return bytes([kind]) + struct.pack(">H", len(value)) + value


def tlvs_of(data):
    found = {}
    while data:
        kind, length = data[0], struct.unpack(">H", data[1:3])[0]
        found[kind], data = data[3:3 + length], data[3 + length:]
    return found


def told(stand, backend, header, listener=0):
    """The client that the backend is told of, or None when the connection was ended without an answer."""
    client = stand.client(listener=listener)
    try:
        client.send(header + GET)
        answer = client.read_to_end()
    except ConnectionError:
        answer = b""
    if not answer.startswith(b"HTTP/1.1 200"):
        assert answer == b"", answer
        return None
    return backend.requests[-1].get("X-Forwarded-For")


def believing(*sources, **more):
    return {"proxy_protocol": {"from": list(sources) or ["127.0.0.0/8"], **more}}


# From proxies in front

@pytest.mark.parametrize("header, client", [
    (V1, "192.0.2.1"),
    (b"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n", "2001:db8::1"),
    (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    (b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", "127.0.0.1"),
    (v2(body=ends()), "192.0.2.3"),
    (v2(family=0x21, body=socket.inet_pton(socket.AF_INET6, "2001:db8::5") * 2 + b"\0\1\0\2"), "2001:db8::5"),
    (v2(body=ends() + tlv(1, b"h2") + tlv(2, b"a.example") + tlv(5, b"u" * 16) + tlv(4, b"\0" * 9) + tlv(0xee, b"x")), "192.0.2.3"),
    (v2(0x21, 0x00, b"\0" * 7), "127.0.0.1"),
])
def test_A12_the_header_says_who_the_client_is(stand, header, client):
    backend = stand.backend()
    proxy = stand.proxy(backend, listener=believing())
    assert told(stand, backend, header) == client
    assert proxy.metrics().total("listener_proxy_headers_total") == 1


@pytest.mark.parametrize("header", [
    v2(0x20, 0x11, b"\0" * 12), v2(0x20, 0x00), v2(0x20, 0x11, b"\0" * 12 + b"\xff" * 40),
])
def test_C_086_local_is_skipped_by_its_length(stand, header):
    backend = stand.backend()
    stand.proxy(backend, listener=believing())
    assert told(stand, backend, header) == "127.0.0.1"


def test_A12_a_unix_client_has_no_address(stand):
    backend = stand.backend()
    stand.proxy(backend, listener=believing())
    assert told(stand, backend, v2(family=0x31, body=b"/run/x".ljust(108, b"\0") * 2)) in (None, "unknown", "unix:", "")


@pytest.mark.parametrize("header", [
    b"", b"proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n", b"PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n",
    b"PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n", b"PROXY TCP4 192.0.2.1 198.51.100.2 1 2" + b" " * 120 + b"\r\n",
    v2(0x31, body=ends()), v2(0x2f, body=ends()), v2(body=b"\0" * 8), v2(body=ends() + b"\1\0\x09"),
    v2(body=ends() + tlv(3, b"\0\0\0\0")),
])
def test_C_089_a_missing_or_wrong_header_ends_the_connection(stand, header):
    backend = stand.backend()
    proxy = stand.proxy(backend, listener=believing())
    assert told(stand, backend, header) is None
    assert not backend.requests
    assert proxy.metrics().total("listener_proxy_headers_total", result="invalid") == 1


def test_C_089_others_are_refused_and_never_believed(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, listener=believing("10.0.0.0/8"))
    assert told(stand, backend, V1) is None
    assert told(stand, backend, b"") is None
    assert proxy.metrics().total("listener_proxy_headers_total", result="untrusted") == 2
    assert not backend.requests


def test_C_089_others_may_be_served_plainly(stand):
    backend = stand.backend()
    stand.proxy(backend, listener=believing("10.0.0.0/8", others="plain"))
    assert told(stand, backend, b"") == "127.0.0.1"
    for header in (V1, v2(body=ends())):
        assert b" 400 " in stand.exchange(header + GET).split(b"\r\n", 1)[0]
    assert len(backend.requests) == 1


def test_C_089_without_the_option_a_header_is_a_bad_request(stand):
    backend = stand.backend()
    stand.proxy(backend)
    for header in (V1, v2(body=ends())):
        assert b" 400 " in stand.exchange(header + GET).split(b"\r\n", 1)[0]
    assert not backend.requests


def test_C_089_a_second_header_is_payload(stand):
    backend = stand.backend()
    stand.proxy(backend, listener=believing())
    assert b" 400 " in stand.exchange(V1 + V1 + GET).split(b"\r\n", 1)[0]
    assert not backend.requests


@pytest.mark.parametrize("header", [V1, v2(body=ends() + tlv(5, b"id"))])
def test_A12_a_header_may_come_byte_by_byte(stand, header):
    backend = stand.backend()
    stand.proxy(backend, listener=believing())
    client = stand.client()
    for i in range(len(header)):
        client.send(header[i:i + 1])
        time.sleep(0.002)
    client.send(GET)
    assert b" 200 " in client.read_to_end()
    assert backend.requests[-1].get("X-Forwarded-For") in ("192.0.2.1", "192.0.2.3")


def test_A12_a_header_that_does_not_come_ends_the_connection_in_time(stand):
    proxy = stand.proxy(stand.backend(), listener={**believing(), "timeouts": {"handshake_ms": 300}})
    silent, half = stand.client(), stand.client()
    half.send(V1[:20])
    silent.expect_end()
    half.expect_end()
    assert proxy.metrics().total("listener_proxy_headers_total", result="timeout") == 2


def test_A12_a_client_that_goes_away_within_its_header_leaves_nothing(stand):
    proxy = stand.proxy(stand.backend(), listener=believing())
    client = stand.client()
    client.send(V1[:20])
    time.sleep(0.1)
    client.close()
    assert wait_until(lambda: proxy.metrics().total("listener_active_connections") == 0)


def test_A12_the_told_client_is_what_rules_and_trust_look_at(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={**believing(), "rules": [
        {"name": "inside", "match": {"source": ["192.0.2.0/24"]}, "deny": {"status": 418}}]}, trusted_proxies=["198.51.100.0/24"])
    assert b" 418 " in stand.exchange(V1 + GET)
    assert b" 200 " in stand.exchange(v2(body=ends("203.0.113.9")) + GET)
    through = GET.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 203.0.113.77\r\n\r\n")
    assert b" 200 " in stand.exchange(v2(body=ends("198.51.100.7")) + through)
    assert backend.requests[-1].get("X-Forwarded-For") == "203.0.113.77, 198.51.100.7"


def test_A12_the_told_client_is_logged(stand):
    log = stand.folder + "/access.log"
    stand.proxy(stand.backend(), listener=believing(), access_log={"file": log, "format": "json"})
    stand.exchange(V1 + GET)
    assert wait_until(lambda: os.path.exists(log) and open(log, encoding="utf-8").read())
    with open(log, encoding="utf-8") as lines:
        assert json.loads(lines.readline())["client"] == "192.0.2.1"


def test_A12_the_header_stands_before_tls(stand):
    authority = Authority(stand.folder)
    certificate = authority.issue("one", "t.example")
    backend = stand.backend()
    proxy = stand.proxy(backend, listener={**believing(), "protocol": "HTTPS", "certificates": ["one"]}, certificates=[certificate])
    plain = stand.client()
    plain.send(V1)
    sock = authority.context().wrap_socket(plain.sock, server_hostname="t.example")
    wire = Wire(sock)
    wire.request("GET", "/")
    assert wire.read_response("GET").status == 200
    assert backend.requests[-1].get("X-Forwarded-For") == "192.0.2.1"
    wire.close()
    assert proxy.metrics().total("listener_tls_handshakes_total", result="full") == 1


def test_A12_unix_sockets_believe_who_may_connect(stand):
    path = os.path.join(stand.folder, "in.sock")
    backend = stand.backend()
    config = stand.config(backend)
    listener = config["load_balancers"][0]["listeners"][0]
    del listener["port"]
    listener.update({"unix": path, "proxy_protocol": {}})
    stand.serve(config)
    assert told(stand, backend, V1) == "192.0.2.1"


def test_A12_from_must_be_given(stand):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], listener={"proxy_protocol": {}})
    assert 'has no "from"' in stand.refuses(config)


# To targets

class Told(Backend):
    """A backend that takes a PROXY header first; `headers` are (version, command or family word, src, dst, sport, dport, tlvs)."""

    def __init__(self, script=None, **options):
        self.headers = []
        self.inner = script or self.answer_all
        super().__init__(self.take, **options)

    def take(self, wire):
        if not wire.pending and not wire.fill():
            return
        self.headers.append(read_header(wire))
        self.inner(wire)


def read_header(wire):
    if bytes(wire.pending[:1]) == b"P":
        words = wire.read_until(b"\r\n").split()
        if words[1] == b"UNKNOWN":
            return (1, "UNKNOWN", None, None, 0, 0, {})
        return (1, words[1].decode(), words[2].decode(), words[3].decode(), int(words[4]), int(words[5]), {})
    head = wire.read_exact(16)
    assert head[:12] == SIGNATURE
    body = wire.read_exact(struct.unpack(">H", head[14:])[0])
    command = {0x20: "LOCAL", 0x21: "PROXY"}[head[12]]
    if head[13] == 0x11:
        sport, dport = struct.unpack(">HH", body[8:12])
        return (2, command, socket.inet_ntoa(body[:4]), socket.inet_ntoa(body[4:8]), sport, dport, tlvs_of(body[12:]))
    assert head[13] == 0 and not body
    return (2, command, None, None, 0, 0, {})


@pytest.fixture
def told_backend(stand):
    def make(script=None, **options):
        backend = Told(script, **options)
        stand.backends.append(backend)
        return backend

    return make


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_C_090_targets_are_told_the_client(stand, told_backend, version):
    backend = told_backend()
    proxy = stand.proxy(backend, group={"proxy_protocol": version})
    client = stand.client()
    address = client.sock.getsockname()
    client.request("GET", "/")
    assert client.read_response("GET").status == 200
    number, word, src, dst, sport, dport, _ = backend.headers[0]
    assert (number, src, sport) == (int(version[1]), "127.0.0.1", address[1])
    assert word == {"v1": "TCP4", "v2": "PROXY"}[version]
    assert (dst, dport) == ("127.0.0.1", proxy.config["load_balancers"][0]["listeners"][0]["port"])


def test_C_090_a_connection_serves_the_client_it_was_announced_for_and_no_other(stand, told_backend):
    backend = told_backend()
    stand.proxy(backend, group={"proxy_protocol": "v1"})
    first, second = stand.client(), stand.client()
    for client in (first, second, first, second, first):
        client.request("GET", "/")
        assert client.read_response("GET").status == 200
    assert len(backend.headers) == 2
    assert {header[4] for header in backend.headers} == {c.sock.getsockname()[1] for c in (first, second)}


def test_C_090_it_ends_with_its_client(stand, told_backend):
    proxy = stand.proxy(told_backend(), group={"proxy_protocol": "v2"})
    client = stand.client()
    client.request("GET", "/")
    assert client.read_response("GET").status == 200
    assert wait_until(lambda: proxy.metrics().total("target_idle_connections") == 1)
    client.close()
    assert wait_until(lambda: proxy.metrics().total("target_open_connections") == 0)


def test_C_090_a_target_that_closes_a_kept_connection_gets_a_new_one(stand, told_backend):
    backend = told_backend()
    proxy = stand.proxy(backend, group={"proxy_protocol": "v2"})
    client = stand.client()
    client.request("GET", "/")
    assert client.read_response("GET").status == 200
    backend.wires[0].sock.shutdown(socket.SHUT_RDWR)
    assert wait_until(lambda: proxy.metrics().total("target_open_connections") == 0)
    client.request("GET", "/")
    assert client.read_response("GET").status == 200
    assert len(backend.headers) == 2


def test_C_090_a_removed_target_loses_its_kept_connections(stand, told_backend):
    gone, stays = told_backend(), told_backend()
    config = stand.config([gone], group={"proxy_protocol": "v1"})
    proxy = stand.serve(config)
    client = stand.client()
    client.request("GET", "/")
    assert client.read_response("GET").status == 200
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = [stays.target]
    proxy.reload(changed)
    assert wait_until(lambda: proxy.metrics().total("target_open_connections") == 0)
    client.request("GET", "/")
    assert client.read_response("GET").status == 200
    assert len(stays.headers) == 1


@pytest.mark.parametrize("version, word", [("v1", "UNKNOWN"), ("v2", "LOCAL")])
@pytest.mark.parametrize("kind", ["tcp", "http"])
def test_C_090_health_checks_speak_for_nobody(stand, told_backend, version, word, kind):
    backend = told_backend()
    stand.proxy(backend, group={"proxy_protocol": version, "health_check": {"type": kind, "interval_s": 0.2}})
    assert stand.ask().status == 200
    assert wait_until(lambda: any(header[1] == word for header in backend.headers))
    assert sum(header[1] != word for header in backend.headers) == 1


def test_C_090_the_header_stands_before_tls_to_the_target(stand):
    authority = Authority(stand.folder)
    headers = []

    class ToldTls(TlsBackend):
        def wire(self, sock):
            plain = Wire(sock)
            plain.sock.settimeout(20)
            line = b""
            while not line.endswith(b"\r\n"):
                line += sock.recv(1)
            headers.append(line)
            return super().wire(sock)

    backend = ToldTls(authority.issue("target", "t.example", "127.0.0.1"))
    stand.backends.append(backend)
    stand.proxy(backend, group={"proxy_protocol": "v1", "protocol": "HTTPS", "tls": {"ca_file": authority.file}})
    client = stand.client()
    for _ in range(2):
        client.request("GET", "/")
        assert client.read_response("GET").status == 200
    assert len(headers) == 1
    assert headers[0].startswith(b"PROXY TCP4 127.0.0.1 127.0.0.1 %d " % client.sock.getsockname()[1])


def test_A12_what_was_told_is_told_on_with_its_tlvs(stand, told_backend):
    backend = told_backend()
    stand.proxy(backend, listener=believing(), group={"proxy_protocol": "v2"})
    kept = {1: b"h2", 2: b"a.example", 5: b"unique", 0xee: b"own"}
    body = ends(sport=7) + b"".join(tlv(*pair) for pair in kept.items()) + tlv(4, b"\0" * 3)
    assert b" 200 " in stand.exchange(v2(body=body) + GET)
    assert backend.headers == [(2, "PROXY", "192.0.2.3", "198.51.100.2", 7, 443, kept)]


def test_A12_targets_are_told_of_tls(stand, told_backend):
    authority = Authority(stand.folder)
    backend = told_backend()
    proxy = stand.proxy(backend, listener={"protocol": "HTTPS", "certificates": ["one"]}, group={"proxy_protocol": "v2"},
                        certificates=[authority.issue("one", "t.example")])
    context = authority.context()
    context.set_alpn_protocols(["http/1.1"])
    listener = proxy.config["load_balancers"][0]["listeners"][0]
    wire = tls_wire(("127.0.0.1", listener["port"]), context)
    wire.request("GET", "/")
    assert wire.read_response("GET").status == 200
    wire.close()
    tlvs = backend.headers[0][6]
    assert tlvs[1] == b"http/1.1"
    assert tlvs[0x20][0] == 1 and tlvs_of(tlvs[0x20][5:]) == {0x21: b"TLSv1.3"}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_A9_tcp_targets_are_told_before_the_first_byte(stand, told_backend, version):
    def echo(wire):
        wire.send(b"hello ")
        while wire.pending or wire.fill():
            wire.send(wire.take(len(wire.pending)))

    backend = told_backend(echo)
    stand.proxy(backend, listener={"protocol": "TCP"}, group={"protocol": "TCP", "proxy_protocol": version})
    client = stand.client()
    assert client.read_exact(6) == b"hello "
    client.send(b"data")
    assert client.read_exact(4) == b"data"
    assert backend.headers[0][4] == client.sock.getsockname()[1]


def test_A9_a_header_passes_from_a_tcp_listener_to_another_target(stand, told_backend):
    backend = told_backend(lambda wire: wire.send(wire.read_exact(4)))
    dead = {"ip": "127.0.0.1", "port": free_port()}
    stand.proxy([dead, backend], listener={"protocol": "TCP", **believing()}, group={"protocol": "TCP", "proxy_protocol": "v1"})
    client = stand.client()
    client.send(V1 + b"ping")
    assert client.read_exact(4) == b"ping"
    assert backend.headers[0][:6] == (1, "TCP4", "192.0.2.1", "198.51.100.2", 56324, 443)


def test_A12_a_limit_of_connections_is_not_blocked_by_kept_ones(stand, told_backend):
    backend = told_backend()
    backend.answer = lambda request: text_response(b"ok")
    stand.proxy(backend, group={"proxy_protocol": "v1", "limits": {"connections": 1}})
    clients = [stand.client() for _ in range(4)]
    for client in clients:
        client.request("GET", "/")
        assert client.read_response("GET").status == 200
    assert len(backend.headers) == 4
