# SPDX-License-Identifier: Apache-2.0
"""Large heads, both ways."""
import pytest

from harness.backend import text_response
from harness.judge import first_response

SIZES = [3900, 4100, 8300, 15 * 1024, 31 * 1024]


def cookies(size, many):
    if not many:
        return [("Set-Cookie", "c=" + "v" * (size - 100))]
    return [("Set-Cookie", f"c{n}=" + "v" * 480) for n in range(size // 500)]


@pytest.mark.parametrize("many", [False, True], ids=["one-field", "many-fields"])
def test_C_039_large_response_heads_arrive_intact(stand, many):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"body", fields=cookies(int(request.target[1:]), many))
    stand.proxy(backend)
    client = stand.client()
    for size in SIZES:
        client.request(target=f"/{size}")
        response = client.read_response()
        assert response.status == 200 and response.body == b"body", size
        assert response.all("Set-Cookie") == [value for _, value in cookies(size, many)]
    assert backend.n_connections == 1


@pytest.mark.parametrize("many", [False, True], ids=["one-field", "many-fields"])
def test_C_039_beyond_the_limit_it_is_502_with_a_reason(stand, many):
    backend = stand.backend()
    backend.answer = lambda request: text_response(
        b"body", fields=cookies(int(request.target[1:]) if request.target[1:].isdigit() else 0, many))
    proxy = stand.proxy(backend, access_log={"file": stand.folder + "/access.log", "format": "{status} {reason}"})
    bystander = stand.client()
    for size in (140 * 1024, 400 * 1024):
        assert stand.ask(target=f"/{size}").status == 502
        bystander.request(target="/200")
        assert bystander.read_response().status == 200
    assert proxy.metrics().total("target_bad_responses_total") == 2


def request_with(size, many):
    fields = ([b"X-Big: " + b"v" * size + b"\r\n"] if not many else
              [b"X-%d: " % n + b"v" * 200 + b"\r\n" for n in range(size // 207)])
    return b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n" + b"".join(fields) + b"\r\n"


def test_large_request_heads_pass_up_to_the_limit(stand):
    backend = stand.backend()
    stand.proxy(backend)
    for size in (7000, 15000, 30000):
        assert first_response(stand.exchange(request_with(size, False))).status == 200
        assert backend.requests[-1].get("X-Big") == "v" * size


def test_a_request_head_beyond_the_limit_is_431(stand):
    backend = stand.backend()
    stand.proxy(backend)
    for data in (request_with(40000, False), request_with(200000, False), request_with(40000, True)):
        assert first_response(stand.exchange(data)).status == 431
    assert backend.raw == b""


def test_too_many_fields_are_431(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"limits": {"headers": 20}})
    few = b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n" + b"A: 1\r\n" * 18 + b"\r\n"
    many = b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n" + b"A: 1\r\n" * 19 + b"\r\n"
    assert first_response(stand.exchange(few)).status == 200
    assert first_response(stand.exchange(many)).status == 431


def test_a_target_beyond_the_limit_is_414(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"limits": {"uri_bytes": 1000}})
    for length, status in ((1000, 200), (1001, 414), (30000, 414)):
        data = b"GET /" + b"u" * (length - 1) + b" HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n"
        assert first_response(stand.exchange(data)).status == status, length
