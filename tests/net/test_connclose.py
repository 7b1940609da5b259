# SPDX-License-Identifier: Apache-2.0
"""The Connection field: what is for one hop stays on that hop."""
import pytest

from harness.backend import replying, text_response


def test_C_037_hop_by_hop_fields_are_removed(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\n"
                b"Connection: close, X-Drop-Me, X-Forwarded-For, Host, Content-Length\r\nX-Drop-Me: 1\r\n"
                b"Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nX-Stays: 1\r\n"
                b"Content-Length: 3\r\n\r\nabc")
    response = client.read_response()
    assert response.status == 200
    client.expect_end()
    request = backend.requests[0]
    for gone in ("X-Drop-Me", "Keep-Alive", "Proxy-Connection", "TE"):
        assert request.all(gone) == [], gone
    assert request.get("Host") == "t.example"
    assert request.length == 3 and request.body == b"abc"
    assert request.get("X-Forwarded-For") == "127.0.0.1"
    assert request.get("X-Stays") == "1"
    assert "close" not in request.tokens("Connection")


def test_C_037_te_trailers_may_pass(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    client.request(fields=[("TE", "trailers, deflate;q=0.5"), ("Connection", "TE")])
    client.read_response()
    assert backend.requests[0].get("TE") in (None, "trailers")


def test_hop_by_hop_fields_of_the_answer_are_removed(stand):
    backend = stand.backend(replying(text_response(b"x", fields=[
        ("Connection", "X-Hop, keep-alive"), ("X-Hop", "1"), ("Keep-Alive", "timeout=9"), ("X-End", "stays"),
        ("Proxy-Connection", "keep-alive")])))
    stand.proxy(backend)
    client = stand.client()
    client.request()
    response = client.read_response()
    for gone in ("X-Hop", "Keep-Alive", "Proxy-Connection"):
        assert response.all(gone) == [], gone
    assert response.get("X-End") == "stays"
    client.request()
    assert client.read_response().status == 200


def test_the_clients_close_is_not_the_backends(stand):
    backend = stand.backend()
    stand.proxy(backend)
    for _ in range(3):
        client = stand.client()
        client.request(fields=[("Connection", "close")])
        assert client.read_response().closes
        client.expect_end()
    assert backend.n_connections == 1


def test_the_backends_close_is_not_the_clients(stand):
    backend = stand.backend(replying(text_response(b"x", close=True)))
    stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request()
        assert not client.read_response().closes
    assert backend.n_connections == 3


@pytest.mark.parametrize("fields,stays", [([], False), ([("Connection", "keep-alive")], True)])
def test_http10_clients_keep_their_connection_only_when_they_ask(stand, fields, stays):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    client.request(fields=fields, version="1.0")
    response = client.read_response()
    assert response.body == b"backend"
    if stays:
        assert "keep-alive" in response.tokens("Connection")
        client.request(version="1.0")
        assert client.read_response().status == 200
    client.expect_end()


def test_http10_backends_are_understood(stand):
    def script(wire):
        while wire.read_request() is not None:
            wire.send(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold")
            return

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request()
        response = client.read_response()
        assert response.body == b"old" and response.version == "HTTP/1.1"
