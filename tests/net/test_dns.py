# SPDX-License-Identifier: Apache-2.0
"""Targets that are names: asked for again by TTL, changed by adding and draining, kept when name servers fail."""
import http.client
import copy
import json
import re
import socket
import threading

import pytest

from harness.backend import Backend, text_response
from harness.dns import A, AAAA, NXDOMAIN, SERVFAIL, SRV, NameServer, a, aaaa, srv
from harness.ports import free_port
from harness.process import wait_until


@pytest.fixture
def dns():
    server = NameServer()
    yield server
    server.close()


class At(Backend):
    """A backend on an address of its own and a port that others share."""

    def __init__(self, address, port, name=None):
        self.address = address
        super().__init__(name=name or address, port=port)

    def start(self):
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        self.listener = socket.socket(family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.address, self.port))
        self.listener.listen(1024)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()


def backends_at(stand, addresses):
    port = free_port()
    made = [At(address, port) for address in addresses]
    stand.backends.extend(made)
    return port, made


def targets(proxy, **labels):
    """The targets that there are, by the name that metrics give them."""
    return sorted(labels["target"] for labels, _ in proxy.metrics().select("target_up", **labels))


def share(stand, n):
    counts = {}
    for _ in range(n):
        name = stand.ask().body.decode()
        counts[name] = counts.get(name, 0) + 1
    return counts


def test_a_changed_address_is_used_within_its_ttl_and_the_old_one_drains_C_116(stand, dns):
    port, (one, two) = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("app.test", a("127.0.0.11", ttl=2))
    proxy = stand.proxy({"host": "app.test", "port": port}, resolver=dns.resolver)
    wire = stand.client()
    for _ in range(3):
        wire.request("GET", "/")
        assert wire.read_response().body == b"127.0.0.11"
    assert targets(proxy) == [f"app.test/127.0.0.11:{port}"]

    asked = dns.n_questions("app.test")
    dns.set("app.test", a("127.0.0.12", ttl=2))
    # Judged by questions and not by the clock: the first answer after the change is enough.
    assert wait_until(lambda: dns.n_questions("app.test") > asked)
    assert wait_until(lambda: targets(proxy) == [f"app.test/127.0.0.12:{port}"])
    assert dns.n_questions("app.test") <= asked + 3
    for _ in range(3):
        wire.request("GET", "/")
        assert wire.read_response().body == b"127.0.0.12"
    assert wait_until(lambda: all(w.sock.fileno() == -1 for w in one.wires))
    assert two.requests


def test_requests_in_flight_on_an_address_that_is_gone_finish_C_116(stand, dns):
    port, (one, two) = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("app.test", a("127.0.0.11", ttl=1))
    release = {"now": False}

    def slow(request):
        wait_until(lambda: release["now"], 30)
        return text_response(b"late")

    one.answer = slow
    proxy = stand.proxy({"host": "app.test", "port": port}, resolver=dns.resolver)
    wire = stand.client()
    wire.request("GET", "/slow")
    assert wait_until(lambda: one.requests)
    dns.set("app.test", a("127.0.0.12", ttl=1))
    assert wait_until(lambda: f"app.test/127.0.0.12:{port}" in targets(proxy))
    assert stand.ask().body == b"127.0.0.12"
    release["now"] = True
    assert wire.read_response().body == b"late"


def test_a_long_ttl_is_believed_up_to_the_ceiling_and_a_zero_one_down_to_the_floor(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11"])
    for name, ttl in (("long.test", 3600), ("zero.test", 0)):
        dns.set(name, a("127.0.0.11", ttl=ttl))
    stand.proxy([{"host": "long.test", "port": port}, {"host": "zero.test", "port": port}],
                resolver={**dns.resolver, "min_ttl_s": 0.2, "max_ttl_s": 3600})
    assert wait_until(lambda: dns.n_questions("zero.test") > 5)
    assert dns.n_questions("long.test") == 1


def test_a_name_without_an_answer_stops_nothing_and_is_used_when_it_has_one_C_116(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11"])
    proxy = stand.proxy({"host": "later.test", "port": port}, resolver=dns.resolver)
    assert targets(proxy) == []
    assert stand.ask().status == 503
    assert re.search(r"dns: later.test: .*not found", proxy.stderr)
    status, body = proxy.get("/api/health")
    assert status == 200 and '"reason": "dns"' in body and f'"target": "later.test:{port}"' in body
    assert proxy.metrics().total("dns_name_addresses", target=f"later.test:{port}") == 0
    dns.set("later.test", a("127.0.0.11"))
    assert wait_until(lambda: targets(proxy))
    assert stand.ask().body == b"127.0.0.11"
    assert '"reason": "dns"' not in proxy.get("/api/health")[1]


@pytest.mark.parametrize("fault", ["servfail", "nxdomain", "empty", "silence"])
def test_what_was_known_is_kept_when_name_servers_fail(stand, dns, fault):
    port, _ = backends_at(stand, ["127.0.0.11"])
    dns.set("app.test", a("127.0.0.11", ttl=1))
    proxy = stand.proxy({"host": "app.test", "port": port}, resolver=dns.resolver)
    if fault == "silence":
        dns.is_silent = True
    elif fault == "empty":
        dns.set("app.test")
    else:
        dns.broken = SERVFAIL if fault == "servfail" else NXDOMAIN
    failures = lambda: proxy.metrics().total("dns_name_lookup_failures_total", target=f"app.test:{port}")
    assert wait_until(lambda: failures() > 0, 40)
    assert targets(proxy) == [f"app.test/127.0.0.11:{port}"]
    assert stand.ask().body == b"127.0.0.11"
    assert proxy.stderr.count("what was known before is kept") == 1
    dns.broken, dns.is_silent = None, False
    dns.set("app.test", a("127.0.0.11", ttl=1))
    assert wait_until(lambda: "app.test: answered again" in proxy.stderr, 60)


def test_two_names_with_one_address_are_two_targets_C_119(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("one.test", a("127.0.0.11"))
    dns.set("two.test", a("127.0.0.11"))
    proxy = stand.proxy([{"host": "one.test", "port": port, "weight": 30}, {"host": "two.test", "port": port, "weight": 10},
                         {"ip": "127.0.0.12", "port": port, "weight": 20}],
                        group={"algorithm": "weighted_round_robin"}, resolver=dns.resolver)
    assert targets(proxy) == [f"127.0.0.12:{port}", f"one.test/127.0.0.11:{port}", f"two.test/127.0.0.11:{port}"]
    assert share(stand, 60) == {"127.0.0.11": 40, "127.0.0.12": 20}


def test_srv_records_bring_ports_weights_and_backups_C_119(stand, dns):
    one, two, spare = stand.backends_named("one", "two", "spare")
    dns.set("_http._tcp.app.test", srv("h1.test", one.port, 10, 10), srv("h2.test", two.port, 10, 90),
            srv("h3.test", spare.port, 20, 1000))
    for host in ("h1.test", "h2.test", "h3.test"):
        dns.set(host, a("127.0.0.1"))
    proxy = stand.proxy({"srv": "_http._tcp.app.test"}, group={"algorithm": "weighted_round_robin"}, resolver=dns.resolver)
    name = "srv:_http._tcp.app.test/127.0.0.1"
    assert targets(proxy) == sorted(f"{name}:{b.port}" for b in (one, two, spare))
    assert share(stand, 100) == {"one": 10, "two": 90}
    assert proxy.metrics().total("target_weight", target=f"{name}:{two.port}") == 90


def test_weights_follow_their_target_when_records_change_places_C_119(stand, dns):
    one, two = stand.backends_named("one", "two")
    for host in ("h1.test", "h2.test"):
        dns.set(host, a("127.0.0.1"))
    first, second = srv("h1.test", one.port, 0, 10, ttl=1), srv("h2.test", two.port, 0, 90, ttl=1)
    dns.set("_http._tcp.app.test", first, second)
    proxy = stand.proxy({"srv": "_http._tcp.app.test"}, group={"algorithm": "weighted_round_robin"}, resolver=dns.resolver)
    version = proxy.metrics().total("config_version")
    asked = dns.n_questions("_http._tcp.app.test", SRV)
    dns.set("_http._tcp.app.test", second, first)
    assert wait_until(lambda: dns.n_questions("_http._tcp.app.test", SRV) > asked + 1)
    assert share(stand, 100) == {"one": 10, "two": 90}
    assert proxy.metrics().total("config_version") == version, "an order is no change"
    dns.set("_http._tcp.app.test", srv("h2.test", two.port, 0, 30, ttl=1), srv("h1.test", one.port, 0, 10, ttl=1))
    assert wait_until(lambda: proxy.metrics().total("config_version") > version)
    assert share(stand, 40) == {"one": 10, "two": 30}


def test_each_priority_of_a_service_serves_when_no_earlier_one_can_C_119(stand, dns):
    first, second, third = stand.backends_named("first", "second", "third")
    records = [srv(f"h{n}.test", backend.port, priority, 10)
               for n, (backend, priority) in enumerate([(third, 30), (first, 5), (second, 20)])]
    dns.set("_http._tcp.app.test", *records)
    for n in range(3):
        dns.set(f"h{n}.test", a("127.0.0.1"))
    health = {"type": "tcp", "interval_s": 0.1, "unhealthy_threshold": 1, "healthy_threshold": 1}
    stand.proxy({"srv": "_http._tcp.app.test"}, resolver=dns.resolver,
                group={"health_check": health, "retry": {"attempts": 1}, "panic_threshold_pct": 0})

    def only(name):
        return wait_until(lambda: {stand.ask().body for _ in range(6)} == {name})

    assert only(b"first")
    first.stop()
    assert only(b"second")
    second.stop()
    assert only(b"third")
    second.start()
    assert only(b"second")
    first.start()
    assert only(b"first")


def test_a_service_changes_when_its_new_hosts_have_been_asked(stand, dns):
    one, two = stand.backends_named("one", "two")
    dns.set("_http._tcp.app.test", srv("h1.test", one.port, ttl=1))
    dns.set("h1.test", a("127.0.0.1"))
    dns.set("h2.test", a("127.0.0.1"))
    proxy = stand.proxy({"srv": "_http._tcp.app.test"}, resolver=dns.resolver)
    dns.set("_http._tcp.app.test", srv("h2.test", two.port, ttl=1))
    seen = set()
    assert wait_until(lambda: seen.add(stand.ask().status) or stand.ask().body == b"two")
    assert seen == {200}


def test_ipv4_serves_while_ipv6_cannot_be_reached_C_119(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11"])
    dns.set("app.test", a("127.0.0.11"), aaaa("::1"))  # nothing listens there
    proxy = stand.proxy({"host": "app.test", "port": port},
                        group={"health_check": {"type": "tcp", "interval_s": 0.1}, "panic_threshold_pct": 0},
                        resolver={**dns.resolver, "family": "prefer_ipv6"})
    assert targets(proxy) == [f"app.test/127.0.0.11:{port}", f"app.test/[::1]:{port}"]
    assert {stand.ask().body for _ in range(10)} == {b"127.0.0.11"}


def test_the_family_setting_says_what_is_asked_and_used_C_119(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11"])
    dns.set("app.test", a("127.0.0.11"), aaaa("::1"))
    proxy = stand.proxy({"host": "app.test", "port": port}, resolver={**dns.resolver, "family": "ipv4"})
    assert targets(proxy) == [f"app.test/127.0.0.11:{port}"]
    assert dns.n_questions("app.test", AAAA) == 0 and dns.n_questions("app.test", A) == 1
    proxy.reload({**proxy.config, "resolver": {**dns.resolver, "family": "any"}})
    assert wait_until(lambda: len(targets(proxy)) == 2)


def test_a_reload_brings_names_and_forgets_them(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("one.test", a("127.0.0.11", ttl=1))
    dns.set("two.test", a("127.0.0.12", ttl=1))
    proxy = stand.proxy({"host": "one.test", "port": port}, resolver=dns.resolver)
    config = proxy.config
    proxy.reload({**config, "target_groups": [{**config["target_groups"][0], "targets": [{"host": "two.test", "port": port}]}]})
    assert stand.ask().body == b"127.0.0.12"
    asked = dns.n_questions("one.test")
    two = dns.n_questions("two.test")
    assert wait_until(lambda: dns.n_questions("two.test") > two + 2)
    assert dns.n_questions("one.test") == asked


def test_a_refused_reload_keeps_the_names_in_force_C_124(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("one.test", a("127.0.0.11", ttl=1))
    proxy = stand.proxy({"host": "one.test", "port": port}, resolver=dns.resolver)
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    config = proxy.config
    listeners = config["load_balancers"][0]["listeners"]
    bad = [{**listeners[0]}, {**listeners[0], "port": taken.getsockname()[1]}]
    proxy.reload({**config, "resolver": {"servers": ["127.0.0.1:9"]}, "load_balancers": [{**config["load_balancers"][0], "listeners": bad}],
                  "target_groups": [{**config["target_groups"][0], "targets": [{"host": "two.test", "port": port}]}]})
    taken.close()
    assert "stays in force" in proxy.stderr
    assert stand.ask().body == b"127.0.0.11"
    dns.set("one.test", a("127.0.0.12", ttl=1))
    assert wait_until(lambda: targets(proxy) == [f"one.test/127.0.0.12:{port}"])
    assert stand.ask().body == b"127.0.0.12"


def test_several_hundred_names_are_kept(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11"])
    names = [f"n{i}.test" for i in range(400)]
    for i, name in enumerate(names):
        dns.set(name, a("127.0.0.11" if i == 0 else f"127.1.{i // 250}.{i % 250 + 1}", ttl=1))
    proxy = stand.proxy([{"host": name, "port": port} for name in names],
                        group={"health_check": {"type": "tcp", "interval_s": 60}}, resolver=dns.resolver)
    assert len(targets(proxy)) == 400
    assert wait_until(lambda: all(dns.n_questions(name) > 2 for name in names), 40)
    version = proxy.metrics().total("config_version")
    for name in names[1:]:
        dns.set(name, a("127.0.0.11", ttl=1))
    assert wait_until(lambda: all("127.0.0.11" in target for target in targets(proxy)), 40)
    assert proxy.metrics().total("config_version") - version < 20, "changes are gathered"


def test_checks_of_a_named_target_ask_for_its_name_C_092(stand, dns):
    port, (one,) = backends_at(stand, ["127.0.0.11"])
    dns.set("app.test", a("127.0.0.11"))
    stand.proxy({"host": "app.test", "port": port}, group={"health_check": {"type": "http", "path": "/health"}},
                resolver=dns.resolver)
    assert wait_until(lambda: one.requests)
    assert one.requests[0].get("host") == f"app.test:{port}"


def test_check_needs_no_name_server_C_127(stand):
    config = stand.config({"host": "app.test", "port": 80}, resolver={"servers": ["127.0.0.1:9"]})
    status, _, err = stand.isobar("check", "/dev/stdin", text=json.dumps(config))
    assert status == 0, err


def test_the_api_shows_resolved_targets_as_servers(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("app.test", a("127.0.0.11"), a("127.0.0.12"))
    proxy = stand.proxy([{"host": "nobody.test", "port": port}, {"host": "app.test", "port": port}], resolver=dns.resolver)
    assert stand.ask().status == 200
    names = [f"app.test/127.0.0.1{i}:{port}" for i in (1, 2)]
    servers = json.loads(proxy.get("/api/servers")[1])
    assert [server["server_id"] for server in servers["servers"]] == names
    status, one = proxy.get("/api/servers/" + names[0].replace("/", "%2F"))
    assert status == 200 and json.loads(one)["server_id"] == names[0]
    assert set(json.loads(proxy.get("/api/metrics")[1])["requests_by_server"]) == set(names)


def test_the_pool_api_changes_a_name_for_all_its_addresses(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11", "127.0.0.12"])
    dns.set("app.test", a("127.0.0.11"), a("127.0.0.12"))
    proxy = stand.proxy({"host": "app.test", "port": port}, resolver=dns.resolver)

    def ids():
        return [server["server_id"] for server in json.loads(proxy.get("/api/servers")[1])["servers"]]

    assert wait_until(lambda: ids() == [f"app.test/127.0.0.{i}:{port}" for i in (11, 12)]), ids()
    connection = http.client.HTTPConnection(*proxy.admin, timeout=20)
    connection.request("PUT", f"/api/servers/app.test:{port}", json.dumps({"weight": 7}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200 and json.loads(answer.read())["weight"] == 7
    connection.close()
    assert {server["weight"] for server in json.loads(proxy.get("/api/servers")[1])["servers"]} == {7}


@pytest.mark.parametrize("how", ["plain", "opaque"])
def test_a_client_stays_with_its_address_while_others_come_and_go(stand, dns, how):
    long = ".".join(["a" * 50] * 4) + ".test"
    port, _ = backends_at(stand, [f"127.0.0.1{i}" for i in range(1, 5)])
    dns.set(long, a("127.0.0.11", ttl=1), a("127.0.0.12", ttl=1))
    proxy = stand.proxy({"host": long, "port": port}, group={"affinity": {"type": "cookie", "id": how}}, resolver=dns.resolver)
    first = stand.ask()
    cookie = first.get("set-cookie").split(";")[0]
    names = {b"127.0.0.11", b"127.0.0.12"}
    assert first.body in names
    dns.set(long, a("127.0.0.13", ttl=1), a(first.body.decode(), ttl=1), a("127.0.0.14", ttl=1))
    assert wait_until(lambda: len(targets(proxy)) == 3)
    assert {stand.ask(fields=[("Cookie", cookie)]).body for _ in range(8)} == {first.body}
    dns.set(long, a("127.0.0.13", ttl=1))
    assert wait_until(lambda: len(targets(proxy)) == 1)
    moved = stand.ask(fields=[("Cookie", cookie)])
    assert moved.body == b"127.0.0.13" and moved.get("set-cookie")


def test_an_answer_too_long_for_a_datagram_comes_over_tcp(stand, dns):
    port, (one,) = backends_at(stand, ["127.0.0.11"])
    dns.truncates = True
    dns.set("many.test", a("127.0.0.11"), *[a(f"127.2.{i // 250}.{i % 250 + 1}") for i in range(300)])
    proxy = stand.proxy({"host": "many.test", "port": port}, group={"health_check": {"type": "tcp", "interval_s": 60}},
                        resolver={**dns.resolver, "family": "ipv4"})
    assert len(targets(proxy)) == 301 and dns.n_tcp >= 1
    assert wait_until(lambda: proxy.metrics().total("target_up", target=f"many.test/127.0.0.11:{port}") == 1)


def test_the_next_name_server_is_asked_when_one_does_not_answer(stand, dns):
    port, _ = backends_at(stand, ["127.0.0.11"])
    dead = NameServer()
    dead.is_silent = True
    dns.set("app.test", a("127.0.0.11"))
    proxy = stand.proxy({"host": "app.test", "port": port},
                        resolver={"servers": [f"127.0.0.1:{dead.port}", *dns.resolver["servers"]], "family": "ipv4"})
    assert wait_until(lambda: targets(proxy))
    assert dead.n_questions("app.test") == 0 and stand.ask().body == b"127.0.0.11"
    dead.close()


def test_without_servers_names_come_from_the_system(stand):
    backend = stand.backend(name="here")
    proxy = stand.proxy({"host": "localhost", "port": backend.port})
    assert f"localhost/127.0.0.1:{backend.port}" in targets(proxy)
    assert stand.ask().body == b"here"


def test_a_reload_meets_new_addresses_that_wait_for_their_first_checks(stand, dns):
    """Addresses change again and again to ones whose checks hang, and reloads come in the middle of it."""
    port = free_port()
    hanging = [At(f"127.0.0.{20 + i}", port) for i in range(2)]
    for backend in hanging:
        backend.answer = lambda request: wait_until(lambda: False, 3) or text_response(b"late")
    stand.backends.extend(hanging)
    settings = {**dns.resolver, "min_ttl_s": 0.1}
    dns.set("app.test", a("127.0.0.20", ttl=0))
    proxy = stand.proxy({"host": "app.test", "port": port}, resolver=settings,
                        group={"health_check": {"type": "http", "timeout_ms": 2000, "interval_s": 5}})
    for turn in range(6):
        address = f"127.0.0.{20 + (turn + 1) % 2}"
        asked = dns.n_questions("app.test")
        dns.set("app.test", a(address, ttl=0))
        assert wait_until(lambda: dns.n_questions("app.test") > asked + 1)
        config = copy.deepcopy(proxy.config)
        config["target_groups"][0]["timeouts"] = {"idle_ms": 1000 + turn}
        proxy.reload(config)
        assert wait_until(lambda: targets(proxy) == [f"app.test/{address}:{port}"]), (turn, targets(proxy))
    assert proxy.metrics().total("config_reloads_total", result="success") == 6


def test_the_hosts_file_is_read_again_and_leaks_nothing(stand):
    name = socket.gethostname()
    if not re.fullmatch(r"[a-zA-Z0-9.-]+", name):
        pytest.skip("the machine's name is no host name")
    try:
        with open("/etc/hosts", encoding="utf-8", errors="replace") as hosts:
            listed = any(name in line.split("#")[0].split()[1:] for line in hosts)
    except OSError:
        listed = False
    if not listed:
        pytest.skip("the machine's name is not in its hosts file")
    proxy = stand.proxy({"host": name, "port": 9}, resolver={"min_ttl_s": 0.1})
    assert targets(proxy)
    lookups = lambda: proxy.metrics().total("dns_name_lookups_total")
    assert wait_until(lambda: lookups() > 3)
    assert proxy.metrics().total("dns_name_lookup_failures_total") == 0
