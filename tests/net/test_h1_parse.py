# SPDX-License-Identifier: Apache-2.0
"""HTTP/1 parsing and smuggling: what two recipients could read differently never reaches a backend."""
import time

from harness.backend import text_response
from harness.judge import all_refused, first_response, n_responses

HOST = b"Host: t.example\r\n"


def post(fields, body=b"abcd", target=b"/cl"):
    return b"POST " + target + b" HTTP/1.1\r\n" + HOST + fields + b"\r\n" + body


def get(fields=b"", start=b"GET / HTTP/1.1"):
    return start + b"\r\n" + HOST + fields + b"\r\n"


def test_C_001_malformed_content_length(stand):
    backend = stand.backend()
    stand.proxy(backend)
    values = [b"", b"+4", b"0x4", b"4a", b"-1", b"4,", b"4, 5", b"18446744073709551620", b"4 4", b"4.0", b"\x0b4", b"4;"]
    requests = [post(b"Content-Length: " + value + b"\r\n") for value in values]
    requests.append(post(b"Content-Length: 4\r\nContent-Length: 5\r\n"))
    requests.append(post(b"Content-Length:\r\nContent-Length: 4\r\n"))
    all_refused(stand, backend, requests)


def test_C_001_equal_lengths_are_one_length_or_refused(stand):
    backend = stand.backend()
    stand.proxy(backend)
    for fields in (b"Content-Length: 4, 4\r\n", b"Content-Length: 4\r\nContent-Length: 4\r\n"):
        response = first_response(stand.exchange(post(fields + b"Connection: close\r\n")))
        assert response.status in (200, 400)
        if response.status == 200:
            assert backend.requests[-1].length == 4 and backend.requests[-1].body == b"abcd"
        else:
            assert backend.raw == b""


def test_C_002_content_length_with_transfer_encoding(stand):
    backend = stand.backend()
    stand.proxy(backend)
    ghost = b"0\r\n\r\nGET /ghost HTTP/1.1\r\nHost: t.example\r\n\r\n"
    length = b"Content-Length: %d\r\n" % len(ghost)
    coding = b"Transfer-Encoding: chunked\r\n"
    for fields in (length + coding, coding + length):
        answer = stand.exchange(post(fields, ghost))
        assert first_response(answer).status in (200, 400)
        assert n_responses(answer) == 1
    assert b"ghost" not in backend.raw
    assert all(request.length is None for request in backend.requests)


def test_C_002_transfer_encoding_that_is_not_exactly_chunked(stand):
    backend = stand.backend()
    stand.proxy(backend)
    body = b"4\r\nabcd\r\n0\r\n\r\n"
    codings = [b"chunked, chunked", b"chunked, identity", b"identity, chunked", b"xchunked", b"chunked;q=1", b"\x0bchunked",
               b"chunked\x00", b"'chunked'", b"chunke\xc4\x8f", b"", b",chunked,gzip", b"identity"]
    requests = [post(b"Transfer-Encoding: " + coding + b"\r\n", body) for coding in codings]
    requests.append(post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", body))
    requests.append(post(b"Transfer-Encoding : chunked\r\n", body))
    requests.append(post(b"Transfer-Encoding:\r\n chunked\r\n", body))
    requests.append(b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + body)
    all_refused(stand, backend, requests, statuses=(400, 501))


def test_C_002_gzip_before_chunked_is_not_understood(stand):
    backend = stand.backend()
    stand.proxy(backend)
    all_refused(stand, backend, [post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n")], statuses=(501, 400))


def test_C_004_white_space_and_controls_around_field_names(stand):
    backend = stand.backend()
    stand.proxy(backend)
    all_refused(stand, backend, [
        post(b"Content-Length : 3\r\n", b"abc"),
        b"GET / HTTP/1.1\r\n Host: a.example\r\nHost: t.example\r\n\r\n",
        get(b"X-A\t: 1\r\n"),
        get(b"X-A: 1\x002\r\n"),
        get(b"X-\x85A: 1\r\n"),
        get(b"no colon in this line\r\n"),
        get(b"X-B: 1\rY: 2\r\n"),
        get(b"X-C: 1\r\n 2\r\n"),
        get(b"X D: 1\r\n"),
        get(b": no name\r\n"),
        get(b"X-E: a\x0bb\r\n"),
        get(b"X-F: a\x7fb\r\n"),
        get(b"X(G): 1\r\n"),
        get(b"X-H: 1\nX-I: 2\r\n"),
    ])


def test_C_004_bare_line_feeds_end_no_line(stand):
    backend = stand.backend()
    stand.proxy(backend)
    all_refused(stand, backend, [
        b"GET / HTTP/1.1\nHost: t.example\n\n",
        b"GET / HTTP/1.1\r\nHost: t.example\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t.example\r\n\n" + b"GET / HTTP/1.1\r\n\r\n",
    ])


def test_request_lines_outside_the_grammar_are_refused(stand):
    backend = stand.backend()
    stand.proxy(backend)
    starts = [b"GET  / HTTP/1.1", b"GET /  HTTP/1.1", b" GET / HTTP/1.1", b"GET / HTTP/1.1 ", b"GET\t/ HTTP/1.1", b"GET /",
              b"GET / http/1.1", b"GET / HTTP/1.10", b"GET / HTTP/11", b"GET / HTTP /1.1", b"G\x00T / HTTP/1.1",
              b"GET /a b HTTP/1.1", b"GET /a\x7f HTTP/1.1", b"GET /a\x01 HTTP/1.1", b"GET relative HTTP/1.1",
              b"GET http:///x HTTP/1.1", b"(GET) / HTTP/1.1", b"GET / HTTP/1.1\rX: y"]
    all_refused(stand, backend, [get(start=start) for start in starts])
    all_refused(stand, backend, [get(start=b"GET / HTTP/2.0"), get(start=b"GET / HTTP/0.9"), get(start=b"GET / HTTP/3.0")],
                statuses=(400, 505))


def test_C_007_host_must_be_there_once_and_valid(stand):
    backend = stand.backend()
    stand.proxy(backend)
    all_refused(stand, backend, [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t.example\r\nHost: t.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t.example\r\nHost: u.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t.example/x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: user@t.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t.example, u.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t.example:8a\r\n\r\n",
    ])


def test_C_007_doubtful_hosts_reach_the_default_or_nobody(stand):
    default, other = stand.backends_named("default", "other")
    config = stand.config(default)
    config["target_groups"].append({**config["target_groups"][0], "name": "other", "targets": [other.target]})
    config["load_balancers"][0]["listeners"][0]["rules"] = [
        {"match": {"host": "t.example"}, "forward": [{"target_group": "other", "weight": 1}]}]
    stand.serve(config)
    for host in (b"t.example:99999", b""):
        response = first_response(stand.exchange(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"))
        assert response.status in (200, 400)
        if response.status == 200 and host == b"":
            assert response.get("X-Backend") == "default"
    response = first_response(stand.exchange(b"GET / HTTP/1.0\r\n\r\n"))
    assert response.status == 200 and response.get("X-Backend") == "default"


def test_C_009_a_body_on_get_travels_with_its_framing(stand):
    backend = stand.backend()
    stand.proxy(backend)
    body = b"GET /ghost HTTP/1.1\r\nA: b\r\n"
    client = stand.client()
    for fields, sent in (
            (b"Content-Length: %d\r\n" % len(body), body),
            (b"Transfer-Encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))):
        for method in (b"GET", b"DELETE", b"OPTIONS"):
            client.send(get(fields, start=method + b" /g HTTP/1.1") + sent)
            response = client.read_response(method.decode())
            if response.status in (400, 411):
                client = stand.client()
                continue
            assert response.status == 200
            assert backend.requests[-1].method == method.decode() and backend.requests[-1].body == body
    client.send(get(b"Content-Length: %d\r\n" % len(body), start=b"HEAD /g HTTP/1.1") + body)
    assert client.read_response("HEAD").status == 200
    assert backend.requests[-1].body == body
    assert all(request.target == "/g" for request in backend.requests)


def test_C_009_a_backend_that_answers_before_the_body_is_not_reused(stand):
    def script(wire):
        while wire.read_request(body=False) is not None:
            wire.send(text_response(b"early"))
            # What follows is the body, which this backend would read as the next request.

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    client.send(get(b"Content-Length: 40\r\n", start=b"GET /g HTTP/1.1") + b"half of the body....")
    response = client.read_response()
    assert response.body == b"early"
    client.close()
    assert stand.ask(target="/next").status == 200
    targets = [request.target for request in backend.requests]
    assert targets == ["/g", "/next"]
    assert backend.n_connections == 2


def test_C_010_pipelined_answers_come_in_order(stand):
    def slow_first(request):
        if request.target == "/1":
            time.sleep(0.3)
        return text_response(request.target.encode())

    backend = stand.backend()
    backend.answer = slow_first
    stand.proxy(backend)
    client = stand.client()
    client.send(b"".join(get(start=b"GET /%d HTTP/1.1" % n) for n in (1, 2, 3)))
    for n in (b"/1", b"/2", b"/3"):
        assert client.read_response().body == n
    client.send(post(b"Content-Length: 10\r\n", b"01234", b"/1"))
    time.sleep(0.05)
    client.send(b"56789" + get(start=b"GET /2 HTTP/1.1") + get(start=b"GET /3 HTTP/1.1"))
    for n in (b"/1", b"/2", b"/3"):
        assert client.read_response().body == n
    posted = [request for request in backend.requests if request.method == "POST"]
    assert [request.body for request in posted] == [b"0123456789"]
    assert len(backend.requests) == 6


def test_C_010_a_long_pipeline_is_answered_whole(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(request.target.encode() * 50)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"".join(get(start=b"GET /%d HTTP/1.1" % n) for n in range(500)))
    for n in range(500):
        assert client.read_response().body == b"/%d" % n * 50


def test_C_011_empty_lines_before_a_request_are_ignored(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    client.send(b"\r\n" + get())
    assert client.read_response().status == 200
    client.send(post(b"Content-Length: 4\r\n") + b"\r\n" + get(start=b"GET /second HTTP/1.1"))
    assert client.read_response().status == 200
    assert client.read_response().status == 200
    assert [request.target for request in backend.requests] == ["/", "/cl", "/second"]


def test_C_011_surplus_bytes_of_a_backend_end_its_connection(stand):
    def script(wire):
        while wire.read_request() is not None:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n")

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request()
        response = client.read_response()
        assert response.status == 200 and response.body == b""
    assert backend.n_connections == 3


def test_a_backend_cannot_answer_the_next_request_in_advance(stand):
    def script(wire):
        while wire.read_request() is not None:
            wire.send(text_response(b"mine") + text_response(b"forged"))

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    for _ in range(3):
        client.request()
        assert client.read_response().body == b"mine"


def test_absolute_form_is_forwarded_with_its_own_host(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    client.send(b"GET http://abs.example/x?y=1 HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert client.read_response().status == 200
    request = backend.requests[-1]
    assert request.target == "/x?y=1" and request.get("Host") == "abs.example"
    client.send(b"OPTIONS * HTTP/1.1\r\nHost: t.example\r\n\r\n")
    assert client.read_response().status == 200
    assert backend.requests[-1].target == "*"


def test_connect_is_not_forwarded(stand):
    backend = stand.backend()
    stand.proxy(backend)
    all_refused(stand, backend, [b"CONNECT t.example:443 HTTP/1.1\r\nHost: t.example:443\r\n\r\n"], statuses=(400, 405, 501))


def test_the_head_may_come_byte_by_byte(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    for byte in post(b"Content-Length: 4\r\nX-Piece: meal\r\n"):
        client.send(bytes([byte]))
        time.sleep(0.001)
    assert client.read_response().status == 200
    assert backend.requests[-1].get("X-Piece") == "meal" and backend.requests[-1].body == b"abcd"


def test_field_values_pass_unchanged(stand):
    backend = stand.backend()
    stand.proxy(backend)
    value = bytes([9, 32, *range(0x21, 0x7f), *range(0x80, 0x100)]).strip(b"\t ")
    client = stand.client()
    client.send(get(b"X-All: \t " + value + b" \t\r\nX-Empty:\r\nx-CaSe: Kept\r\n"))
    assert client.read_response().status == 200
    request = backend.requests[-1]
    assert request.get("X-All") == value.decode("latin-1")
    assert request.get("X-Empty") == ""
    assert ("x-CaSe", "Kept") in request.fields
