# SPDX-License-Identifier: Apache-2.0
"""gRPC calls from HTTP/2 clients to HTTP/2 targets: balanced one by one, statuses in trailers or alone, deadlines, failures
of ours as gRPC tells them (A7; C-068 to C-074)."""
import collections
import json
import os
import struct
import threading
import time

import pytest

from harness.h2client import H2Client, request
from harness.h2origin import CANCEL, REFUSED, H2Origin
from harness.process import wait_until
from harness.stand import address_of

CALM = {"outlier": {"consecutive_5xx": 0, "consecutive_gateway_errors": 0, "error_rate_pct": 0}}
GRPC = [("content-type", "application/grpc")]


def message(data):
    """One gRPC message."""
    return struct.pack(">BI", 0, len(data)) + data


def call_fields(path="/echo.Echo/Unary", *fields):
    return request("POST", path, fields=[("te", "trailers"), *GRPC, *fields])


def echo(stream):
    stream.read_body()
    stream.head(200, GRPC)
    stream.send(bytes(stream.body))
    stream.end([("grpc-status", "0"), ("grpc-message", "")])


@pytest.fixture(name="origin")
def make_origin(stand):
    """A function that starts an origin of the stand."""

    def make(on_request=echo, **options):
        origin = H2Origin(on_request, **options)
        stand.backends.append(origin)
        return origin

    return make


@pytest.fixture(name="front")
def make_front(stand):
    """A function that starts isobar in front of gRPC targets, and gives a client of it."""

    def make(targets, listener=None, top=None, **group):
        proxy = stand.proxy(targets, listener=listener, group={"protocol": "GRPC", **CALM, **group}, **(top or {}))
        client = H2Client(address_of(proxy.config))
        stand.clients.append(client)
        return proxy, client

    return make


def status_of(answer):
    """(grpc-status, grpc-message), from the trailers or the head."""
    fields = dict(answer.trailers if answer.trailers is not None else answer.heads[-1])
    return int(fields["grpc-status"]), fields.get("grpc-message")


def test_A7_a_unary_call_keeps_its_messages_and_its_trailers(origin, front):
    target = origin()
    _, client = front(target)
    answer = client.ask(call_fields(), message(b"hello"))
    assert (answer.status, bytes(answer.body)) == (200, message(b"hello"))
    assert answer.trailers is not None and status_of(answer) == (0, "")
    assert answer.get("content-type") == "application/grpc"
    seen = target.requests[0]
    assert (seen.get("te"), seen.get("content-type"), seen.get(":path")) == ("trailers", "application/grpc",
                                                                          "/echo.Echo/Unary")


def test_C_068_an_answer_of_trailers_alone_stays_one_head(tmp_path, origin, front):
    log = tmp_path / "log"
    target = origin(lambda stream: (stream.read_body(),
                                    stream.head(200, [*GRPC, ("grpc-status", "5"), ("grpc-message", "a%20b")], end=True)))
    _, client = front(target, top={"access_log": {"file": str(log)}})
    answer = client.ask(call_fields(), message(b"x"))
    assert (answer.status, status_of(answer), answer.trailers, answer.body) == (200, (5, "a%20b"), None, b"")
    wait_until(lambda: os.path.exists(log) and log.read_text())
    line = json.loads(log.read_text().splitlines()[0])
    assert (line["status"], line["grpc_status"], line["reason"]) == (200, "5", "-")


def test_C_068_a_status_in_trailers_is_logged(tmp_path, origin, front):
    log = tmp_path / "log"
    _, client = front(origin(), top={"access_log": {"file": str(log)}})
    client.ask(call_fields(), message(b"x"))
    wait_until(lambda: os.path.exists(log) and log.read_text())
    assert json.loads(log.read_text().splitlines()[0])["grpc_status"] == "0"


@pytest.mark.parametrize("where", ["trailers", "head"])
def test_C_068_passive_checks_see_the_status_of_calls(origin, front, where):
    def fail(stream):
        stream.read_body()
        if where == "head":
            stream.head(200, [*GRPC, ("grpc-status", "14")], end=True)
        else:
            stream.answer(message(b"half"), fields=GRPC, trailers=[("grpc-status", "13")])

    bad, good = origin(fail, name="bad"), origin(name="good")
    proxy, client = front([bad, good], outlier={"consecutive_5xx": 3, "base_ejection_s": 60},
                          panic_threshold_pct=0)
    for _ in range(6):
        client.ask(call_fields(), message(b"x"))
    wait_until(lambda: proxy.metrics().total("target_ejections_total") == 1)
    before = len(bad.requests)
    assert [status_of(client.ask(call_fields(), message(b"x")))[0] for _ in range(6)] == [0] * 6
    assert len(bad.requests) == before


def test_C_071_no_target_is_unavailable(stand, front):
    _, client = front([])
    answer = client.ask(call_fields(), message(b"x"))
    assert (answer.status, status_of(answer)[0], answer.trailers, answer.body) == (200, 14, None, b"")
    assert answer.get("content-type") == "application/grpc" and status_of(answer)[1]
    assert client.ask(request("POST", "/"), b"x").status == 503


def test_C_071_a_target_that_refuses_connections_is_unavailable(origin, front):
    dead = origin()
    dead.stop()
    _, client = front(dead)
    assert status_of(client.ask(call_fields(), message(b"x")))[0] == 14
    assert client.ask(request("POST", "/"), b"x").status == 502


def test_C_071_a_target_that_is_late_is_a_deadline_exceeded(origin, front):
    _, client = front(origin(lambda stream: None), timeouts={"response_ms": 100})
    assert status_of(client.ask(call_fields(), message(b"x")))[0] == 4
    assert client.ask(request("POST", "/"), b"x").status == 504


def test_C_071_a_body_that_is_too_large_is_resource_exhausted(origin, front):
    _, client = front(origin(), listener={"limits": {"body_bytes": 100}})
    assert status_of(client.ask(call_fields(), message(b"x" * 200)))[0] == 8
    assert client.ask(request("POST", "/"), b"x" * 200).status == 413


def test_C_071_no_route_is_unimplemented(stand, origin):
    rule = {"match": {"path_prefix": "/known/"}, "forward": [{"target_group": "web", "weight": 1}]}
    deny = {"match": {"path_prefix": "/secret/"}, "deny": {"status": 403}}
    config = stand.config(origin(), listener={"rules": [rule, deny]}, group={"protocol": "GRPC"})
    del config["load_balancers"][0]["listeners"][0]["default_target_group"]
    client = H2Client(address_of(stand.serve(config).config))
    stand.clients.append(client)
    assert status_of(client.ask(call_fields("/other/Method"), message(b"x")))[0] == 12
    assert status_of(client.ask(call_fields("/secret/Method"), message(b"x")))[0] == 7
    assert status_of(client.ask(call_fields("/known/Method"), message(b"x")))[0] == 0


def test_C_071_an_answer_that_is_no_HTTP_is_unavailable(origin, front):
    _, client = front(origin(lambda stream: stream.connection.do(
        lambda h2c: h2c.send_headers(stream.number, [("x", "y")]))))
    assert status_of(client.ask(call_fields(), message(b"x")))[0] == 14


def test_C_072_calls_of_one_connection_spread_over_targets_and_new_ones(stand, origin, front):
    targets = [origin(name=str(number)) for number in range(4)]
    proxy, client = front(targets)
    for _ in range(400):
        assert status_of(client.ask(call_fields(), message(b"x")))[0] == 0
    counts = [len(target.requests) for target in targets]
    assert sum(counts) == 400 and all(98 <= count <= 102 for count in counts), counts
    fifth = origin(name="fifth")
    proxy.config["target_groups"][0]["targets"].append(fifth.target)
    proxy.reload(proxy.config)
    for _ in range(10):
        client.ask(call_fields(), message(b"x"))
    assert fifth.requests, "the client did not have to connect again"


def test_C_074_a_deadline_ends_the_call_on_both_sides(origin, front):
    target = origin(lambda stream: None)
    proxy, client = front(target)
    began = time.monotonic()
    answer = client.ask(call_fields("/a/B", ("grpc-timeout", "200m")), message(b"x"))
    assert status_of(answer)[0] == 4 and 0.19 < time.monotonic() - began < 5
    assert target.requests[0].wait(lambda stream: stream.reset_code == CANCEL)
    assert target.requests[0].get("grpc-timeout") == "200m"
    wait_until(lambda: proxy.metrics().total("target_in_flight") == 0)


def test_C_074_a_deadline_in_the_middle_of_a_stream_resets_it(origin, front):
    target = origin(lambda stream: (stream.head(200, GRPC), stream.send(message(b"first"))))
    _, client = front(target)
    answer = client.ask(call_fields("/a/B", ("grpc-timeout", "2S")), message(b"x"))
    assert bytes(answer.body) == message(b"first") and answer.reset is not None
    assert target.requests[0].wait(lambda stream: stream.reset_code == CANCEL)


def test_C_074_a_cancel_reaches_the_target_and_nothing_stays_counted(origin, front):
    target = origin(lambda stream: None)
    proxy, client = front(target, algorithm="least_connections")
    stream = client.open(call_fields(), end=False)
    client.send_body(stream, message(b"x"))
    wait_until(lambda: len(target.requests) == 1)
    client.reset(stream)
    assert target.requests[0].wait(lambda s: s.reset_code == CANCEL)
    wait_until(lambda: proxy.metrics().total("target_in_flight") == 0)


def test_a_malformed_timeout_is_none(origin, front):
    _, client = front(origin())
    for value in ("5", "x", "123456789m", "5s"):
        assert status_of(client.ask(call_fields("/a/B", ("grpc-timeout", value)), message(b"x")))[0] == 0


@pytest.mark.parametrize("body", [b"x", b"y" * 15_000])
def test_a_call_that_was_refused_unread_is_made_elsewhere(origin, front, body):
    bad, good = origin(lambda stream: (stream.read_body(), stream.reset(REFUSED)), name="bad"), origin(name="good")
    _, client = front([bad, good])
    for _ in range(4):
        answer = client.ask(call_fields(), message(body))
        assert status_of(answer)[0] == 0 and bytes(answer.body) == message(body)
    assert bad.requests


def test_a_call_that_may_have_been_worked_on_is_not_repeated(origin, front):
    bad, good = origin(lambda stream: stream.reset(CANCEL), name="bad"), origin(name="good")
    _, client = front([bad, good])
    assert sorted(status_of(client.ask(call_fields(), message(b"x")))[0] for _ in range(2)) == [0, 14]


def test_messages_of_a_stream_pass_both_ways_as_they_come(origin, front):
    def answer(stream):
        stream.head(200, GRPC)
        for number in range(1, 6):
            assert stream.wait(lambda s: len(s.body) >= number * len(message(b"ping")), 20)
            stream.send(message(b"pong%d" % number))
        stream.read_body()
        stream.end([("grpc-status", "0")])

    _, client = front(origin(answer))
    stream = client.open(call_fields(), end=False)
    answer = client.answers[stream] if stream in client.answers else None
    for number in range(1, 6):
        client.send(client.data_frame(stream, message(b"ping"), False))
        client.wait(lambda: stream in client.answers and len(client.answers[stream].body) >= number * len(message(b"pong1")))
    client.send(client.data_frame(stream, b"", True))
    answer = client.read(stream)
    assert bytes(answer.body) == b"".join(message(b"pong%d" % number) for number in range(1, 6))
    assert status_of(answer)[0] == 0


def test_a_stream_may_be_silent_for_longer_than_a_request_body(origin, front):
    def answer(stream):
        stream.head(200, GRPC)
        stream.read_body()
        time.sleep(0.6)
        stream.answer_rest = True
        stream.send(message(b"late"))
        stream.end([("grpc-status", "0")])

    _, client = front(origin(answer), listener={"timeouts": {"body_ms": 200}}, timeouts={"response_ms": 300})
    stream = client.open(call_fields(), end=False)
    client.wait(lambda: stream in client.answers and client.answers[stream].heads)
    client.drain(1)
    client.send(client.data_frame(stream, message(b"x"), True))
    assert status_of(client.read(stream))[0] == 0


def test_E1_streams_of_a_target_that_leaves_go_on_until_the_deadline(stand, origin, front):
    release = threading.Event()

    def answer(stream):
        stream.head(200, GRPC)
        stream.send(message(b"one"))
        if stream.path == "/ends":
            release.wait(20)
            stream.send(message(b"two"))
            stream.end([("grpc-status", "0")])

    old, new = origin(answer, name="old"), origin(name="new")
    proxy, client = front(old, deregistration_delay_s=2)
    ends, lasts = client.open(call_fields("/ends")), client.open(call_fields("/lasts"))
    client.wait(lambda: all(stream in client.answers and client.answers[stream].body for stream in (ends, lasts)))
    proxy.config["target_groups"][0]["targets"] = [new.target]
    proxy.reload(proxy.config)
    assert status_of(client.ask(call_fields(), message(b"x")))[0] == 0 and len(new.requests) == 1
    release.set()
    assert bytes(client.read(ends).body) == message(b"one") + message(b"two")
    assert client.read(lasts).reset is not None
    wait_until(lambda: old.connections[0].is_closed)
    assert proxy.metrics().total("target_group_drain_cut_total") == 1


def test_many_calls_at_once_keep_apart(origin, front):
    target = origin()
    _, client = front(target, limits={"streams": 50})
    streams = {}
    for number in range(80):
        stream = client.open(call_fields(), end=False)
        client.send_body(stream, message(b"%d" % number))
        streams[stream] = number
    got = collections.Counter()
    for stream, number in streams.items():
        answer = client.read(stream)
        assert bytes(answer.body) == message(b"%d" % number) and status_of(answer)[0] == 0
        got[number] += 1
    assert len(got) == 80
