# SPDX-License-Identifier: Apache-2.0
"""Slow clients and slow backends."""
import threading
import time

from harness.backend import text_response
from harness.judge import first_response


def test_C_041_a_trickled_head_is_cut_at_the_total_time(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, listener={"timeouts": {"header_ms": 1500}})
    started = time.monotonic()
    clients = [stand.client() for _ in range(300)]
    for client in clients:
        client.send(b"GET /slow HTTP/1.1\r\nX-A: ")
    open_ones = list(clients)
    while open_ones and time.monotonic() - started < 30:
        # Bytes come all the time: they must not start the clock anew.
        for client in open_ones:
            try:
                client.send(b"x")
            except OSError:
                pass
        assert stand.ask(target="/normal").status == 200
        gone = proxy.metrics().total("listener_active_connections") <= 1
        if gone:
            break
        time.sleep(0.2)
    assert time.monotonic() - started < 30
    n_408 = 0
    for client in clients:
        data = client.read_to_end()
        response = first_response(data)
        n_408 += response is not None and response.status == 408
    assert n_408 >= 1, "the request line was there, so the answer is 408"
    assert all(request.target == "/normal" for request in backend.requests)


def test_a_connection_that_sends_nothing_is_closed_silently(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"timeouts": {"header_ms": 400, "idle_ms": 400}})
    client = stand.client()
    client.expect_end()
    client = stand.client()
    client.send(b"\r\n")
    client.expect_end()


def test_C_043_a_body_below_the_minimum_rate_is_cut_with_408(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"timeouts": {"body_ms": 15000}, "limits": {"min_rate_bytes_per_s": 5000}})
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 100000\r\n\r\n")
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.2):
            try:
                client.send(b"y")
            except OSError:
                return

    threading.Thread(target=trickle, daemon=True).start()
    client.sock.settimeout(60)
    response = first_response(client.read_to_end())
    stop.set()
    assert response is not None and response.status == 408
    assert backend.requests == []


def test_C_043_a_thin_stream_lives_where_no_rate_is_asked(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"timeouts": {"body_ms": 2000}, "limits": {"min_rate_bytes_per_s": 0}})
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(8):
        client.send(b"3\r\nabc\r\n")
        time.sleep(0.5)
    client.send(b"0\r\n\r\n")
    assert client.read_response().status == 200
    assert backend.requests[0].body == b"abc" * 8


def test_a_body_that_stops_is_408(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"timeouts": {"body_ms": 500}})
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 10\r\n\r\nhalf")
    response = first_response(client.read_to_end())
    assert response.status == 408
    assert backend.requests == []


def test_C_044_a_silent_backend_is_504(stand):
    def script(wire):
        wire.read_request()
        wire.read_to_end()

    backend = stand.backend(script)
    proxy = stand.proxy(backend, group={"timeouts": {"response_ms": 400}})
    client = stand.client()
    for n in range(2):
        client.request("POST", body=b"x")
        response = client.read_response("POST")
        assert response.status == 504 and not response.closes
    assert len(backend.requests) == 2
    assert proxy.metrics().total("target_response_timeouts_total") == 2


def test_C_044_a_slow_body_is_not_cut_by_the_response_time(stand):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        for _ in range(10):
            time.sleep(0.15)
            wire.send(b"s")

    backend = stand.backend(script)
    stand.proxy(backend, group={"timeouts": {"response_ms": 500}})
    client = stand.client()
    client.request()
    assert client.read_response().body == b"s" * 10


def test_a_slow_upload_does_not_count_against_the_response_time(stand):
    backend = stand.backend()
    stand.proxy(backend, group={"timeouts": {"response_ms": 400}}, listener={"limits": {"min_rate_bytes_per_s": 0}})
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 10\r\n\r\n")
    for _ in range(10):
        time.sleep(0.1)
        client.send(b"u")
    assert client.read_response().status == 200


def test_a_slow_reader_costs_its_own_buffers_only(stand):
    big = b"B" * (64 << 20)
    backend = stand.backend()
    backend.answer = lambda request: text_response(big if request.target == "/big" else b"small")
    proxy = stand.proxy(backend)
    before = proxy.rss_kb()
    readers = [stand.client() for _ in range(4)]
    for reader in readers:
        reader.request(target="/big")
    time.sleep(1)
    for _ in range(20):
        assert stand.ask(target="/small").body == b"small"
    assert proxy.rss_kb() - before < 16 << 10, "back-pressure must reach the backend"
    assert readers[0].read_response().body == big


def test_a_slow_backend_stops_a_fast_uploader(stand):
    release = threading.Event()

    def script(wire):
        request = wire.read_request(body=False)
        release.wait(30)
        wire.read_request_body(request)
        wire.send(text_response(b"%d" % len(request.body)))

    backend = stand.backend(script)
    proxy = stand.proxy(backend, listener={"limits": {"min_rate_bytes_per_s": 0}})
    before = proxy.rss_kb()
    client = stand.client()
    body = b"F" * (48 << 20)
    answers = []

    def upload():
        client.request("POST", body=body)
        answers.append(client.read_response())

    thread = threading.Thread(target=upload)
    thread.start()
    time.sleep(1)
    assert proxy.rss_kb() - before < 16 << 10
    release.set()
    thread.join()
    assert answers[0].body == b"%d" % len(body)
