# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 with clients, in front of HTTP/1.1 targets: requests, bodies, resets, windows, the end of connections."""
import os
import ssl
import subprocess
import threading
import time

import pytest
from hyperframe.frame import DataFrame, HeadersFrame, SettingsFrame, WindowUpdateFrame

from harness.backend import replying, text_response
from harness.h2client import (CANCEL, FLOW_CONTROL_ERROR, INITIAL_WINDOW, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR,
                              REFUSED_STREAM, H2Client, request)
from harness.process import wait_until
from harness.stand import address_of
from harness.tls import Authority, openssl, tls_wire


def h2(stand, proxy=None, **options):
    client = H2Client(address_of((proxy or stand.proxies[0]).config), **options)
    stand.clients.append(client)
    return client


def test_A7_requests_of_one_connection_go_to_many_targets(stand):
    backends = stand.backends_named("a", "b", "c")
    proxy = stand.proxy(backends)
    client = h2(stand)
    streams = [client.open(request(path=f"/{n}", fields=[("x-n", str(n))])) for n in range(30)]
    answers = [client.read(stream) for stream in streams]
    assert {answer.status for answer in answers} == {200}
    assert sorted(answer.body for answer in answers) == sorted([b"a", b"b", b"c"] * 10)
    seen = {seen.target: seen for backend in backends for seen in backend.requests}
    assert len(seen) == 30 and seen["/7"].get("x-n") == "7" and seen["/7"].get("Host") == "t.example"
    assert seen["/7"].get("X-Forwarded-For") == "127.0.0.1" and seen["/7"].get("X-Request-Id")
    metrics = proxy.metrics()
    assert metrics.total("listener_h2_connections_total") == 1
    assert metrics.total("listener_h2_streams_total") == 30
    assert metrics.total("listener_requests_total", **{"class": "2xx"}) == 30


def test_A7_the_preface_may_come_in_pieces_and_http1_is_still_spoken(stand):
    stand.proxy(stand.backend())
    wire = stand.client()
    for piece in (b"P", b"RI * HTTP/2.0\r\n", b"\r\nS"):
        wire.send(piece)
        time.sleep(0.05)
    wire.send(b"M\r\n\r\n" + SettingsFrame(0).serialize())
    assert wire.sock.recv(9)[3] == 4
    for method in ("PUT", "PRI", "PROPFIND"):
        assert stand.ask(method, "/").status == 200


def test_A7_prior_knowledge_can_be_switched_off(stand):
    stand.proxy(stand.backend(), listener={"http2": {"cleartext": False}})
    assert stand.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize("size", [0, 1, 16384, 65535, 65536, 3_000_000])
def test_A7_bodies_of_any_size_pass_both_ways(stand, size):
    body = os.urandom(size)
    backend = stand.backend()
    backend.answer = lambda seen: text_response(seen.body)
    stand.proxy(backend)
    for length in ([], [f"content-length: {size}"]):
        got = curl(stand, "--data-binary", f"@{put(stand, body)}", "-H", "expect:", *(["-H", length[0]] if length else []))
        assert got == body
    assert [seen.body for seen in backend.requests] == [body] * 2


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_A7_long_answers_over_a_socket_that_is_full_arrive_whole(stand, tmp_path, scheme):
    def body_of(number):
        return (b"%d," % number) * (number * 100_000)

    backend = stand.backend()
    backend.answer = lambda seen: text_response(body_of(int(seen.target[1:])))
    config, sock = stand.config(backend), None
    if scheme == "https":
        authority = Authority(tmp_path)
        config["certificates"] = [authority.issue("t", "t.example")]
        config["load_balancers"][0]["listeners"][0].update(protocol="HTTPS", certificates=["t"])
    proxy = stand.serve(config)
    if scheme == "https":
        context = ssl.create_default_context(cafile=authority.file)
        context.set_alpn_protocols(["h2"])
        sock = tls_wire(address_of(proxy.config), context).sock
    client = h2(stand, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 2**24}, window=2**28, sock=sock)
    streams = {number: client.open(request(path=f"/{number}")) for number in (1, 16, 2, 15, 3, 14, 4, 40)}
    time.sleep(0.5)  # all sockets are full
    for number, stream in streams.items():
        got = client.read(stream, 90)
        assert got.status == 200 and got.body == body_of(number)
        time.sleep(0.05)


def put(stand, data):
    path = os.path.join(stand.folder, "body")
    with open(path, "wb") as file:
        file.write(data)
    return path


def curl(stand, *args, path="/", scheme="http", code=0):
    host, port = address_of(stand.proxies[0].config)
    how = ["--http2-prior-knowledge"] if scheme == "http" else ["--http2", "-k"]
    done = subprocess.run(["curl", "-sS", "-m", "60", *how, *args, f"{scheme}://{host}:{port}{path}"], capture_output=True,
                          check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_A7_a_body_of_unknown_length_is_chunked_with_its_trailers(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = h2(stand)
    stream = client.open(request("POST", fields=[("te", "trailers")]), end=False)
    client.send(client.data_frame(stream, b"hello "))
    time.sleep(0.1)
    client.send(client.data_frame(stream, b"world"), client.headers_frame(stream, [("x-sum", "77")]))
    assert client.read(stream).status == 200
    seen = backend.requests[0]
    assert seen.body == b"hello world" and seen.is_chunked and seen.trailers == [("x-sum", "77")]


def test_C_016_trailers_of_a_target_reach_an_h2_client(stand):
    stand.proxy(stand.backend(replying(b"HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       b"3\r\nabc\r\n0\r\nx-sum: 77\r\nContent-Length: 9\r\n\r\n")))
    client = h2(stand)
    for _ in range(2):
        answer = client.ask()
        assert answer.body == b"abc" and answer.trailers == [("x-sum", "77")]
        assert "END_STREAM" in [frame for frame in client.frames if isinstance(frame, HeadersFrame)][-1].flags


def test_C_022_interim_answers_pass_and_their_length_does_not(stand):
    def script(wire):
        while True:
            seen = wire.read_request(body=False)
            if seen is None:
                return
            wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n")
            wire.read_request_body(seen)
            wire.send(text_response(b"x" * 64))

    stand.proxy(stand.backend(script))
    client = h2(stand)
    stream = client.open(request("POST", fields=[("expect", "100-continue"), ("content-length", "5")]), end=False)
    client.wait(lambda: len(client.answers[stream].heads) == 2)
    assert client.answers[stream].heads[0] == [(":status", "103"), ("link", "</a>")]
    assert client.answers[stream].heads[1] == [(":status", "100")]
    client.send_body(stream, b"hello")
    answer = client.read(stream)
    assert answer.status == 200 and answer.body == b"x" * 64


def test_C_025_answers_without_a_body_end_with_their_head(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = h2(stand)
    for method, text, length in (("GET", "304 Not Modified\r\nContent-Length: 512", "512"), ("GET", "304 Not Modified", None),
                                 ("HEAD", "200 OK\r\nContent-Length: 512", "512"), ("GET", "204 No Content", None)):
        backend.answer = lambda seen, text=text: f"HTTP/1.1 {text}\r\n\r\n".encode()
        answer = client.ask(request(method))
        assert answer.ended and answer.body == b"" and answer.get("content-length") == length
        last = client.frames[-1]
        assert isinstance(last, HeadersFrame) and "END_STREAM" in last.flags


def test_C_027_a_426_loses_its_upgrade_field(stand):
    stand.proxy(stand.backend(replying(b"HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                                       b"Content-Length: 0\r\n\r\n")))
    answer = h2(stand).ask()
    assert answer.status == 426 and answer.get("upgrade") is None and answer.get("connection") is None


def test_C_056_windows_that_shrink_and_grow_in_the_middle(stand):
    body = os.urandom(1 << 20)
    backend = stand.backend()
    backend.answer = lambda seen: text_response(body)
    stand.proxy(backend)
    client = h2(stand, window=2**24)
    client.auto_window = False
    stream = client.open()
    answer = client.answers[stream]
    client.wait(lambda: len(answer.body) >= 40000)
    client.send(SettingsFrame(0, settings={INITIAL_WINDOW: 0}))
    client.drain(1)
    had = len(answer.body)
    assert 40000 <= had <= 65535
    client.send(SettingsFrame(0, settings={INITIAL_WINDOW: 131072}))
    client.wait(lambda: len(answer.body) == 131072)
    client.send(WindowUpdateFrame(stream, 2**20))
    assert client.read(stream).body == body
    client.open()
    client.send(*[WindowUpdateFrame(client.next_id - 2, 2**31 - 1)] * 2)
    assert client.read(client.next_id - 2).reset == FLOW_CONTROL_ERROR


def test_C_059_a_header_table_that_shrinks(stand):
    backend = stand.backend()
    backend.answer = lambda seen: text_response(fields=[(f"x-{n}", seen.target * n) for n in range(10)])
    stand.proxy(backend)
    client = h2(stand, settings={SettingsFrame.HEADER_TABLE_SIZE: 0})
    client.decoder.max_allowed_table_size = 0
    for n in range(50):
        if n == 25:
            client.send(SettingsFrame(0, settings={SettingsFrame.HEADER_TABLE_SIZE: 1024}))
            client.decoder.max_allowed_table_size = 1024
        assert client.ask(request(path=f"/{n}")).get("x-3") == f"/{n}" * 3


def test_C_062_malformed_requests_are_stream_errors(stand):
    backend = stand.backend(replying(b"HTTP/1.1 200 OK\r\nConnection: x-hop\r\nx-hop: 1\r\nKeep-Alive: 5\r\n"
                                     b"X-MiXed: 1\r\nContent-Length: 2\r\n\r\nok"))
    proxy = stand.proxy(backend)
    client = h2(stand)
    for field in (("connection", "keep-alive"), ("te", "gzip"), ("transfer-encoding", "chunked"), ("x-a", "b\r\nx: c"),
                  ("x-a", " b"), ("x a", "b")):
        assert client.ask(request(fields=[field])).reset == PROTOCOL_ERROR, field
    answer = client.ask(request(fields=[("te", "trailers")]))
    assert answer.status == 200 and answer.get("x-mixed") == "1"
    assert not [name for name, _ in answer.heads[0] if name in ("connection", "keep-alive", "x-hop")]
    assert len(backend.requests) == 1
    assert proxy.metrics().total("listener_h2_refused_streams_total", why="malformed") == 6


def test_C_063_authority_and_host(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = h2(stand)
    assert client.ask(request(fields=[("host", "b.example")])).reset == PROTOCOL_ERROR
    assert client.ask([(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "b.example")]).status == 200
    assert client.ask(request(fields=[("host", "t.example")])).status == 200
    assert [seen.get("Host") for seen in backend.requests] == ["b.example", "t.example"]
    assert client.ask([(":method", "GET"), (":scheme", "http"), (":path", "/")]).reset == PROTOCOL_ERROR


def test_C_064_cookie_crumbs_become_one_field(stand):
    backend = stand.backend()
    stand.proxy(backend)
    crumbs = [("cookie", "a=1"), ("cookie", "b=2"), ("x-a", "1"), ("cookie", "SRV=s3")]
    assert h2(stand).ask(request(fields=crumbs)).status == 200
    assert backend.requests[0].get("Cookie") == "a=1; b=2; SRV=s3"


def test_C_054_an_early_answer_to_an_upload_comes_whole(stand):
    def script(wire):
        wire.read_request(body=False)
        wire.send(text_response(b"too much", "413 Content Too Large"))
        time.sleep(2)

    stand.proxy(stand.backend(script))
    client = h2(stand)
    stream = client.open(request("POST", fields=[("content-length", str(20 << 20))]), end=False)
    client.send(client.data_frame(stream, b"x" * 16384))
    answer = client.read(stream)
    assert answer.status == 413 and answer.body == b"too much" and answer.ended
    client.wait(lambda: answer.reset is not None, 5)
    assert answer.reset == NO_ERROR
    other = stand.backend()
    assert other and not client.is_closed


def test_C_065_a_denied_upload_does_not_look_retryable(stand):
    stand.proxy(stand.backend(), listener={"rules": [{"match": {"path": "/no"}, "deny": {}}]})
    client = h2(stand)
    for _ in range(50):
        stream = client.open(request("POST", "/no"), end=False)
        client.send_body(stream, b"x" * 30000)
        answer = client.read(stream)
        assert answer.status == 403 and answer.ended
        client.drain(0.01)
        assert answer.reset in (None, NO_ERROR)
    assert b"\n403" in curl(stand, "-d", f"@{put(stand, b'x' * 1000000)}", "-w", "\n%{http_code}", path="/no")


def test_C_067_excess_streams_are_refused(stand):
    backend = stand.backend(lambda wire: (wire.read_request(), time.sleep(20)))
    proxy = stand.proxy(backend, listener={"http2": {"max_streams": 4}})
    client = h2(stand)
    client.wait(lambda: client.settings.get(SettingsFrame.MAX_CONCURRENT_STREAMS) == 4)
    streams = [client.open() for _ in range(9)]
    client.wait(lambda: sum(client.answers[stream].reset is not None for stream in streams) == 5)
    assert [client.answers[stream].reset for stream in streams] == [None] * 4 + [REFUSED_STREAM] * 5
    assert proxy.metrics().total("listener_h2_refused_streams_total", why="too_many") == 5


def test_A7_a_reset_of_the_client_ends_its_request_at_once(stand):
    ended = threading.Event()

    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 1000)
        try:
            while wire.sock.recv(65536):
                pass
        except OSError:
            pass
        ended.set()

    proxy = stand.proxy(stand.backend(script))
    client = h2(stand)
    stream = client.open()
    client.wait(lambda: client.answers[stream].body)
    client.reset(stream)
    assert ended.wait(20)
    assert wait_until(lambda: proxy.metrics().total("listener_requests_total", **{"class": "aborted"}) == 1)
    assert proxy.metrics().total("listener_h2_reset_streams_total") == 1


def test_A7_an_answer_that_breaks_is_a_reset_never_an_end(stand):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        time.sleep(0.2)

    stand.proxy(stand.backend(script))
    answer = (client := h2(stand)).read(client.open())
    assert answer.body == b"abc" and answer.reset == INTERNAL_ERROR and not answer.ended


def test_A7_a_slow_target_holds_its_client_back_and_no_other(stand):
    go_on = threading.Event()

    def script(wire):
        seen = wire.read_request(body=False)
        if seen.target == "/slow":
            go_on.wait(20)
        wire.read_request_body(seen)
        wire.send(text_response(str(len(seen.body)).encode()))

    stand.proxy(stand.backend(script))
    client = h2(stand)
    stream = client.open(request("POST", "/slow"), end=False)
    client.send_body(stream, b"x" * 65535, end=False)
    client.drain(0.5)
    given = sum(frame.window_increment for frame in client.frames
                if isinstance(frame, WindowUpdateFrame) and frame.stream_id == stream)
    assert given < 8 << 20
    assert client.ask(request("POST", "/other"), body=b"y" * 1000).body == b"1000"
    go_on.set()
    client.send(client.data_frame(stream, b"", True))
    assert client.read(stream).body == b"65535"


def test_A7_a_body_that_stops_is_answered_408(stand):
    stand.proxy(stand.backend(lambda wire: wire.read_request()), listener={"timeouts": {"body_ms": 500}})
    client = h2(stand)
    stream = client.open(request("POST"), end=False)
    client.send(client.data_frame(stream, b"x" * 100))
    answer = client.read(stream)
    assert answer.status == 408 and answer.ended
    assert not client.goaways


def test_A7_a_client_that_opens_no_window_is_let_go(stand):
    backend = stand.backend()
    backend.answer = lambda seen: text_response(b"x" * 1_000_000)
    proxy = stand.proxy(backend, listener={"timeouts": {"body_ms": 500}})
    client = h2(stand)
    client.auto_window = False
    stream = client.open()
    answer = client.read(stream)
    assert len(answer.body) == 65535 and answer.reset == CANCEL
    assert proxy.metrics().total("listener_h2_stalled_streams_total") == 1
    client.send(WindowUpdateFrame(0, 100000))
    assert client.ask(request("HEAD")).status == 200


def test_A7_requests_over_tls_are_chosen_by_alpn(stand, tmp_path):
    folder = tmp_path / "certs"
    folder.mkdir()
    ca = Authority(folder)
    backend = stand.backend()
    stand.serve(stand.config(backend, listener={"protocol": "HTTPS", "certificates": ["t"]},
                             certificates=[ca.issue("t", "t.example")]))
    assert curl(stand, "-o", "/dev/null", "-w", "%{http_version}", scheme="https") == b"2"
    body = put(stand, os.urandom(500_000))
    backend.answer = lambda seen: text_response(seen.body)
    with open(body, "rb") as file:
        assert curl(stand, "--data-binary", f"@{body}", scheme="https") == file.read()
    assert backend.requests[0].get("X-Forwarded-Proto") == "https"


def test_the_log_names_the_protocol(stand):
    log = os.path.join(stand.folder, "log")
    stand.proxy(stand.backend(), access_log={"file": log, "format": "json"})
    client = h2(stand)
    assert client.ask(request(path="/x")).status == 200
    assert wait_until(lambda: os.path.exists(log) and '"protocol":"HTTP/2"' in open(log).read())
