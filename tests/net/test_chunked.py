# SPDX-License-Identifier: Apache-2.0
"""Chunked bodies and trailers: decoded strictly, re-emitted cleanly."""
import time

from harness.judge import first_response, n_responses
from harness.wire import Response

HEAD = b"POST /chunked HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n"


def refusals(stand, backend, bodies):
    """Which of the bodies were not answered with 400 and a close, or whose bad bytes reached the backend."""
    wrong = []
    for body, forbidden in bodies:
        before = len(backend.raw)
        answer = stand.exchange(HEAD + body)
        response = first_response(answer)
        seen = backend.raw[before:]
        if response is None or response.status != 400 or n_responses(answer) != 1:
            wrong.append(f"{body[:60]!r}: {answer[:80]!r}")
        elif forbidden in seen.partition(b"\r\n\r\n")[2]:
            wrong.append(f"{body[:60]!r}: the backend got {seen!r}")
        elif b"0\r\n\r\n" in seen.partition(b"\r\n\r\n")[2]:
            wrong.append(f"{body[:60]!r}: the backend was told that the body is complete")
    return wrong


def test_C_012_illegal_chunk_sizes(stand):
    backend = stand.backend()
    stand.proxy(backend)
    lines = [b"2zz", b"0x2", b"+2", b"-2", b"\t2", b" 2", b"2_0", b"", b"fffffffffffffffff2", b"g", b"2\t", b"2\x00", b"2,"]
    bodies = [(line + b"\r\nab\r\n0\r\n\r\n", line + b"\r\nab" if line else b"ab") for line in lines]
    bodies.append((b"2\nab\r\n0\r\n\r\n", b"2\nab"))
    bodies.append((b"2;ext\nab\r\n0\r\n\r\n", b"ext"))
    assert refusals(stand, backend, bodies) == []


def test_C_012_legal_chunk_sizes_are_re_emitted_clean(stand):
    backend = stand.backend()
    stand.proxy(backend)
    for size_line in (b"000000000000000000000002", b"2;name", b"2;name=value", b'2;name="va\\"l"', b"2;a;b=c"):
        response = first_response(stand.exchange(
            HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + size_line + b"\r\nab\r\n0\r\n\r\n"))
        assert response.status == 200, size_line
        assert backend.requests[-1].body == b"ab"
    assert b"name" not in backend.raw and b"0000" not in backend.raw


def test_C_012_an_extension_without_a_name_is_refused_or_dropped(stand):
    backend = stand.backend()
    stand.proxy(backend)
    response = first_response(stand.exchange(
        HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + b"2 ;\r\nab\r\n0\r\n\r\n"))
    assert response.status in (200, 400)
    assert b" ;" not in backend.raw
    if response.status == 200:
        assert backend.requests[-1].body == b"ab"


def test_C_014_chunk_data_must_be_followed_by_crlf(stand):
    backend = stand.backend()
    stand.proxy(backend)
    assert refusals(stand, backend, [
        (b"3\r\nabcXX0\r\n\r\n", b"XX"),
        (b"3\r\nabc\n0\r\n\r\n", b"\n0"),
        (b"3\r\nabc\r\n\r\n0\r\n\r\n", b"\r\n\r\n0"),
        (b"3\r\nabc\r0\r\n\r\n", b"\r0"),
    ]) == []


def test_a_chunked_body_of_any_split_arrives_whole(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    client.send(HEAD)
    body = b"".join(b"%x\r\n%s\r\n" % (n, b"x" * n) for n in range(1, 40)) + b"0\r\n\r\n"
    for at in range(0, len(body), 7):
        client.send(body[at:at + 7])
        if at % 70 == 0:
            time.sleep(0.001)
    assert client.read_response().status == 200
    assert backend.requests[-1].body == b"x" * sum(range(1, 40))


def test_a_large_chunked_answer_arrives_whole(stand):
    piece = bytes(range(256)) * 100

    def script(wire):
        while wire.read_request() is not None:
            wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(100):
                wire.send(b"%x;ignored=yes\r\n" % len(piece) + piece + b"\r\n")
            wire.send(b"0\r\n\r\n")

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request()
        assert client.read_response().body == piece * 100
    assert backend.n_connections == 1


def test_C_016_trailers_survive(stand):
    def script(wire):
        while wire.read_request() is not None:
            wire.send(b"HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"3\r\nabc\r\n0\r\nx-sum: 77\r\n\r\n")

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    client.request(fields=[("TE", "trailers"), ("Connection", "TE")])
    response = client.read_response()
    assert response.body == b"abc"
    assert response.trailers == [("x-sum", "77")]
    client.send(HEAD + b"2\r\nab\r\n0\r\nX-Req-Sum: 5\r\nContent-Length: 9\r\n\r\n")
    assert client.read_response().status == 200
    trailers = backend.requests[-1].trailers
    assert trailers in ([], [("X-Req-Sum", "5")]), "framing fields never travel as trailers"


def test_C_018_an_endless_trailer_section_is_cut(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    before = proxy.rss_kb()
    client = stand.client()
    client.send(HEAD + b"2\r\nab\r\n0\r\n")
    line = b"X-T: " + b"t" * 53 + b"\r\n"
    try:
        for _ in range(50):
            client.send(line * 100)
    except OSError:
        pass
    answer = client.read_to_end()
    if answer:
        assert Response(answer[:answer.index(b"\r\n\r\n") + 4]).status in (400, 431)
    assert len(backend.requests) == 0, "the request never ended"
    assert proxy.rss_kb() - before < 4096


def test_an_http10_client_gets_a_chunked_answer_unchunked(stand):
    def script(wire):
        while wire.read_request() is not None:
            wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"GET / HTTP/1.0\r\nHost: t.example\r\n\r\n")
    response = client.read_response()
    assert response.get("Transfer-Encoding") is None
    assert response.body == b"abcde"
    client.expect_end()
