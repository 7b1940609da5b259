# SPDX-License-Identifier: Apache-2.0
"""First-line security: who may connect and how often, and what browsers are told."""
import socket
import time

import pytest

from harness.backend import text_response
from harness.process import wait_until
from harness.tls import Authority, tls_wire
from harness.udp import UdpBackend, UdpClient

V1 = b"PROXY TCP4 %s 198.51.100.2 56324 443\r\n"
GET = b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n"


def comes_in(stand, source="127.0.0.1", data=GET, header=b""):
    """Does a connection from that address get an answer?"""
    sock = socket.socket()
    sock.settimeout(20)
    listener = stand.proxies[0].config["load_balancers"][0]["listeners"][0]
    try:
        sock.bind((source, 0))
        sock.connect(("127.0.0.1", listener["port"]))
        sock.sendall(header + data)
        return sock.recv(100) != b""
    except ConnectionError:
        return False
    finally:
        sock.close()


def test_a_listener_lets_in_whom_its_lists_allow(stand):
    proxy = stand.proxy(stand.backend(), listener={"sources": {"allow": ["127.0.0.0/29"], "deny": ["127.0.0.5"]}})
    assert comes_in(stand, "127.0.0.1")
    assert comes_in(stand, "127.0.0.4")
    assert not comes_in(stand, "127.0.0.5")
    assert not comes_in(stand, "127.0.0.9")
    assert proxy.metrics().total("listener_connections_denied_total") == 2


def test_the_lists_look_at_whom_a_proxy_header_names(stand):
    stand.proxy(stand.backend(), listener={"proxy_protocol": {"from": ["127.0.0.1"]}, "sources": {"deny": ["192.0.2.0/24"]}})
    assert comes_in(stand, header=V1 % b"198.51.100.7")
    assert not comes_in(stand, header=V1 % b"192.0.2.7")


def test_the_lists_hold_for_tcp_and_udp(stand):
    udp = UdpBackend()
    stand.backends.append(udp)
    config = stand.config([stand.backend(lambda wire: wire.send(b"hi"))], group={"protocol": "TCP"},
                          listener={"protocol": "TCP", "sources": {"deny": ["127.0.0.2"]}})
    entry = config["load_balancers"][0]["listeners"][0]
    config["load_balancers"][0]["listeners"].append({"name": "u", "port": entry["port"], "protocol": "UDP", "default_target_group": "u",
                                                     "timeouts": {"idle_ms": 1000}, "sources": {"deny": ["127.0.0.2"]}})
    config["target_groups"].append({"name": "u", "protocol": "UDP", "targets": [udp.target]})
    stand.serve(config)
    assert comes_in(stand, "127.0.0.3")
    assert not comes_in(stand, "127.0.0.2")
    good, bad = (UdpClient(("127.0.0.1", entry["port"]), source=(host, 0)) for host in ("127.0.0.3", "127.0.0.2"))
    stand.clients.extend([good, bad])
    assert good.ask(b"x") == b"udp:x"
    bad.send(b"x")
    assert bad.hears_nothing()


def test_a_rule_answers_403_to_others(stand):
    backend = stand.backend()
    stand.proxy(backend, trusted_proxies=["127.0.0.0/8"], listener={"rules": [
        {"match": {"path_prefix": "/admin"}, "sources": {"allow": ["10.0.0.0/8"]}, "forward": [{"target_group": "web"}]}]})
    inside, outside = [("X-Forwarded-For", "10.1.2.3")], [("X-Forwarded-For", "192.0.2.1")]
    assert stand.ask(target="/admin/x", fields=inside).status == 200
    refused = stand.ask(target="/admin/x", fields=outside + [("Accept", "application/json")])
    assert refused.status == 403 and b"denied-source" in refused.body
    assert stand.ask(target="/", fields=outside).status == 200
    assert len(backend.requests) == 2


def test_an_address_makes_so_many_connections(stand):
    proxy = stand.proxy(stand.backend(), listener={"connection_rate": {"connections": 1, "per_s": 60, "burst": 3}})
    assert [comes_in(stand, "127.0.0.2") for _ in range(5)] == [True] * 3 + [False] * 2
    assert comes_in(stand, "127.0.0.3")
    assert proxy.metrics().total("listener_connections_limited_total") >= 2


def test_the_rate_is_kept_over_a_reload(stand):
    config = stand.config(stand.backend(), listener={"connection_rate": {"connections": 1, "per_s": 60, "burst": 2}})
    proxy = stand.serve(config)
    assert [comes_in(stand, "127.0.0.2") for _ in range(3)] == [True, True, False]
    config["via"] = True
    proxy.reload(config)
    assert not comes_in(stand, "127.0.0.2")


def test_the_rate_comes_back_with_time(stand):
    stand.proxy(stand.backend(), listener={"connection_rate": {"connections": 5, "per_s": 1, "burst": 1}})
    assert comes_in(stand, "127.0.0.2")
    time.sleep(0.4)
    assert comes_in(stand, "127.0.0.2")


def test_handshakes_are_bounded_by_it(stand):
    authority = Authority(stand.folder)
    proxy = stand.proxy(stand.backend(), listener={"protocol": "HTTPS", "certificates": ["one"],
                                                   "connection_rate": {"connections": 1, "per_s": 60, "burst": 2}},
                        certificates=[authority.issue("one", "t.example")])
    address = ("127.0.0.1", proxy.config["load_balancers"][0]["listeners"][0]["port"])
    done = 0
    for _ in range(4):
        try:
            tls_wire(address, authority.context()).close()
            done += 1
        except OSError:
            pass
    assert done == 2
    assert proxy.metrics().total("listener_tls_handshakes_total") == 2


def secure(stand, authority, backend, **listener):
    proxy = stand.proxy(backend, listener={"protocol": "HTTPS", "certificates": ["one"], **listener},
                        certificates=[authority.issue("one", "t.example")])
    address = ("127.0.0.1", proxy.config["load_balancers"][0]["listeners"][0]["port"])

    def ask(target="/"):
        wire = tls_wire(address, authority.context())
        wire.request("GET", target, [("Connection", "close")])
        response = wire.read_response("GET")
        wire.close()
        return response

    return ask


def test_hsts_goes_with_every_answer(stand):
    backend = stand.backend()
    ask = secure(stand, Authority(stand.folder), backend, hsts={"max_age_s": 600, "include_subdomains": True}, rules=[
        {"match": {"path": "/gone"}, "respond": {"status": 410}}, {"match": {"path": "/moved"}, "redirect": {"path": "/x"}}])
    for target, status in (("/", 200), ("/gone", 410), ("/moved", 308)):
        response = ask(target)
        assert response.status == status
        assert response.get("Strict-Transport-Security") == "max-age=600; includeSubDomains"


def test_an_answer_that_has_the_field_keeps_it(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"ok", fields=[("strict-transport-security", "max-age=1"), ("X-Frame-Options", "DENY")])
    ask = secure(stand, Authority(stand.folder), backend, hsts={}, security_headers=True, rules=[
        {"match": {"path": "/own"}, "respond": {"headers": {"x-frame-options": "DENY"}}}])
    response = ask()
    assert response.get("Strict-Transport-Security") == "max-age=1" and response.get("X-Frame-Options") == "DENY"
    assert response.get("X-Content-Type-Options") == "nosniff"
    own = ask("/own")
    assert own.get("X-Frame-Options") == "DENY" and own.get("Strict-Transport-Security") == "max-age=31536000"


def test_security_headers_are_off_unless_asked_for(stand):
    stand.proxy(stand.backend())
    response = stand.ask()
    for name in ("X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Strict-Transport-Security"):
        assert response.get(name) is None


def test_security_headers_go_with_every_answer(stand):
    stand.proxy(stand.backend(), listener={"security_headers": True, "rules": [{"match": {"path": "/no"}, "deny": {}}]})
    for target in ("/", "/no"):
        response = stand.ask(target=target)
        assert response.get("X-Content-Type-Options") == "nosniff"
        assert response.get("X-Frame-Options") == "SAMEORIGIN"
        assert response.get("Referrer-Policy") == "strict-origin-when-cross-origin"


@pytest.mark.parametrize("listener, group, words", [
    ({"hsts": {}}, {}, "browsers believe it over TLS only"),
    ({"protocol": "TCP", "security_headers": True}, {"protocol": "TCP"}, "but this one has TCP"),
    ({"sources": {"allow": ["10.0.0.1/8"]}}, {}, "bits behind the prefix length must be 0"),
    ({"connection_rate": {}}, {}, "connections"),
])
def test_what_does_not_fit_is_refused(stand, listener, group, words):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], listener=listener, group=group)
    assert words in stand.refuses(config)


def test_descriptors_of_refused_connections_are_closed(stand):
    proxy = stand.proxy(stand.backend(), listener={"sources": {"deny": ["127.0.0.0/8"]}})
    for _ in range(20):
        assert not comes_in(stand, "127.0.0.2")
    assert wait_until(lambda: proxy.sockets() <= proxy.baseline)
    assert proxy.metrics().total("listener_active_connections") == 0
