# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 to targets: one connection carries many requests, with flow control, trailers, resets and GOAWAY (A7, A12)."""
import ssl
import threading
import time

import pytest

from harness.h2origin import CANCEL, ENHANCE_YOUR_CALM, PROTOCOL_ERROR, REFUSED, H2Origin
from harness.process import wait_until
from harness.tls import Authority, TlsBackend

CALM = {"outlier": {"consecutive_5xx": 0, "consecutive_gateway_errors": 0, "error_rate_pct": 0}}


@pytest.fixture(name="origin")
def make_origin(stand):
    """A function that starts an origin of the stand."""

    def make(on_request=None, **options):
        origin = H2Origin(on_request, **options)
        stand.backends.append(origin)
        return origin

    return make


def front(stand, targets, listener=None, **group):
    """isobar in front of HTTP/2 targets."""
    return stand.proxy(targets, listener=listener, group={"protocol": "H2C", **CALM, **group})


def target_metric(proxy, name):
    return proxy.metrics().total(name)


def test_a_request_becomes_pseudo_fields_and_nothing_of_the_hop_goes_along(stand, origin):
    target = origin()
    front(stand, target)
    response = stand.ask(target="/a/b?c=d", host="shop.example",
                         fields=[("X-Mixed", "Yes"), ("Keep-Alive", "x"), ("TE", "trailers, gzip"), ("Cookie", "a=1; b=2")])
    assert (response.status, response.body) == (200, b"backend")
    request = target.requests[0]
    assert request.fields[:4] == [(":method", "GET"), (":scheme", "http"), (":authority", "shop.example"),
                                  (":path", "/a/b?c=d")]
    names = [name for name, _ in request.fields]
    assert all(name == name.lower() for name in names)
    assert not {"host", "connection", "keep-alive", "transfer-encoding", "upgrade"} & set(names)
    assert request.get("te") == "trailers" and request.get("cookie") == "a=1; b=2" and request.get("x-mixed") == "Yes"


def test_requests_of_many_clients_share_one_connection(stand, origin):
    together = threading.Barrier(20)

    def answer(stream):
        together.wait(20)
        stream.answer(stream.path.encode())

    target = origin(answer)
    proxy = front(stand, target)
    clients = [stand.client() for _ in range(20)]
    for number, client in enumerate(clients):
        client.request("GET", f"/{number}")
    for number, client in enumerate(clients):
        assert client.read_response().body == b"/%d" % number
    assert target.n_connections == 1
    assert target_metric(proxy, "target_connects_total") == 1


@pytest.mark.parametrize("by", ["ours", "theirs"])
def test_C_067_another_connection_is_opened_when_one_has_its_limit_of_streams(stand, origin, by):
    release = threading.Event()

    def answer(stream):
        release.wait(20)
        stream.answer(b"ok")

    limit = {"limits": {"streams": 4}} if by == "ours" else {}
    target = origin(answer, settings={3: 4} if by == "theirs" else None)
    front(stand, target, **limit)
    first = stand.client()  # theirs is known once their settings came
    first.request()
    wait_until(lambda: len(target.requests) == 1)
    time.sleep(0.1)
    clients = [stand.client() for _ in range(9)]
    for client in clients:
        client.request()
    wait_until(lambda: len(target.requests) == 10)
    assert target.n_connections == 3
    assert max(len(connection.streams) for connection in target.connections) == 4
    release.set()
    for client in [first, *clients]:
        assert client.read_response().status == 200


def test_a_request_waits_when_connections_and_streams_are_used_up(stand, origin):
    release = threading.Event()

    def answer(stream):
        release.wait(20)
        stream.answer(b"ok")

    target = origin(answer)
    front(stand, target, limits={"streams": 1, "connections": 1, "pending_ms": 20000})
    clients = [stand.client() for _ in range(3)]
    for client in clients:
        client.request()
    wait_until(lambda: len(target.requests) == 1)
    time.sleep(0.2)
    assert len(target.requests) == 1
    release.set()
    for client in clients:
        assert client.read_response().status == 200
    assert target.n_connections == 1


@pytest.mark.parametrize("size", [1, 70_000, 1_500_000])
@pytest.mark.parametrize("how", ["length", "chunked"])
def test_a_body_arrives_whole_within_the_windows(stand, origin, size, how):
    body = bytes(range(251)) * (size // 251 + 1)
    body = body[:size]

    def echo(stream):
        stream.answer(stream.read_body())

    target = origin(echo)
    front(stand, target)
    client = stand.client()
    if how == "length":
        client.request("POST", "/", body=body)
    else:
        client.request("POST", "/", [("Transfer-Encoding", "chunked")])
        for at in range(0, size, 10_000):
            piece = body[at:at + 10_000]
            client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
    response = client.read_response("POST")
    assert response.status == 200 and response.body == body
    assert target.requests[0].get("content-length") == (str(size) if how == "length" else None)


def test_C_056_a_smaller_window_in_the_middle_of_a_stream_is_kept_to(stand, origin):
    def answer(stream):
        # python3-h2 takes what is still on its way for an overrun: nothing is when the window is used up
        stream.wait(lambda s: len(s.body) == 65535)
        stream.connection.do(lambda h2c: h2c.update_settings({4: 1000}))
        stream.wait(lambda s: s.connection.is_settled)
        stream.give_credit()
        stream.answer(b"%d" % len(stream.read_body()))

    target = origin(answer, takes_body=False)
    front(stand, target)
    response = stand.ask("POST", body=b"x" * 400_000)
    assert (response.status, response.body) == (200, b"400000")


def test_a_target_that_gives_no_credit_stops_the_client_and_nothing_grows(stand, origin):
    gate = threading.Event()

    def answer(stream):
        gate.wait(30)
        stream.give_credit()
        stream.answer(b"%d" % len(stream.read_body()))

    target = origin(answer, takes_body=False)
    front(stand, target)
    client, size = stand.client(), 12_000_000
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size)
    sent = 0
    client.sock.settimeout(1)
    try:
        while sent < size:
            sent += client.sock.send(b"x" * 65536)
    except TimeoutError:
        pass
    assert 65535 <= sent < size, "the client is not stopped"
    assert len(target.requests[0].body) == 65535
    client.sock.settimeout(60)
    gate.set()
    while sent < size:
        sent += client.sock.send(b"x" * min(65536, size - sent))
    assert client.read_response("POST").body == b"%d" % size


def test_a_client_that_does_not_read_stops_its_stream_and_no_other(stand, origin):
    def answer(stream):
        stream.answer(b"y" * (20_000_000 if stream.path == "/long" else 3))

    target = origin(answer)
    front(stand, target)
    slow = stand.client()
    slow.request("GET", "/long")
    wait_until(lambda: len(target.requests) == 1)
    time.sleep(0.3)
    for _ in range(20):
        assert stand.ask(target="/short").body == b"yyy"
    assert target.n_connections == 1
    assert len(slow.read_response().body) == 20_000_000


def test_C_016_trailers_pass_both_ways(stand, origin):
    def answer(stream):
        stream.read_body()
        stream.answer(b"body", trailers=[("x-sum", "77")])

    target = origin(answer)
    front(stand, target)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Req: 5\r\n\r\n")
    response = client.read_response("POST")
    assert response.body == b"body" and ("x-sum", "77") in [(n.lower(), v) for n, v in response.trailers]
    assert target.requests[0].body == b"abc" and (b"x-req", b"5") in target.requests[0].trailers


def test_C_016_trailers_of_a_body_that_waited_for_its_connection(stand, origin):
    target = origin()
    front(stand, target)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Req: 5\r\n\r\n")
    assert client.read_response("POST").status == 200
    assert target.requests[0].body == b"abc" and (b"x-req", b"5") in target.requests[0].trailers


def test_C_023_interim_answers_pass(stand, origin):
    def answer(stream):
        stream.head(103, [("link", "</a.css>")])
        stream.head(100)
        stream.answer(stream.read_body())

    front(stand, origin(answer))
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    hints, go_on = client.read_response_head(), client.read_response_head()
    assert (hints.status, hints.get("Link"), go_on.status) == (103, "</a.css>", 100)
    client.send(b"abc")
    assert client.read_response("POST").body == b"abc"


@pytest.mark.parametrize("status, method", [(204, "GET"), (304, "GET"), (200, "HEAD")])
def test_C_026_answers_without_a_body(stand, origin, status, method):
    target = origin(lambda stream: stream.head(status, [("content-length", "512")] if status != 204 else [], end=True))
    front(stand, target)
    client = stand.client()
    for _ in range(2):
        client.request(method)
        response = client.read_response(method)
        assert response.status == status and response.body == b""
        if status != 204:
            assert response.get("Content-Length") == "512"


def test_an_empty_answer_says_so_to_HTTP1(stand, origin):
    front(stand, origin(lambda stream: stream.head(200, end=True)))
    client = stand.client()
    for _ in range(2):
        client.request()
        assert client.read_response().body == b""


def test_C_054_an_answer_before_the_end_of_an_upload_arrives(stand, origin):
    target = origin(lambda stream: (stream.answer(b"too much", 413), stream.reset(0)))
    front(stand, target)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n" + b"x" * 100)
    response = client.read_response("POST")
    assert (response.status, response.body) == (413, b"too much")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refused_stream_is_tried_elsewhere_with_its_body(stand, origin, method):
    bad, good = origin(lambda stream: stream.reset(REFUSED), name="bad"), origin(name="good")
    proxy = front(stand, [bad, good])
    for _ in range(4):
        response = stand.ask(method, body=b"abc" if method == "POST" else None)
        assert response.body == b"good"
    assert len(bad.requests) >= 1
    assert all(request.body == (b"abc" if method == "POST" else b"") for request in good.requests)
    assert proxy.metrics().total("target_group_retries_total") == len(bad.requests)


def test_a_refused_stream_is_not_tried_again_when_the_configuration_says_so(stand, origin):
    bad, good = origin(lambda stream: stream.reset(REFUSED), name="bad"), origin(name="good")
    front(stand, [bad, good], retry={"on": ["connect_failure"]})
    assert sorted(stand.ask().status for _ in range(2)) == [200, 503]


@pytest.mark.parametrize("method, status", [("GET", 200), ("POST", 502)])
def test_a_reset_stream_is_a_gateway_error_and_only_what_may_be_repeated_is(stand, origin, method, status):
    bad, good = origin(lambda stream: stream.reset(CANCEL), name="bad"), origin(name="good")
    front(stand, [bad, good])
    statuses = [stand.ask(method, body=b"abc" if method == "POST" else None).status for _ in range(2)]
    assert sorted(statuses) == sorted([200, status])


def test_a_reset_in_the_middle_of_an_answer_cuts_the_client_off_and_no_other_stream(stand, origin):
    release, is_half_there = threading.Event(), threading.Event()

    def answer(stream):
        stream.head(200, [("content-length", "10")])
        stream.send(b"half")
        if stream.path == "/cut":
            is_half_there.wait(20)
            stream.reset(CANCEL)
        else:
            release.wait(20)
            stream.send(b"123456", end=True)

    target = origin(answer)
    front(stand, target)
    whole, cut = stand.client(), stand.client()
    whole.request("GET", "/whole")
    cut.request("GET", "/cut")
    assert cut.read_response_head().length == 10
    is_half_there.set()
    assert cut.read_to_end() in (b"", b"half")
    release.set()
    assert whole.read_response().body == b"half123456"
    assert target.n_connections == 1


def test_streams_behind_the_last_one_of_a_goaway_go_elsewhere_and_the_others_end_in_order(stand, origin):
    release = threading.Event()

    def leave(stream):
        if stream.number == 1:
            stream.wait(lambda s: len(s.connection.streams) == 3, 20)
            stream.connection.goaway(last=1)
            release.wait(20)
            stream.answer(b"last")

    leaving, good = origin(leave, name="leaving"), origin(name="good")
    front(stand, [leaving, good])
    clients = [stand.client() for _ in range(6)]
    for client in clients:
        client.request("POST", "/", body=b"abc")
    time.sleep(0.5)
    release.set()
    bodies = sorted(client.read_response("POST").body for client in clients)
    assert bodies == [b"good"] * 5 + [b"last"]


def test_a_new_connection_is_opened_after_a_goaway(stand, origin):
    def leave(stream):
        stream.answer(b"ok")
        stream.connection.goaway()

    target = origin(leave)
    front(stand, target)
    for _ in range(3):
        assert stand.ask().body == b"ok"
        time.sleep(0.1)
    assert target.n_connections == 3


def test_a_connection_that_breaks_is_replaced_for_what_may_be_repeated(stand, origin):
    def answer(stream):
        if len(target.requests) == 2:
            stream.connection.close()
        else:
            stream.answer(b"ok")

    target = origin(answer)
    front(stand, target, retry={"attempts": 1})
    client = stand.client()
    for _ in range(3):
        client.request()
        assert client.read_response().body == b"ok"
    assert target.n_connections == 2


def test_an_answer_that_came_whole_survives_its_connection(stand, origin):
    size = 200_000

    def answer(stream):
        stream.answer(b"z" * size)
        time.sleep(0.3)
        stream.connection.close()

    front(stand, origin(answer))
    slow = stand.client()
    slow.request()
    time.sleep(1)
    assert len(slow.read_response().body) == size


BAD_HEADS = {
    "no status": [("x", "y")],
    "two statuses": [(":status", "200"), (":status", "200")],
    "a status of two digits": [(":status", "20")],
    "a status that switches protocols": [(":status", "101")],
    "a pseudo field of requests": [(":status", "200"), (":path", "/")],
    "a pseudo field behind others": [("a", "b"), (":status", "200")],
    "an upper case name": [(":status", "200"), ("X-Upper", "1")],
    "a field of the connection": [(":status", "200"), ("connection", "close")],
    "a transfer coding": [(":status", "200"), ("transfer-encoding", "chunked")],
    "a line end in a value": [(":status", "200"), ("x", "a\r\nb: c")],
    "two lengths": [(":status", "200"), ("content-length", "2"), ("content-length", "3")],
    "a length that is no number": [(":status", "200"), ("content-length", "2x")],
}


@pytest.mark.parametrize("head", BAD_HEADS.values(), ids=[name.replace(" ", "-") for name in BAD_HEADS])
def test_C_062_a_malformed_head_is_502_and_the_connection_lives_on(stand, origin, head):
    def answer(stream):
        if stream.path == "/good":
            stream.answer(b"ok")
            return
        stream.connection.do(lambda h2c: h2c.send_headers(stream.number, head))
        stream.send(b"ok", end=True)

    target = origin(answer)
    proxy = front(stand, target)
    assert stand.ask(target="/bad").status == 502
    assert stand.ask(target="/good").body == b"ok"
    assert proxy.metrics().total("target_bad_responses_total") == 1


@pytest.mark.parametrize("announced", [1, 5])
def test_a_length_that_is_not_the_bodys_is_never_passed_as_whole(stand, origin, announced):
    def answer(stream):
        stream.head(200, [("content-length", str(announced))])
        stream.send(b"abc", end=True)

    front(stand, origin(answer))
    client = stand.client()
    client.request()
    data = client.read_to_end()
    head, body = data.split(b"\r\n\r\n", 1)
    assert b" 502 " in head or len(body) < announced


def test_a_protocol_error_of_the_target_ends_its_connection_and_requests_fail(stand, origin):
    def answer(stream):
        stream.connection.send_raw(b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00")  # a WINDOW_UPDATE of 0

    target = origin(answer)
    front(stand, target, retry={"attempts": 1})
    assert stand.ask("POST", body=b"x").status == 502
    wait_until(lambda: target.connections[0].goaway_code == PROTOCOL_ERROR)


def test_a_target_without_an_answer_times_out_and_its_stream_is_reset(stand, origin):
    target = origin(lambda stream: None)
    proxy = front(stand, target, timeouts={"response_ms": 200})
    assert stand.ask().status == 504
    assert target.requests[0].wait(lambda stream: stream.reset_code == CANCEL)
    assert proxy.metrics().total("target_response_timeouts_total") == 1


def test_a_client_that_goes_away_resets_its_stream(stand, origin):
    target = origin(lambda stream: stream.answer(b"ok") if stream.path == "/first" else None)
    front(stand, target)
    client = stand.client()
    client.request("GET", "/first")
    client.read_response()
    client.request("GET", "/second")
    wait_until(lambda: len(target.requests) == 2)
    client.reset()
    assert target.requests[1].wait(lambda stream: stream.reset_code == CANCEL)


def test_an_idle_connection_ends_after_its_time_with_a_goaway(stand, origin):
    target = origin()
    front(stand, target, timeouts={"idle_ms": 200})
    stand.ask()
    wait_until(lambda: target.connections[0].goaway_code == 0)
    wait_until(lambda: target.connections[0].is_closed)
    assert stand.ask().status == 200


def test_a_reload_without_the_target_ends_its_connection(stand, origin):
    first, second = origin(name="first"), origin(name="second")
    proxy = front(stand, first)
    assert stand.ask().body == b"first"
    config = proxy.config
    config["target_groups"][0]["targets"] = [second.target]
    proxy.reload(config)
    wait_until(lambda: first.connections[0].is_closed)
    assert stand.ask().body == b"second"


def test_a_flood_of_pings_without_reading_is_given_up(stand, origin):
    def answer(stream):
        for _ in range(20):
            stream.connection.send_raw((b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + b"12345678") * 1000)

    target = origin(answer)
    front(stand, target, retry={"attempts": 1}, timeouts={"response_ms": 5000})
    assert stand.ask("POST", body=b"x").status in (502, 504)


def test_a_refused_connection_is_tried_elsewhere(stand, origin):
    dead, good = origin(name="dead"), origin(name="good")
    dead.stop()
    front(stand, [dead, good])
    assert [stand.ask("POST", body=b"x").body for _ in range(4)] == [b"good"] * 4


def test_C_063_a_rewritten_host_is_the_authority(stand, origin):
    target = origin()
    rule = {"match": {"path_prefix": "/"}, "forward": [{"target_group": "web", "weight": 1}],
            "rewrite": {"host": "inner.example"}}
    front(stand, target, listener={"rules": [rule]})
    stand.ask(host="outer.example")
    assert target.requests[0].get(":authority") == "inner.example"
    assert target.requests[0].get("host") is None


def test_enhance_your_calm_is_no_end_of_the_world(stand, origin):
    def answer(stream):
        if len(target.connections) == 1:
            stream.connection.goaway(last=0, code=ENHANCE_YOUR_CALM)
        else:
            stream.answer(b"ok")

    target = origin(answer)
    front(stand, target)
    assert stand.ask("POST", body=b"x").body == b"ok"


@pytest.mark.parametrize("warm", [False, True], ids=["new", "shared"])
def test_a_head_with_many_long_names_in_upper_case_passes(stand, origin, warm):
    target = origin()
    front(stand, target, listener={"limits": {"header_bytes": 60_000}})
    if warm:
        stand.ask()
    fields = [(f"X-UPPER-{number:03}-" + "N" * 140, "v") for number in range(90)]
    assert stand.ask(fields=fields).status == 200
    assert target.requests[-1].get("x-upper-089-" + "n" * 140) == "v"


@pytest.mark.parametrize("warm", [False, True], ids=["new", "shared"])
def test_a_head_that_cannot_be_sent_on_with_our_fields_is_431_and_no_fault_of_the_target(stand, origin, warm):
    target = origin()
    proxy = front(stand, target, listener={"limits": {"header_bytes": 60_000, "headers": 256}})
    if warm:
        stand.ask()
    for _ in range(3):
        assert stand.ask(fields=[(f"x-{number}", "v") for number in range(253)]).status == 431
    assert stand.ask().status == 200
    assert proxy.metrics().total("target_resets_total") == 0


# TLS


@pytest.fixture(name="ca", scope="module")
def make_ca(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("ca"))
    authority.certificate = authority.issue("target", "t.example", "127.0.0.1")
    return authority


def server_context(ca, *alpn):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca.certificate["cert_file"], ca.certificate["key_file"])
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def over_tls(ca, *alpn, **group):
    return {"protocol": "HTTPS", "tls": {"ca_file": ca.file, "sni": "t.example", "alpn": list(alpn)}, **CALM, **group}


def test_A7_a_target_that_chooses_h2_gets_streams_of_one_connection(stand, origin, ca):
    together = threading.Barrier(8)

    def answer(stream):
        together.wait(20)
        stream.answer(stream.read_body())

    target = origin(answer, context=server_context(ca, "h2", "http/1.1"))
    stand.proxy(target, group=over_tls(ca, "h2", "http/1.1"))
    clients = [stand.client() for _ in range(8)]
    for number, client in enumerate(clients):
        client.request("POST", body=b"%d" % number * 30_000)
    for number, client in enumerate(clients):
        assert client.read_response("POST").body == b"%d" % number * 30_000
    assert target.n_connections == 1
    assert target.requests[0].get(":scheme") == "http", "what the client used"


@pytest.mark.parametrize("alpn", [("http/1.1",), ()], ids=["http1.1", "none"])
def test_A7_a_target_that_does_not_choose_h2_gets_HTTP1(stand, ca, alpn):
    target = TlsBackend(ca.certificate, name="old")
    if alpn:
        target.context.set_alpn_protocols(list(alpn))
    stand.backends.append(target)
    stand.proxy(target, group=over_tls(ca, "h2", "http/1.1"))
    clients = [stand.client() for _ in range(6)]
    for client in clients:  # some of them wait for one handshake
        client.request("POST", body=b"abc")
    for client in clients:
        assert client.read_response("POST").body == b"old"
    for _ in range(3):
        assert stand.ask("POST", body=b"abc").body == b"old"
    assert [request.body for request in target.requests] == [b"abc"] * 9


def test_A7_a_target_that_must_speak_h2_and_does_not_is_502(stand, ca):
    target = TlsBackend(ca.certificate)
    target.context.set_alpn_protocols(["http/1.1"])
    stand.backends.append(target)
    proxy = stand.proxy(target, group=over_tls(ca, "h2"))
    assert stand.ask().status == 502
    assert proxy.metrics().total("target_tls_errors_total") >= 1
    assert not target.requests


def test_A7_a_target_that_learns_h2_is_taken_at_its_word(stand, origin, ca):
    old = TlsBackend(ca.certificate, name="old")
    stand.backends.append(old)
    stand.proxy(old, group=over_tls(ca, "h2", "http/1.1", timeouts={"idle_ms": 50}))
    assert stand.ask().body == b"old"
    old.stop()
    origin(name="new", context=server_context(ca, "h2"), port=old.port)
    wait_until(lambda: stand.ask("POST", body=b"abc").body == b"new")


def test_A7_a_certificate_that_is_not_the_one_expected_gets_nothing(stand, origin, ca, tmp_path):
    other = Authority(tmp_path)
    target = origin(context=server_context(ca, "h2"))
    stand.proxy(target, group={**over_tls(ca, "h2"), "tls": {"ca_file": other.file, "alpn": ["h2"]}})
    assert stand.ask().status == 502
    assert not target.requests
    target.errors.clear()  # our refusal of its certificate


def test_shared_connections_cannot_be_announced(stand, origin):
    config = stand.config(origin(), group={"protocol": "H2C", "proxy_protocol": "v2"})
    proxy = stand.serve(config, ready=False)
    proxy.process.wait(20)
    assert "/target_groups/0/proxy_protocol" in proxy.stderr
