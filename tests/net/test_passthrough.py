# SPDX-License-Identifier: Apache-2.0
"""A6: TLS that passes through undecrypted, routed by what the ClientHello says."""
import json
import os
import ssl
import struct
import time

import pytest

from harness.process import wait_until
from harness.tls import Authority, TlsBackend, shown_name, tls_wire
from harness.wire import Wire

ALERT_UNRECOGNIZED_NAME = bytes([21, 3, 3, 0, 2, 2, 112])


class Site:
    """TLS backends named by their certificates, and one listener in front of them."""

    def __init__(self, stand, names, rules=None, default=None, listener=None, **top):
        self.stand, self.authority, self.backends = stand, Authority(stand.folder), {}
        for name in names:
            self.backends[name] = TlsBackend(self.authority.issue(name, name, "*.example"), name=name)
            stand.backends.append(self.backends[name])
        config = stand.config([], **top)
        config["target_groups"] = [
            {"name": name, "protocol": "TCP", "health_check": {"type": "none"}, "targets": [backend.target]}
            for name, backend in self.backends.items()]
        entry = {**config["load_balancers"][0]["listeners"][0], "protocol": "TLS", **(listener or {})}
        del entry["default_target_group"]
        if default:
            entry["default_target_group"] = default
        if rules:
            entry["rules"] = rules
        config["load_balancers"][0]["listeners"][0] = entry
        self.proxy = stand.serve(config)
        self.address = ("127.0.0.1", entry["port"])

    def context(self, alpn=()):
        context = self.authority.context(verify=False)
        context.verify_mode = ssl.CERT_REQUIRED
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def reached(self, name, alpn=()):
        """The common name of who answers."""
        wire = tls_wire(self.address, self.context(alpn), name=name)
        self.stand.clients.append(wire)
        wire.request("GET", "/")
        assert wire.read_response("GET").status == 200
        return shown_name(wire)

    def count(self, result):
        return self.proxy.metrics().total("listener_client_hellos_total", result=result)


def to(group, **match):
    return {"match": match, "forward": [{"target_group": group}]}


def test_A6_connections_go_by_the_name_that_is_asked_for(stand):
    site = Site(stand, ["a.example", "b.example", "c.example"], default="c.example", rules=[
        to("a.example", sni="a.example"), to("b.example", sni=["*.b.example", "b.example"])])
    assert site.reached("a.example") == "a.example"
    assert site.reached("A.EXAMPLE") == "a.example"
    assert site.reached("x.b.example") == "b.example"
    assert site.reached("y.x.b.example") == "b.example"
    assert site.reached("unknown.example") == "c.example"
    assert site.reached(None) == "c.example"
    assert site.count("read") == 6


def test_A6_connections_go_by_protocol_and_source(stand):
    site = Site(stand, ["h2.example", "h1.example", "far.example"], default="h1.example", rules=[
        to("h2.example", alpn=["h2"]), to("far.example", sni="a.example", source=["10.0.0.0/8"])])
    assert site.reached("a.example", alpn=["h2", "http/1.1"]) == "h2.example"
    assert site.reached("a.example", alpn=["http/1.1"]) == "h1.example"
    assert site.reached("a.example") == "h1.example"


def test_A6_a_name_without_a_rule_gets_an_alert_that_says_so(stand):
    site = Site(stand, ["a.example", "b.example"], rules=[
        to("a.example", sni="a.example"), {"match": {"sni": "no.example"}, "deny": {}},
        {"match": {"sni": "none.example"}, "forward": [{"target_group": "b.example", "weight": 0}]}])
    for name in ("b.example", "no.example", "none.example"):
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            tls_wire(site.address, site.context(), name=name)
    assert site.count("no_route") == 3


def hello(site, name="a.example", alpn=()):
    """The bytes of a ClientHello."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = site.context(alpn).wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        side.do_handshake()
    return side, incoming, outgoing, outgoing.read()


def finish(client, side, incoming, outgoing):
    while True:
        try:
            side.do_handshake()
            break
        except ssl.SSLWantReadError:
            if outgoing.pending:
                client.send(outgoing.read())
            client.fill()
            incoming.write(client.take(len(client.pending)))
    side.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    client.send(outgoing.read())
    answer = b""
    while b"\r\n\r\n" not in answer:
        try:
            answer += side.read(4096)
        except ssl.SSLWantReadError:
            assert client.fill()
            incoming.write(client.take(len(client.pending)))
    return answer


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_A6_a_hello_may_come_in_any_segments(stand, piece):
    site = Site(stand, ["a.example", "b.example"], default="b.example", rules=[to("a.example", sni="a.example")])
    client = stand.client()
    side, incoming, outgoing, data = hello(site)
    for at in range(0, len(data), piece):
        client.send(data[at:at + piece])
        time.sleep(0.001)
    assert finish(client, side, incoming, outgoing).startswith(b"HTTP/1.1 200")
    assert len(site.backends["a.example"].requests) == 1


@pytest.mark.parametrize("size", [50, 200])
def test_A6_a_hello_may_come_in_several_records(stand, size):
    site = Site(stand, ["a.example", "b.example"], default="b.example", rules=[to("a.example", sni="a.example")])
    client = stand.client()
    side, incoming, outgoing, data = hello(site)
    message = data[5:]
    for at in range(0, len(message), size):
        part = message[at:at + size]
        client.send(data[:3] + struct.pack(">H", len(part)) + part)
    assert finish(client, side, incoming, outgoing).startswith(b"HTTP/1.1 200")
    assert len(site.backends["a.example"].requests) == 1


def padded_hello(name, total):
    """A ClientHello of `total` bytes of message, cut into records of 4 KB."""
    sni = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    body = b"\3\3" + b"r" * 32 + b"\0" + b"\0\2\x13\1" + b"\1\0"
    rest = total - 4 - len(body) - 2 - 4 - len(sni) - 4
    extensions = struct.pack(">HH", 0, len(sni)) + sni + struct.pack(">HH", 21, rest) + b"\0" * rest
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    assert len(message) == total
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(part)) + part
                    for part in (message[at:at + 4096] for at in range(0, total, 4096)))


def test_A6_a_hello_may_have_16_kb(stand):
    seen = []

    def keep(wire):
        while wire.fill():
            seen.append(wire.take(len(wire.pending)))

    backend = stand.backend(keep)
    proxy = stand.serve(passthrough(stand.config([backend], group={"protocol": "TCP"})))
    data = padded_hello(b"a.example", 16384)
    client = stand.client()
    client.send(data)
    assert wait_until(lambda: b"".join(seen) == data)
    too_long = stand.client()
    too_long.send(padded_hello(b"a.example", 16384 + 5))
    too_long.expect_end()
    assert proxy.metrics().total("listener_client_hellos_total", result="invalid") == 1


def passthrough(config, **more):
    config["load_balancers"][0]["listeners"][0].update({"protocol": "TLS", **more})
    return config


@pytest.mark.parametrize("data", [
    b"GET / HTTP/1.1\r\n\r\n", b"\x16\3\1\0\0", b"\x80\x2e\1\3\1", b"\x16\3\1\0\5\2\0\0\0\0", b"\x16\3\1\xff\xff\1"])
def test_C_083_what_is_no_hello_ends_the_connection(stand, data):
    backend = stand.backend()
    proxy = stand.serve(passthrough(stand.config([backend], group={"protocol": "TCP"})))
    client = stand.client()
    client.send(data)
    client.expect_end()
    assert backend.n_connections == 0
    assert proxy.metrics().total("listener_client_hellos_total", result="invalid") == 1


@pytest.mark.parametrize("name, is_served", [("a.example.", True), ("192.0.2.1", False), ("x" * 63 + "." + "y" * 63, False)])
def test_C_083_odd_names_do_no_harm(stand, name, is_served):
    seen = []

    def keep(wire):
        while wire.fill():
            seen.append(wire.take(len(wire.pending)))

    backend = stand.backend(keep)
    config = passthrough(stand.config([backend], group={"protocol": "TCP"}), rules=[to("web", sni="a.example")])
    del config["load_balancers"][0]["listeners"][0]["default_target_group"]
    stand.serve(config)
    data = padded_hello(name.encode(), 512)
    client = stand.client()
    client.send(data)
    if is_served:
        assert wait_until(lambda: b"".join(seen) == data)
    else:
        assert client.read_to_end() == ALERT_UNRECOGNIZED_NAME


def test_A6_a_hello_that_does_not_come_ends_the_connection_in_time(stand):
    proxy = stand.serve(passthrough(stand.config([stand.backend()], group={"protocol": "TCP"}), timeouts={"handshake_ms": 300}))
    silent, half = stand.client(), stand.client()
    half.send(padded_hello(b"a.example", 512)[:100])
    half.expect_end()
    silent.expect_end()
    assert proxy.metrics().total("listener_client_hellos_total", result="timeout") >= 1


def test_A6_a_client_that_goes_away_within_its_hello_leaves_nothing(stand):
    proxy = stand.serve(passthrough(stand.config([stand.backend()], group={"protocol": "TCP"})))
    client = stand.client()
    client.send(padded_hello(b"a.example", 512)[:100])
    time.sleep(0.05)
    client.close()
    assert wait_until(lambda: proxy.metrics().total("listener_active_connections") == 0)


def test_A12_a_proxy_header_before_the_hello_and_on_to_the_target(stand):
    heads = []

    class Told(TlsBackend):
        def wire(self, sock):
            sock.settimeout(20)
            head = b""
            while len(head) < 16 or len(head) < 16 + struct.unpack(">H", head[14:16])[0]:
                head += sock.recv(1)
            heads.append(head)
            return super().wire(sock)

    authority = Authority(stand.folder)
    backend = Told(authority.issue("a", "a.example"))
    stand.backends.append(backend)
    proxy = stand.serve(passthrough(stand.config([backend], group={"protocol": "TCP", "proxy_protocol": "v2"}),
                                    proxy_protocol={"from": ["127.0.0.1"]}))
    client = stand.client()
    client.send(b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n")
    wire = Wire(authority.context().wrap_socket(client.sock, server_hostname="a.example"))
    wire.request("GET", "/")
    assert wire.read_response("GET").status == 200
    assert heads[0][16:] == bytes([192, 0, 2, 1, 198, 51, 100, 2]) + struct.pack(">HH", 56324, 443) + b"\2\0\11a.example"
    assert proxy.metrics().total("listener_client_hellos_total", result="read") == 1


def test_A6_names_are_logged(stand):
    log = stand.folder + "/access.log"
    site = Site(stand, ["a.example"], rules=[{"name": "first", **to("a.example", sni="a.example")}],
                access_log={"file": log, "format": "json"})
    site.reached("a.example")
    with pytest.raises(ssl.SSLError):
        tls_wire(site.address, site.context(), name="other.example")
    for client in stand.clients:
        client.close()
    assert wait_until(lambda: os.path.exists(log) and len(open(log, encoding="utf-8").readlines()) == 2)
    with open(log, encoding="utf-8") as lines:
        entries = {entry["host"]: entry for entry in map(json.loads, lines)}
    assert entries["a.example"]["protocol"] == "TLS" and entries["a.example"]["rule"] == "first"
    assert entries["other.example"]["reason"] == "no-route"


def test_A6_a_dead_target_is_passed_over(stand):
    site = Site(stand, ["a.example"], default="a.example")
    config = site.proxy.config
    config["target_groups"][0]["targets"].insert(0, {"ip": "127.0.0.1", "port": 1})
    site.proxy.reload(config)
    for _ in range(3):
        assert site.reached("a.example") == "a.example"


def test_A6_explain_follows_the_name(stand):
    site = Site(stand, ["a.example", "b.example"], default="b.example", rules=[to("a.example", sni="a.example")])
    port = site.address[1]
    for name in ("a.example", "b.example"):
        status, out, err = stand.isobar("explain", f"tls://{name}:{port}", "--config", site.proxy.file, "--from", "192.0.2.1")
        assert status == 0 and site.backends[name].label in out, out + err


@pytest.mark.parametrize("listener, words", [
    ({"redirect": {"scheme": "https"}}, "but this one has TLS"),
    ({"rules": [to("web", host="a.example")]}, "but this one has TLS"),
    ({"rules": [{"match": {"sni": "a"}, "respond": {}}]}, "but this one has TLS"),
    ({"certificates": ["x"]}, "this one has TLS"),
    ({"protocol": "HTTP", "rules": [to("web", sni="a.example")]}, "belongs to listeners with protocol: TLS"),
    ({"rules": [to("web", sni="a example")]}, "expected a host name"),
])
def test_A6_what_does_not_fit_is_refused(stand, listener, words):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], group={"protocol": "TCP"})
    passthrough(config, **listener)
    assert words in stand.refuses(config)
