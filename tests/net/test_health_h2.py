# SPDX-License-Identifier: Apache-2.0
"""Health checks of targets that speak HTTP/2: plain requests, and gRPC's own health service (D1)."""
import ssl
import struct

import pytest

from harness.h2origin import H2Origin
from harness.process import wait_until
from harness.tls import Authority

QUICK = {"interval_s": 0.1, "timeout_ms": 2000, "healthy_threshold": 1, "unhealthy_threshold": 2}
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"


def message(data):
    return struct.pack(">BI", 0, len(data)) + data


class Target(H2Origin):
    """Answers checks with `status` or by `answer_check(stream)`, and everything else with its name."""

    def __init__(self, **options):
        self.health = SERVING
        self.checks = []
        self.answer_check = self.say_health
        super().__init__(self.answer, **options)

    def answer(self, stream):
        stream.read_body()
        if stream.path in ("/grpc.health.v1.Health/Check", "/healthz"):
            self.checks.append(stream)
            self.answer_check(stream)
        else:
            stream.answer(self.name.encode())

    def say_health(self, stream):
        stream.head(200, [("content-type", "application/grpc")])
        stream.send(message(self.health))
        stream.end([("grpc-status", "0")])


@pytest.fixture(name="target")
def make_target(stand):
    target = Target()
    stand.backends.append(target)
    return target


def front(stand, target, check, **group):
    return stand.proxy(target, group={"protocol": "GRPC", "health_check": {"type": "grpc", **QUICK, **check},
                                      "panic_threshold_pct": 0, **group})


def is_up(stand):
    return stand.ask().status == 200


def test_D1_a_target_that_serves_is_up(stand, target):
    front(stand, target, {})
    wait_until(lambda: is_up(stand))
    check = target.checks[0]
    assert check.get(":method") == "POST" and check.get("te") == "trailers"
    assert check.get("content-type") == "application/grpc" and bytes(check.body) == message(b"")
    assert check.get(":authority") == target.label


def test_D1_the_service_that_is_asked_for_is_in_the_message(stand, target):
    front(stand, target, {"service": "my.pkg.Service", "host": "check.example"})
    wait_until(lambda: is_up(stand))
    assert bytes(target.checks[0].body) == message(b"\x0a\x0emy.pkg.Service")
    assert target.checks[0].get(":authority") == "check.example"


def test_D1_a_target_that_stops_serving_goes_down_and_comes_back(stand, target):
    front(stand, target, {})
    wait_until(lambda: is_up(stand))
    target.health = NOT_SERVING
    wait_until(lambda: not is_up(stand))
    target.health = SERVING
    wait_until(lambda: is_up(stand))


BAD = {
    "no-such-service": lambda stream: stream.head(200, [("grpc-status", "5")], end=True),
    "no-health-service": lambda stream: stream.head(200, [("grpc-status", "12")], end=True),
    "http-error": lambda stream: stream.answer(b"", 503),
    "unknown": lambda stream: stream.answer(message(b""), trailers=[("grpc-status", "0")]),
    "no-trailers": lambda stream: stream.answer(message(SERVING)),
    "failed-after-the-message": lambda stream: stream.answer(message(SERVING), trailers=[("grpc-status", "13")]),
    "a-message-that-is-none": lambda stream: stream.answer(b"hello", trailers=[("grpc-status", "0")]),
    "compressed": lambda stream: stream.answer(b"\x01" + message(SERVING)[1:], trailers=[("grpc-status", "0")]),
    "too-large": lambda stream: stream.answer(b"\x08" * 1000, trailers=[("grpc-status", "0")]),
    "reset": lambda stream: stream.reset(2),
    "malformed": lambda stream: stream.connection.do(lambda h2c: h2c.send_headers(stream.number, [("x", "y")])),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
def test_D1_what_does_not_say_that_it_serves_is_down(stand, target, answer):
    target.answer_check = answer
    front(stand, target, {})
    wait_until(lambda: len(target.checks) >= 3)
    assert not is_up(stand)


def test_D1_a_target_without_an_answer_times_out(stand, target):
    target.answer_check = lambda stream: None
    proxy = front(stand, target, {"timeout_ms": 100})
    wait_until(lambda: len(target.checks) >= 3)
    assert not is_up(stand)
    assert "response-timeout" in proxy.stderr


def test_D1_fields_that_are_not_known_are_passed_over(stand, target):
    target.health = b"\x12\x03abc" + SERVING + b"\x18\x05"
    front(stand, target, {})
    wait_until(lambda: is_up(stand))


@pytest.mark.parametrize("kind", ["H2C", "HTTPS"])
def test_D1_http_checks_speak_HTTP2_where_the_group_does(stand, tmp_path, kind):
    authority = Authority(tmp_path)
    certificate = authority.issue("target", "t.example")
    context = None
    if kind == "HTTPS":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate["cert_file"], certificate["key_file"])
        context.set_alpn_protocols(["h2"])
    target = Target(context=context)
    stand.backends.append(target)
    target.answer_check = lambda stream: stream.answer(b"all is well")
    tls = {"tls": {"ca_file": authority.file, "sni": "t.example", "alpn": ["h2"]}} if context else {}
    front(stand, target, {"type": "http", "path": "/healthz", "expect": {"status": "200", "body": "is well"}},
          protocol=kind, **tls)
    wait_until(lambda: is_up(stand))
    assert target.checks[0].get(":method") == "GET"
    target.answer_check = lambda stream: stream.answer(b"all is ill")
    wait_until(lambda: not is_up(stand))
    target.answer_check = lambda stream: stream.answer(b"all is well", 500)
    count = len(target.checks)
    wait_until(lambda: len(target.checks) > count + 2)
    assert not is_up(stand)
    target.answer_check = lambda stream: stream.answer(b"x" * 30_000 + b"all is well")
    wait_until(lambda: is_up(stand))


def test_D1_grpc_checks_need_a_group_that_speaks_HTTP2(stand, target):
    config = stand.config(target, group={"health_check": {"type": "grpc", **QUICK}})
    proxy = stand.serve(config, ready=False)
    proxy.process.wait(20)
    assert "/target_groups/0/health_check/type" in proxy.stderr and "HTTP/2" in proxy.stderr
