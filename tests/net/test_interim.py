# SPDX-License-Identifier: Apache-2.0
"""1xx responses and Expect: 100-continue."""
import time

from harness.backend import text_response


def test_C_019_an_early_rejection_reaches_a_client_that_waits_for_100(stand):
    def script(wire):
        wire.read_request(body=False)
        wire.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwho?")
        wire.end_writing()
        time.sleep(0.5)

    backend = stand.backend(script)
    stand.proxy(backend)
    for _ in range(3):
        client = stand.client()
        client.send(b"PUT /big HTTP/1.1\r\nHost: t.example\r\nContent-Length: 50000000\r\nExpect: 100-continue\r\n\r\n")
        response = client.read_response()
        assert response.status == 401 and response.body == b"who?"


def test_expect_100_continue_is_carried_through(stand):
    def script(wire):
        while True:
            request = wire.read_request(body=False)
            if request is None:
                return
            if request.get("Expect"):
                wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            wire.read_request_body(request)
            wire.send(text_response(request.body))

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.send(b"PUT /p HTTP/1.1\r\nHost: t.example\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        interim = client.read_response_head()
        assert interim.status == 100
        client.send(b"hello")
        assert client.read_response().body == b"hello"
    assert backend.n_connections == 1


def test_a_client_that_does_not_wait_for_100_is_served(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(request.body)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"PUT /p HTTP/1.1\r\nHost: t.example\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello")
    assert client.read_response().body == b"hello"
    client.request(target="/next")
    assert client.read_response().status == 200


def test_an_unknown_expectation_is_417(stand):
    backend = stand.backend()
    stand.proxy(backend)
    assert stand.ask(fields=[("Expect", "a-miracle")]).status == 417
    assert backend.raw == b""


SEVERAL = (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
           b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
           b"HTTP/1.1 103 Early Hints\r\nLink: </b.css>; rel=preload\r\n\r\n")


def several_then_200(wire):
    while wire.read_request() is not None:
        wire.send(SEVERAL + text_response(b"final"))


def test_C_021_an_http10_client_gets_the_final_response_only(stand):
    backend = stand.backend(several_then_200)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"GET / HTTP/1.0\r\nHost: t.example\r\n\r\n")
    data = client.read_to_end()
    assert data.count(b"HTTP/1.") == 1 and b" 200 " in data.split(b"\r\n")[0] and data.endswith(b"final")


def test_C_021_an_http11_client_gets_every_interim_response(stand):
    backend = stand.backend(several_then_200)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request()
        response = client.read_response()
        assert response.status == 200 and response.body == b"final"
        statuses = [one.status for one in response.interim]
        assert statuses in ([100, 102, 103, 103], [102, 103, 103])
        assert [one.get("Link") for one in response.interim if one.status == 103] == [
            "</a.css>; rel=preload", "</b.css>; rel=preload"]
    assert backend.n_connections == 1


def test_C_021_a_101_that_nobody_asked_for_is_502(stand):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        wire.read_to_end()

    backend = stand.backend(script)
    stand.proxy(backend)
    assert stand.ask().status == 502


def test_C_021_expect_of_an_http10_client_is_ignored(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(request.body)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"POST / HTTP/1.0\r\nHost: t.example\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi")
    data = client.read_to_end()
    assert data.count(b"HTTP/1.") == 1 and data.endswith(b"hi")
    assert backend.requests[0].get("Expect") is None


def test_C_022_a_length_on_an_interim_response_is_ignored(stand):
    def script(wire):
        while wire.read_request() is not None:
            wire.send(b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n" + text_response(b"b" * 64))

    backend = stand.backend(script)
    stand.proxy(backend)
    response = stand.ask("POST", fields=[("Expect", "100-continue")], body=b"x")
    assert response.status in (200, 502)
    assert response.status == 502 or response.body == b"b" * 64


def test_endless_interim_responses_do_not_hold_a_request_for_ever(stand):
    def script(wire):
        wire.read_request()
        while True:
            wire.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            time.sleep(0.02)

    backend = stand.backend(script)
    stand.proxy(backend, group={"timeouts": {"response_ms": 700}})
    client = stand.client()
    client.request()
    response = client.read_response()
    assert response.status in (502, 504)
