# SPDX-License-Identifier: Apache-2.0
"""Responses without a body: HEAD, 204, 304."""
import pytest

from harness.backend import replying


@pytest.mark.parametrize("method,head", [
    ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("GET", b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
])
def test_C_024_transfer_encoding_without_a_body_waits_for_nothing(stand, method, head):
    backend = stand.backend(replying(head))
    stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request(method)
        response = client.read_response(method)
        assert response.status == int(head.split()[1])
        assert response.get("Transfer-Encoding") in (None, "chunked")
    assert backend.n_connections == 1


@pytest.mark.parametrize("method,status,length", [
    ("GET", "304 Not Modified", 512), ("GET", "304 Not Modified", None), ("HEAD", "200 OK", 512), ("HEAD", "200 OK", None),
    ("HEAD", "404 Not Found", 0)])
def test_C_025_content_length_is_metadata(stand, method, status, length):
    line = "" if length is None else f"Content-Length: {length}\r\n"
    backend = stand.backend(replying(f"HTTP/1.1 {status}\r\nETag: \"e\"\r\n{line}\r\n".encode()))
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request(method)
        response = client.read_response(method)
        assert response.length == length
        assert response.get("Transfer-Encoding") is None
        assert response.get("ETag") == '"e"'
    assert backend.n_connections == 1


def test_204_ends_with_its_head(stand):
    backend = stand.backend(replying(b"HTTP/1.1 204 No Content\r\n\r\n"))
    stand.proxy(backend)
    client = stand.client()
    for method in ("GET", "DELETE", "OPTIONS"):
        client.request(method)
        response = client.read_response(method)
        assert response.status == 204 and response.length is None and not response.is_chunked
    assert backend.n_connections == 1


def test_bytes_behind_a_bodyless_response_reach_nobody(stand):
    backend = stand.backend(replying(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nextra"))
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request()
        assert client.read_response().status in (204, 502)
    assert b"extra" not in client.seen


def test_a_response_that_ends_with_its_connection_arrives_whole(stand):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 300000)

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request()
        response = client.read_response()
        assert response.body == b"z" * 300000
        if response.closes or not response.is_chunked:
            client = stand.client()
    client = stand.client()
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    response = client.read_response()
    assert response.body == b"z" * 300000 and not response.is_chunked
