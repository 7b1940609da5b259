# SPDX-License-Identifier: Apache-2.0
"""Reused connections: which failures are retried, and which never."""
import socket
import struct
import threading
import time

from harness.backend import Backend, text_response
from harness.ports import free_port


def test_connections_are_reused_across_clients(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    for _ in range(20):
        assert stand.ask().status == 200
    assert backend.n_connections == 1
    assert proxy.metrics().total("target_pool_hits_total") == 19


def test_C_032_a_backend_that_closes_idle_connections_costs_nobody_an_error(stand):
    def script(wire):
        wire.sock.settimeout(0.1)
        try:
            while True:
                request = wire.read_request()
                if request is None:
                    return
                wire.send(text_response(request.method.encode()))
        except TimeoutError:
            return

    backend = stand.backend(script)
    stand.proxy(backend)
    outcomes = []

    def run(number):
        client = stand.client()
        for turn in range(40):
            method = "GET" if (turn + number) % 2 else "POST"
            number_id = f"{number}-{turn}"
            client.request(method, f"/{method}/{number_id}", body=b"x" if method == "POST" else None)
            response = client.read_response(method)
            outcomes.append((method, response.status))
            if response.closes:
                client = stand.client()
            # Around the backend's own limit: its close and our request cross on the wire.
            time.sleep(0.098 + (turn % 9) * 0.0005)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 160
    assert [status for method, status in outcomes if method == "GET" and status != 200] == []
    assert all(status in (200, 502) for _, status in outcomes)
    posts = [request.target for request in backend.requests if request.method == "POST"]
    assert len(posts) == len(set(posts)), "a POST was executed twice"


def failing_once(answer=None):
    """A script: the first request on a connection is answered, the next one is read and the connection closed."""

    def script(wire):
        if wire.read_request() is None:
            return
        wire.send(text_response(b"first"))
        if wire.read_request() is not None and answer:
            wire.send(answer)

    return script


def test_a_get_on_a_connection_that_dies_is_retried_once_on_a_fresh_one(stand):
    backend = stand.backend(failing_once())
    proxy = stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request()
        assert client.read_response().status == 200
    assert len(backend.requests) == 5
    assert proxy.metrics().total("target_group_retries_total") == 2


def test_a_post_on_a_connection_that_dies_is_502_and_not_repeated(stand):
    backend = stand.backend(failing_once())
    stand.proxy(backend)
    client = stand.client()
    client.request()
    assert client.read_response().status == 200
    client.request("POST", "/once", body=b"payload")
    assert client.read_response("POST").status == 502
    assert [request.target for request in backend.requests].count("/once") == 1


def test_nothing_is_retried_once_bytes_of_an_answer_came(stand):
    backend = stand.backend(failing_once(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
    stand.proxy(backend)
    client = stand.client()
    client.request()
    assert client.read_response().status == 200
    client.request(target="/second")
    data = client.read_to_end()
    assert data.startswith(b"HTTP/1.1 200 ") and data.endswith(b"half"), "the client must see that it is cut"
    assert [request.target for request in backend.requests].count("/second") == 1


def test_a_head_cut_short_is_retried_or_502_but_never_passed_on(stand):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Le")

    backend = stand.backend(script)
    stand.proxy(backend)
    response = stand.ask()
    assert response.status == 502


def test_C_034_errors_of_our_own_keep_the_client_connection(stand):
    stand.proxy({"ip": "127.0.0.1", "port": free_port()})
    client = stand.client()
    for _ in range(3):
        client.request()
        response = client.read_response()
        assert response.status in (502, 503)
        assert response.length is not None and not response.closes
    client.request("POST", body=b"q" * 100)
    assert client.read_response().status in (502, 503)
    client.request()
    assert client.read_response().status in (502, 503)


def test_a_refused_connection_goes_to_another_target(stand):
    good = stand.backend()
    proxy = stand.proxy([{"ip": "127.0.0.1", "port": free_port()}, good])
    for turn in range(6):
        response = stand.ask("POST" if turn % 2 else "GET", body=b"b" if turn % 2 else None)
        assert response.status == 200
    assert proxy.metrics().total("target_connect_errors_total") >= 2
    assert proxy.metrics().total("target_group_retries_total") >= 2


def test_C_036_retries_are_bounded(stand):
    backends = stand.backends_named("a", "b", "c")
    for backend in backends:
        backend.answer = lambda request: text_response(b"", "503 Service Unavailable")
    stand.proxy(backends, group={"retry": {"attempts": 3, "on": ["gateway_error"]}})
    for _ in range(10):
        assert stand.ask().status == 503
    seen = [request for backend in backends for request in backend.requests]
    assert 10 <= len(seen) <= 30
    before = len(seen)
    for _ in range(5):
        assert stand.ask("POST", body=b"x").status == 503
    after = sum(len(backend.requests) for backend in backends)
    assert after - before == 5, "a POST is not repeated"


def test_a_retry_after_a_gateway_error_reaches_a_good_target(stand):
    bad, good = stand.backends_named("bad", "good")
    bad.answer = lambda request: text_response(b"bad", "502 Bad Gateway")
    stand.proxy([bad, good], group={"retry": {"attempts": 2, "on": ["gateway_error"]}})
    for _ in range(6):
        response = stand.ask()
        assert response.status == 200 and response.body == b"good"


def test_idle_connections_close_after_their_time(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, group={"timeouts": {"idle_ms": 300}})
    assert stand.ask().status == 200
    wire = backend.wires[0]
    wire.sock.settimeout(20)
    assert wire.sock.fileno() != -1
    end = time.monotonic() + 20
    # Not the idle ones: the answer is here before the connection is given back.
    while proxy.metrics().total("target_open_connections") and time.monotonic() < end:
        time.sleep(0.05)
    assert proxy.metrics().total("target_open_connections") == 0


def test_idle_clients_are_closed_after_their_time_without_an_answer(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"timeouts": {"idle_ms": 300}})
    client = stand.client()
    client.request()
    assert client.read_response().status == 200
    client.expect_end()


def test_a_backend_that_comes_back_is_used_again(stand):
    port = free_port()
    proxy_backend = stand.backend(port=port)
    stand.proxy(proxy_backend)
    assert stand.ask().status == 200
    proxy_backend.stop()
    assert stand.ask().status in (502, 503)
    again = Backend(port=port, name="again")
    stand.backends.append(again)
    assert stand.ask().body == b"again"


def test_a_fresh_connection_that_is_reset_at_once_is_retried(stand):
    """Mostly the reset shows at the read or as a failed connect; that it shows at the write first is left to tests/soak."""
    good = stand.backend(name="good")
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    stop = threading.Event()

    def reset_all():
        listener.settimeout(0.1)
        while not stop.is_set():
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

    thread = threading.Thread(target=reset_all)
    thread.start()
    try:
        stand.proxy([{"ip": "127.0.0.1", "port": listener.getsockname()[1]}, good],
                    group={"retry": {"attempts": 2, "on": ["connect_failure", "reset"], "budget_pct": 100},
                           "outlier": {"consecutive_5xx": 0, "consecutive_gateway_errors": 0, "error_rate_pct": 0}})
        client = stand.client()
        for _ in range(300):
            client.request()
            assert client.read_response().body == b"good"
    finally:
        stop.set()
        thread.join()
        listener.close()
