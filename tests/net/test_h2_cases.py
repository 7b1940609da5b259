# SPDX-License-Identifier: Apache-2.0
"""Open cases whose stimulus names HTTP/2 on a side that their other tests do not have."""
from harness.h2client import H2Client, request
from harness.h2origin import H2Origin
from harness.stand import address_of


def h2(stand):
    client = H2Client(address_of(stand.proxies[0].config))
    stand.clients.append(client)
    return client


def origin_of(stand, on_request=None):
    origin = H2Origin(on_request)
    stand.backends.append(origin)
    return origin


def test_C_018_a_large_trailer_section_of_an_h2_target_is_cut(stand):
    def answer(stream):
        stream.head(200)
        stream.send(b"body")
        stream.connection.send_raw(b"".join(frames(stream)))

    def frames(stream):
        """HEADERS and CONTINUATION frames of literals without index, never the last one's END_HEADERS."""
        block = b"".join(b"\x00\x07x-%05d" % n + b"\x30" + b"y" * 48 for n in range(5000))
        pieces = [block[at:at + 16384] for at in range(0, len(block), 16384)]
        for n, piece in enumerate(pieces):
            kind, flags = (1, 1) if n == 0 else (9, 0)
            yield len(piece).to_bytes(3, "big") + bytes([kind, flags]) + stream.number.to_bytes(4, "big") + piece

    proxy = stand.proxy(origin_of(stand, answer), group={"protocol": "H2C"})
    before = proxy.metrics().total("process_resident_memory_bytes")
    client = h2(stand)
    answer = client.read(client.open(request(fields=[("te", "trailers")])))
    assert answer.reset is not None or not answer.ended, "no good end"
    assert proxy.metrics().total("process_resident_memory_bytes") - before < 4 << 20


def test_C_022_a_length_on_an_interim_answer_of_an_h2_target_is_ignored(stand):
    def answer(stream):
        stream.head(100, [("content-length", "0")])
        stream.read_body()
        stream.answer(b"x" * 64, fields=[("content-length", "64")])

    stand.proxy(origin_of(stand, answer), group={"protocol": "H2C"})
    answer = h2(stand).ask(request("POST", fields=[("expect", "100-continue")]), body=b"abc")
    assert answer.ended and (answer.status, answer.body) in ((200, b"x" * 64), (502, answer.body))


def test_C_028_an_h2c_offer_does_not_reach_an_h2_target(stand):
    target = origin_of(stand)
    stand.proxy(target, group={"protocol": "H2C"})
    client = stand.client()
    for _ in range(2):
        client.request(fields=[("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")])
        response = client.read_response()
        assert response.status == 200 and response.version == "HTTP/1.1"
    for seen in target.requests:
        assert seen.get(":method") == "GET" and not {"upgrade", "http2-settings", "connection"} & {n for n, _ in seen.fields}


def test_C_064_a_rule_sees_the_crumbs_as_one_cookie(stand):
    chosen, other = stand.backends_named("chosen", "other")
    config = stand.config([chosen, other])
    config["target_groups"].append({**config["target_groups"][0], "name": "beta", "targets": [other.target]})
    config["target_groups"][0]["targets"] = [chosen.target]
    config["load_balancers"][0]["listeners"][0]["rules"] = [
        {"match": {"cookies": {"b": "2"}}, "forward": [{"target_group": "beta", "weight": 1}]}]
    stand.serve(config)
    client = h2(stand)
    crumbs = [("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "SRV=s3")]
    assert client.ask(request(fields=crumbs)).body == b"other"
    assert client.ask(request(fields=[crumbs[0], crumbs[2]])).body == b"chosen"
    assert other.requests[0].get("Cookie") == "a=1; b=2; SRV=s3"


def test_C_071_a_call_beyond_its_rate_limit_is_a_grpc_error(stand):
    rule = {"match": {"path_prefix": "/"}, "forward": [{"target_group": "web", "weight": 1}],
            "rate_limit": {"requests": 1, "per_s": 3600}}
    stand.proxy(origin_of(stand), group={"protocol": "GRPC"}, listener={"rules": [rule]})
    client = h2(stand)
    for _ in range(2):
        answer = client.ask(request("POST", "/a.B/C", fields=[("content-type", "application/grpc"), ("te", "trailers")]), body=b"")
    assert answer.status == 200 and answer.get("grpc-status") in ("8", "14") and answer.body == b""
