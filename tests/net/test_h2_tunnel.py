# SPDX-License-Identifier: Apache-2.0
"""WebSockets to targets that speak HTTP/2: extended CONNECT (RFC 8441) where the target announces it (A8)."""
import copy
import json
import ssl
import struct
import threading
import time

import pytest
from hyperframe.frame import SettingsFrame

from harness.h2client import H2Client
from harness.h2origin import CANCEL, H2Origin
from harness.process import wait_until
from harness.stand import address_of
from harness.tls import Authority
from harness.websocket import accept_of, frame, open_websocket, read_frame

ANNOUNCED = {SettingsFrame.ENABLE_CONNECT_PROTOCOL: 1}
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", KEY)]


def pieces(stream):
    """What comes on a stream, piece by piece, to its end or reset."""
    at = 0
    while True:
        stream.wait(lambda s: len(s.body) > at or s.ended or s.reset_code is not None)
        piece = bytes(stream.body[at:])
        at += len(piece)
        if not piece:
            return
        yield piece


def echo(stream):
    """Takes an extended CONNECT and sends every byte back; other requests get an ordinary answer."""
    if stream.get(":protocol") is None:
        stream.answer(b"plain")
        return
    stream.head(200, [("sec-websocket-protocol", "chat")])
    for piece in pieces(stream):
        stream.send(piece)
    if stream.ended:
        stream.end()


@pytest.fixture(name="origin")
def make_origin(stand):
    def make(on_request=echo, settings=ANNOUNCED, kind=H2Origin, **options):
        origin = kind(on_request, settings=settings, **options)
        stand.backends.append(origin)
        return origin

    return make


def front(stand, target, listener=None, **group):
    return stand.proxy(target, listener=listener, group={"protocol": "H2C", **group})


def h2(stand):
    client = H2Client(address_of(stand.proxies[0].config))
    stand.clients.append(client)
    return client


def connect_request(path="/chat", protocol="websocket"):
    return [(":method", "CONNECT"), (":protocol", protocol), (":scheme", "http"), (":authority", "t.example"),
            (":path", path), ("sec-websocket-version", "13")]


def test_A8_an_upgrade_becomes_an_extended_connect(stand, origin):
    target = origin()
    proxy = front(stand, target)
    client = stand.client()
    client.request("GET", "/chat?a=b", UPGRADE + [("Sec-WebSocket-Protocol", "chat, mail"), ("Cookie", "a=1")])
    head = client.read_response_head()
    assert head.status == 101 and head.get("Upgrade") == "websocket" and "upgrade" in head.tokens("Connection")
    assert head.get("Sec-WebSocket-Accept") == accept_of(KEY) and head.get("Sec-WebSocket-Protocol") == "chat"
    request = target.requests[0]
    assert request.fields[:5] == [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"),
                                  (":authority", "t.example"), (":path", "/chat?a=b")]
    names = [name for name, _ in request.fields]
    assert not {"connection", "upgrade", "sec-websocket-key", "content-length", "host"} & set(names)
    assert request.get("sec-websocket-version") == "13" and request.get("sec-websocket-protocol") == "chat, mail"
    for size in (0, 1, 125, 126, 60_000):
        piece = frame(b"x" * size, masked=True)
        client.send(piece)
        assert client.read_exact(len(piece)) == piece
    assert proxy.metrics().total("listener_active_tunnels") == 1
    assert proxy.metrics().total("listener_upgrades_total") == 1
    assert proxy.metrics().total("target_requests_total", **{"class": "1xx"}) == 1
    client.end_writing()
    client.expect_end()
    assert request.ended and request.reset_code is None
    assert wait_until(lambda: proxy.metrics().total("listener_active_tunnels") == 0)


def test_A8_bytes_of_any_number_pass_both_ways_within_the_windows(stand, origin):
    front(stand, origin())
    client = stand.client(timeout_s=60)
    client.request("GET", "/", UPGRADE)
    assert client.read_response_head().status == 101
    data = bytes(range(256)) * 20_000  # no frames that make sense, but as many bytes as one long frame
    piece = b"\x82\xff" + len(data).to_bytes(8, "big") + b"\0\0\0\0" + data
    sender = threading.Thread(target=client.send, args=(piece,))
    sender.start()
    assert client.read_exact(len(piece)) == piece
    sender.join()


def test_A8_tunnels_share_a_connection_with_requests(stand, origin):
    target = origin()
    front(stand, target)
    clients = [open_websocket(stand) for _ in range(10)]
    assert stand.ask().body == b"plain"
    for number, client in enumerate(clients):
        client.send(frame(b"%d" % number))
        assert read_frame(client) == (2, b"%d" % number)
    assert len([c for c in target.connections if c.streams]) == 1


def test_A8_an_extended_connect_passes_to_an_h2_target(stand, origin):
    target = origin()
    proxy = front(stand, target)
    client = h2(stand)
    stream = client.open(connect_request(), end=False)
    answer = client.answers[stream]
    client.wait(lambda: answer.heads)
    assert answer.status == 200 and answer.get("sec-websocket-protocol") == "chat" and answer.get("upgrade") is None
    assert answer.get("sec-websocket-accept") is None
    client.send(client.data_frame(stream, frame(b"abc")))
    client.wait(lambda: answer.body == frame(b"abc"))
    client.send(client.data_frame(stream, b"", True))
    client.wait(lambda: answer.ended)
    assert target.requests[0].get(":protocol") == "websocket" and target.requests[0].reset_code is None
    assert wait_until(lambda: proxy.metrics().total("listener_active_tunnels") == 0)


def test_A8_other_protocols_pass_from_h2_to_h2_and_are_passed_over_from_http1(stand, origin):
    target = origin()
    front(stand, target)
    client = h2(stand)
    stream = client.open(connect_request(protocol="connect-thing"), end=False)
    client.wait(lambda: client.answers[stream].heads)
    assert client.answers[stream].status == 200 and target.requests[0].get(":protocol") == "connect-thing"
    client.reset(stream)
    wire = stand.client()
    wire.request("GET", "/", [("Connection", "Upgrade"), ("Upgrade", "thing")])
    assert wire.read_response().body == b"plain"


def test_A8_a_target_that_announces_nothing_is_501_and_the_log_says_why(stand, origin, tmp_path):
    target = origin(settings={})
    log = tmp_path / "access.log"
    proxy = stand.proxy(target, group={"protocol": "H2C"}, access_log={"file": str(log), "format": "json"})
    for _ in range(2):
        client = stand.client()
        client.request("GET", "/", UPGRADE + [("Accept", "application/json")])
        response = client.read_response()
        assert response.status == 501 and b"no-extended-connect" in response.body
    answer = h2(stand).ask(connect_request(), body=b"")
    assert answer.status == 501
    assert stand.ask().body == b"plain"
    assert [request.get(":method") for request in target.requests] == ["GET"]
    assert wait_until(lambda: log.read_text().count("no-extended-connect") == 3)
    assert [json.loads(line)["status"] for line in log.read_text().splitlines()].count(501) == 3
    assert proxy.metrics().total("target_connects_total") == 1


def test_A8_a_target_may_refuse(stand, origin):
    front(stand, origin(lambda stream: stream.answer(b"no", status=403)))
    client = stand.client()
    for _ in range(2):
        client.request("GET", "/", UPGRADE)
        response = client.read_response()
        assert response.status == 403 and response.body == b"no"
    answer = h2(stand).ask(connect_request(), body=b"")
    assert answer.status == 403 and answer.body == b"no"


def test_A8_either_side_may_break_it(stand, origin):
    def breaks(stream):
        stream.head(200)
        if stream.path == "/breaks":
            stream.wait(lambda s: s.body)  # a reset that comes with the head would be no tunnel's end
            stream.reset(2)
        else:
            stream.wait(lambda s: s.reset_code is not None)

    target = origin(breaks)
    proxy = front(stand, target)
    for path in ("/breaks", "/kept"):
        client = stand.client()
        client.request("GET", path, UPGRADE)
        assert client.read_response_head().status == 101
        if path == "/breaks":
            client.send(b"\x81\x80\0\0\0\0")
            client.expect_end()
        client.reset()
    assert wait_until(lambda: target.requests[1].reset_code == CANCEL)
    assert wait_until(lambda: proxy.metrics().total("listener_active_tunnels") == 0)
    assert stand.client() and proxy.metrics().total("target_open_connections") == 1, "the connection goes on"


def test_A8_a_tunnel_passes_half_closes_on(stand, origin):
    def count(stream):
        stream.head(200)
        n = len(stream.read_body())
        time.sleep(0.2)
        stream.send(b"%d bytes" % n, end=True)

    front(stand, origin(count))
    client = stand.client()
    client.request("GET", "/", UPGRADE)
    assert client.read_response_head().status == 101
    client.send(b"\x82\x7f" + (300_000).to_bytes(8, "big") + b"x" * 300_000)
    client.end_writing()
    assert client.read_to_end() == b"300010 bytes"


def test_A8_an_idle_tunnel_ends_after_its_time(stand, origin):
    target = origin()
    front(stand, target, listener={"timeouts": {"tunnel_ms": 500, "body_ms": 200, "idle_ms": 200}},
          timeouts={"response_ms": 200, "idle_ms": 200})
    client = open_websocket(stand)
    for _ in range(3):
        time.sleep(0.25)
        client.send(frame(b"x"))
        assert read_frame(client) == (2, b"x")
    client.expect_end()
    assert wait_until(lambda: target.requests[0].reset_code == CANCEL)


def test_E2_a_target_that_leaves_and_its_client_get_a_close_frame(stand, origin):
    got = []

    def listen(stream):
        stream.head(200)
        for piece in pieces(stream):
            got.append(piece)

    config = stand.config([origin(listen), origin()], group={"protocol": "H2C", "deregistration_delay_s": 2})
    proxy = stand.serve(config)
    client = open_websocket(stand)
    changed = copy.deepcopy(config)
    del changed["target_groups"][0]["targets"][0]
    proxy.reload(changed)
    assert read_frame(client) == (8, struct.pack(">H", 1001))
    client.expect_end()
    sent = b"".join(got)
    assert sent[:2] == b"\x88\x82" and bytes(a ^ b for a, b in zip(sent[6:8], sent[2:4])) == struct.pack(">H", 1001)


@pytest.mark.parametrize("side", ["target", "client"])
def test_A8_a_reader_that_stops_holds_the_other_side_back(stand, origin, side):
    sent = [0]
    stop = threading.Event()

    def flood(stream):
        stream.head(200)
        stream.send(b"\x82\x7f" + (1 << 32).to_bytes(8, "big"))
        while side == "client" and not stop.is_set() and stream.send(b"x" * 16384):
            sent[0] += 16384

    front(stand, origin(flood, takes_body=False))
    client = stand.client()
    client.request("GET", "/", UPGRADE)
    assert client.read_response_head().status == 101
    if side == "target":
        client.sock.settimeout(1)
        client.sock.send(b"\x82\x7f" + (1 << 32).to_bytes(8, "big"))
        with pytest.raises(TimeoutError):
            while sent[0] < 100_000_000:
                sent[0] += client.sock.send(b"x" * 65536)
    else:
        before = -1
        while before != sent[0]:
            before = sent[0]
            time.sleep(0.5)
    assert sent[0] < 20_000_000
    stop.set()


class EitherOrigin(H2Origin):
    """Speaks TLS, and HTTP/1.1 with WebSockets where ALPN did not choose h2."""

    def __init__(self, on_request, tls, **options):
        self.tls, self.http1 = tls, []
        super().__init__(on_request, **options)

    def speak(self, wire):
        wire.sock = self.tls.wrap_socket(wire.sock, server_side=True)
        if wire.sock.selected_alpn_protocol() == "h2":
            super().speak(wire)
            return
        request = wire.read_request()
        self.http1.append(wire.sock.selected_alpn_protocol())
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept_of(request.get("Sec-WebSocket-Key")).encode())
        while data := wire.sock.recv(65536):
            wire.send(data)


@pytest.mark.parametrize("announces", [True, False])
def test_A8_a_target_of_both_protocols_is_asked_in_the_one_that_it_tunnels_in(stand, origin, tmp_path, announces):
    authority = Authority(tmp_path)
    certificate = authority.issue("target", "t.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate["cert_file"], certificate["key_file"])
    context.set_alpn_protocols(["h2", "http/1.1"])

    target = origin(settings=ANNOUNCED if announces else {}, kind=EitherOrigin, tls=context)
    stand.proxy(target, group={"protocol": "HTTPS", "tls": {"ca_file": authority.file, "sni": "t.example",
                                                            "alpn": ["h2", "http/1.1"]}})
    first = open_websocket(stand)  # nothing is known of the target
    first.send(frame(b"abc"))
    assert read_frame(first) == (2, b"abc")
    assert target.http1 == ["http/1.1"]
    assert stand.ask().body == b"plain"  # over HTTP/2, whose SETTINGS tell
    second = open_websocket(stand)
    second.send(frame(b"abc"))
    assert read_frame(second) == (2, b"abc")
    assert len(target.http1) == (1 if announces else 2)
    assert stand.ask().body == b"plain"
