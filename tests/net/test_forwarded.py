# SPDX-License-Identifier: Apache-2.0
"""A4: what targets are told about the client, and whose word is taken for it."""
import re

import pytest

from harness.process import wait_until

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
LIES = [("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "2.2.2.2"), ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Port", "443"), ("X-Request-Id", "forged"), ("X-Real-IP", "3.3.3.3"),
        ("Forwarded", "for=4.4.4.4")]


def seen(stand, backend, fields=(), **options):
    assert stand.ask(fields=fields, **options).status == 200
    return backend.requests[-1]


def test_A4_every_request_carries_the_forwarded_fields(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    request = seen(stand, backend, host="shop.example:8080")
    assert request.get("X-Forwarded-For") == "127.0.0.1"
    assert request.get("X-Forwarded-Proto") == "http"
    assert request.get("X-Forwarded-Host") == "shop.example:8080"
    assert request.get("X-Forwarded-Port") in (None, str(proxy.config["load_balancers"][0]["listeners"][0]["port"]))
    assert UUID.fullmatch(request.get("X-Request-Id"))
    assert request.get("Host") == "shop.example:8080"
    assert request.all("Via") == []


def test_A4_values_of_untrusted_clients_are_replaced(stand):
    backend = stand.backend()
    stand.proxy(backend)
    request = seen(stand, backend, LIES)
    assert request.get("X-Forwarded-For") == "127.0.0.1"
    assert request.get("X-Forwarded-Proto") == "http"
    assert request.get("X-Forwarded-Host") == "t.example"
    assert UUID.fullmatch(request.get("X-Request-Id"))
    for lie in ("1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "evil.example", "forged"):
        assert lie.encode() not in backend.raw, lie


def test_A4_values_of_trusted_hops_are_extended(stand):
    backend = stand.backend()
    stand.proxy(backend, trusted_proxies=["127.0.0.0/8"])
    request = seen(stand, backend, [("X-Forwarded-For", "198.51.100.7, 127.0.0.9"), ("X-Forwarded-Proto", "https"),
                                    ("X-Forwarded-Host", "shop.example"), ("X-Request-Id", "abc-123")])
    assert ", ".join(request.all("X-Forwarded-For")) == "198.51.100.7, 127.0.0.9, 127.0.0.1"
    assert request.get("X-Forwarded-Proto") == "https"
    assert request.get("X-Forwarded-Host") == "shop.example"
    assert request.get("X-Request-Id") == "abc-123"


def test_A4_request_ids_are_unique_and_ordered_by_time(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    for _ in range(50):
        client.request()
        client.read_response()
    ids = [request.get("X-Request-Id") for request in backend.requests]
    assert len(set(ids)) == 50 and all(UUID.fullmatch(one) for one in ids)


@pytest.mark.parametrize("values,client", [
    (["198.51.100.7"], "198.51.100.7"),
    (["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
    (["198.51.100.7, 127.0.0.2"], "198.51.100.7"),
    (["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
    (["1.1.1.1,unknown"], "127.0.0.1"),
    (["1.1.1.1, unknown, 198.51.100.7"], "198.51.100.7"),
    (["127.0.0.3, 127.0.0.2"], "127.0.0.3"),
    ([", ".join(f"1.1.1.{n}" for n in range(10))], "1.1.1.9"),
    ([", ".join(f"1.1.1.{n}" for n in range(20))], "1.1.1.19"),
    ([", ".join(f"1.1.1.{n}" for n in range(60))], "1.1.1.59"),
    (["2001:db8::7"], "2001:db8::7"),
    ([""], "127.0.0.1"),
    ([",,,"], "127.0.0.1"),
], ids=["one", "spoofed-left", "trusted-right", "two-lines", "unknown-right", "unknown-in-between", "only-trusted", "10-entries",
        "20-entries", "60-entries", "ipv6", "empty", "commas"])
def test_C_134_the_client_is_the_right_most_address_that_is_not_trusted(stand, values, client):
    backend = stand.backend()
    log = stand.folder + "/access.log"
    stand.proxy(backend, trusted_proxies=["127.0.0.0/8"], access_log={"file": log, "format": "{client}"})
    seen(stand, backend, [("X-Forwarded-For", value) for value in values])
    line = wait_until(lambda: open(log, encoding="utf-8").read().strip())
    assert line == client or (line == "127.0.0.1" and client.startswith("127.")), line


def test_a_request_without_host_gets_one_that_servers_accept(stand):
    backend = stand.backend()
    stand.proxy(backend)
    assert b" 200 " in stand.exchange(b"GET / HTTP/1.0\r\n\r\n").split(b"\r\n")[0]
    request = backend.requests[0]
    assert request.get("Host") == f"{backend.target['ip']}:{backend.target['port']}"
    assert request.all("X-Forwarded-Host") == []


def test_via_is_added_on_request(stand):
    backend = stand.backend()
    stand.proxy(backend, via=True)
    request = seen(stand, backend, [("Via", "1.0 earlier")])
    via = ", ".join(request.all("Via"))
    assert via.startswith("1.0 earlier, 1.1 ")


def test_ipv6_clients_are_named_without_brackets(stand):
    backend = stand.backend()
    config = stand.config(backend)
    config["load_balancers"][0]["vip"] = "::1"
    stand.serve(config)
    assert stand.ask().status == 200
    assert backend.requests[-1].get("X-Forwarded-For") == "::1"
