# SPDX-License-Identifier: Apache-2.0
"""One side ends its sending, or closes early."""
import time

from harness.backend import text_response


def test_C_045_a_client_that_shuts_its_write_side_gets_its_answer(stand):
    def script(wire):
        while wire.read_request() is not None:
            time.sleep(0.5)
            wire.send(text_response(b"m" * (1 << 20)))

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    client.request("POST", body=b"p" * 60)
    client.end_writing()
    response = client.read_response()
    assert response.status == 200 and response.body == b"m" * (1 << 20)
    client.expect_end()
    assert backend.requests[0].body == b"p" * 60


def test_C_048_an_answer_before_a_close_with_unread_upload_arrives(stand):
    def script(wire):
        wire.read_request(body=False)
        wire.send(text_response(b"too much", "413 Content Too Large", close=True))
        # Returning closes the socket with most of the upload unread: the kernel answers with RST.

    backend = stand.backend(script)
    stand.proxy(backend)
    n_answered = 0
    for _ in range(20):
        client = stand.client()
        client.send(b"POST /up HTTP/1.1\r\nHost: t.example\r\nContent-Length: 157286400\r\n\r\n")
        try:
            for _ in range(64):
                client.send(b"u" * 65536)
        except OSError:
            pass
        try:
            n_answered += client.read_response().status == 413
        except (AssertionError, OSError):
            pass
        client.close()
    assert n_answered >= 19


def test_a_client_that_goes_away_frees_the_backend(stand):
    done = []

    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            for _ in range(10000):
                wire.send(b"d" * 100000)
        finally:
            done.append(True)

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    client.request()
    client.read_exact(200000)
    client.reset()
    end = time.monotonic() + 20
    while not done and time.monotonic() < end:
        time.sleep(0.02)
    assert done


def test_a_client_that_leaves_in_the_middle_of_its_body_is_counted_as_aborted(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 1000\r\n\r\nhalf")
    time.sleep(0.1)
    client.close()
    end = time.monotonic() + 20
    while not proxy.metrics().total("listener_requests_total", **{"class": "aborted"}) and time.monotonic() < end:
        time.sleep(0.02)
    assert proxy.metrics().total("listener_requests_total", **{"class": "aborted"}) == 1
    assert backend.requests == [], "a body that never came whole is no request"


def test_a_backend_that_half_closes_after_its_answer_is_not_reused(stand):
    def script(wire):
        wire.read_request()
        wire.send(text_response(b"bye"))
        wire.end_writing()
        wire.read_to_end()

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request("POST", body=b"b")
        assert client.read_response().body == b"bye"
        time.sleep(0.05)
    assert backend.n_connections == 3
