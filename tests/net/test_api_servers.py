# SPDX-License-Identifier: Apache-2.0
"""/api: the single-pool view of the model (source 001 "API design"; G3 to G5)."""
import http.client
import json
import os
import re
import threading

from harness.backend import text_response
from harness.process import wait_until
from test_api_server import ADMIN, OPERATE, READ, bearer, tokens

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def is_documented(proxy, method, path, status):
    """Every answer and parameter that a test meets must stand in the OpenAPI document."""
    if not hasattr(proxy, "openapi"):
        proxy.openapi = json.loads(proxy.get("/v1/openapi.json")[1])["paths"]
    path, _, query = path.partition("?")
    for pattern, operations in proxy.openapi.items():
        if re.fullmatch(re.sub(r"\\?\{\w+\\?\}", "[^/]+", re.escape(pattern)), path):
            operation = operations[method.lower()]
            assert str(status) in operation["responses"], (method, path, status)
            known = {parameter["name"] for parameter in operation["parameters"]}
            assert {part.split("=")[0] for part in query.split("&") if part} <= known, (path, query)
            return True
    return False


def call(proxy, method, path, body=None, status=200, fields=()):
    """The decoded answer of the API; `status` is what is expected."""
    assert is_documented(proxy, method, path, status), path
    connection = http.client.HTTPConnection(*proxy.admin, timeout=30)
    try:
        headers = dict(fields)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        text = response.read()
        assert response.status == status, (method, path, response.status, text)
        return json.loads(text) if text else None
    finally:
        connection.close()


def identity(backend):
    return f"127.0.0.1:{backend.target['port']}"


def tagged(*tags):
    """A group of targets nobody connects to, one for each dict of tags."""
    return [{"ip": f"10.0.{i // 250}.{i % 250 + 1}", "port": 80, "tags": tag} for i, tag in enumerate(tags)]


def test_servers_are_listed_with_live_figures_G3(stand):
    good, bad = stand.backends_named("good", "bad")
    proxy = stand.proxy([{**good.target, "tags": {"datacenter": "eu", "canary": ""}}, {**bad.target, "enabled": False}])
    for _ in range(7):
        assert stand.ask().status == 200
    page = call(proxy, "GET", "/api/servers")
    assert page["total"] == 2 and page["next_cursor"] is None and page["target_group"] == "web"
    servers = {server["server_id"]: server for server in page["servers"]}
    server = servers[identity(good)]
    assert server["health"] == server["status"] == "healthy" and server["enabled"] and server["weight"] == 100
    assert server["total_requests"] == 7 and server["error_rate"] == 0 and server["active_connections"] == 0
    assert server["metadata"] == {"datacenter": "eu", "tags": ["canary"]}
    assert servers[identity(bad)]["health"] == "draining" and not servers[identity(bad)]["enabled"]
    assert call(proxy, "GET", f"/api/servers/{identity(good)}")["server_id"] == identity(good)
    assert call(proxy, "GET", "/api/servers/10.9.9.9:1", status=404)["error"]["code"] == "not_found"
    assert call(proxy, "GET", "/api/servers?target_group=none", status=404)["error"]["path"] == "target_group"


def test_the_last_health_check_has_a_time_and_a_result(stand):
    good, gone = stand.backend(name="good"), stand.backend(name="gone")
    target = gone.target
    gone.stop()
    proxy = stand.proxy([good, target], group={"health_check": {"type": "tcp", "interval_s": 1}})
    listed = {s["server_id"]: s for s in call(proxy, "GET", "/api/servers")["servers"]}
    assert listed[identity(good)]["last_health_check_result"] == "ok"
    assert TIME.match(listed[identity(good)]["last_health_check"])
    assert listed[f"127.0.0.1:{target['port']}"]["last_health_check_result"] == "connect-refused"
    assert listed[f"127.0.0.1:{target['port']}"]["health"] == "pending"


def test_servers_are_filtered_by_status_and_tags(stand):
    targets = tagged({"dc": "eu", "v": "1"}, {"dc": "eu", "v": "2", "canary": ""}, {"dc": "us", "v": "1"}, {})
    targets[2]["enabled"] = False
    proxy = stand.serve(stand.config(targets))

    def ids(query):
        return [server["server_id"] for server in call(proxy, "GET", "/api/servers?" + query)["servers"]]

    assert ids("tags=dc=eu") == ["10.0.0.1:80", "10.0.0.2:80"]
    assert ids("tags=dc:eu") == ["10.0.0.1:80", "10.0.0.2:80"]
    assert ids("tags=dc%3Deu,v%3D2") == ["10.0.0.2:80"]
    assert ids("tags=canary") == ["10.0.0.2:80"]
    assert ids("tags=dc") == ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]
    assert ids("status=draining") == ["10.0.0.3:80"]
    assert ids("status=healthy&tags=v=1") == ["10.0.0.1:80"]
    assert ids("status=healthy,draining&tags=v=1") == ["10.0.0.1:80", "10.0.0.3:80"]
    assert ids("status=pending") == []
    assert call(proxy, "GET", "/api/servers?status=ill", status=400)["error"]["path"] == "status"


def pages(proxy, limit, between=lambda: None):
    seen, cursor = [], ""
    while cursor is not None:
        page = call(proxy, "GET", f"/api/servers?limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert len(page["servers"]) <= limit
        seen += [server["server_id"] for server in page["servers"]]
        cursor = page["next_cursor"]
        if cursor:
            between()
    return seen


def test_pages_skip_and_repeat_nothing_while_servers_come_and_go_C_149(stand):
    targets = tagged(*({} for _ in range(500)))
    config = stand.config(targets)
    proxy = stand.serve(config)
    assert sorted(pages(proxy, 20)) == sorted(f"{t['ip']}:80" for t in targets)
    stay = {f"{t['ip']}:80" for t in targets[10:-10]}
    rounds = []

    def change():
        number = len(rounds)
        rounds.append(1)
        if number % 8 == 0:
            fresh = [{"ip": f"10.{number % 100 + 1}.9.{i + 1}", "port": 80} for i in range(10)]
            config["target_groups"][0]["targets"] = fresh[:5] + targets[10:-10] + fresh[5:]
            proxy.reload(config)

    seen = pages(proxy, 20, change)
    assert len(seen) == len(set(seen)) and stay <= set(seen)
    for query in ("limit=0", "limit=-1", "limit=x", "cursor=x", "cursor=zz", "cursor=abc"):
        fault = call(proxy, "GET", "/api/servers?" + query, status=400)["error"]
        assert fault["path"] == query.split("=")[0]
    assert len(call(proxy, "GET", "/api/servers?limit=1000000000")["servers"]) == 490


def test_a_removed_server_is_listed_as_draining_until_its_requests_end(stand):
    gate = threading.Event()
    keep, leave = stand.backends_named("keep", "leave")
    leave.answer = lambda request: gate.wait(30) and text_response(b"late")
    config = stand.config([keep, leave])
    proxy = stand.serve(config)
    waiting = []
    for _ in range(2):
        wire = stand.client(proxy)
        wire.request("GET", "/")
        waiting.append(wire)
    assert wait_until(lambda: call(proxy, "GET", f"/api/servers/{identity(leave)}")["active_connections"] == 1)
    config["target_groups"][0]["targets"] = [keep.target]
    proxy.reload(config)
    server = call(proxy, "GET", f"/api/servers/{identity(leave)}")
    assert server["health"] == "draining" and server["active_connections"] == 1 and not server["enabled"]
    assert call(proxy, "GET", "/api/servers")["total"] == 2
    gate.set()
    assert {wire.read_response("GET").status for wire in waiting} == {200}
    assert wait_until(lambda: call(proxy, "GET", "/api/servers")["total"] == 1)
    call(proxy, "GET", f"/api/servers/{identity(leave)}", status=404)


def test_config_says_what_the_pool_is_set_to(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, group={
        "algorithm": "least_connections", "deregistration_delay_s": 45,
        "health_check": {"type": "http", "path": "/healthz", "interval_s": 5, "timeout_ms": 2000, "unhealthy_threshold": 3,
                         "healthy_threshold": 2},
        "affinity": {"type": "cookie", "cookie": "lb_server", "ttl_s": 1800}})
    assert call(proxy, "GET", "/api/config") == {
        "target_group": "web", "algorithm": "least_connections",
        "health": {"type": "http", "path": "/healthz", "interval_seconds": 5, "timeout_seconds": 2, "unhealthy_threshold": 3,
                   "healthy_threshold": 2},
        "drain_timeout_seconds": 45,
        "session_persistence": {"type": "cookie", "cookie": "lb_server", "ttl_seconds": 1800}}


def test_metrics_show_rates_now_and_by_server_and_a_history_G4(stand):
    backends = stand.backends_named("a", "b")
    proxy = stand.proxy(backends)
    for _ in range(40):
        assert stand.ask().status == 200
    metrics = call(proxy, "GET", "/api/metrics")
    assert metrics["total_requests"] == 40 and metrics["total_requests_per_sec"] > 0
    assert metrics["error_rate"] == 0 and metrics["average_latency_ms"] > 0 and metrics["active_connections"] == 0
    by_server = metrics["requests_by_server"]
    assert {server: figures["total_requests"] for server, figures in by_server.items()} == {identity(b): 20 for b in backends}
    assert metrics["history"]["step_seconds"] == 10
    assert "history" not in call(proxy, "GET", "/api/metrics?history=false")

    def point():
        history = call(proxy, "GET", "/api/metrics")["history"]
        return history if any(p["requests_per_sec"] > 0 for p in history["points"]) else None

    history = wait_until(point, 40, 0.5)
    assert history, "no step with the requests came"
    busy = [p for p in history["points"] if p["requests_per_sec"] > 0]
    assert TIME.match(busy[0]["time"]) and 1 < busy[0]["requests_per_sec"] < 5 and busy[0]["average_latency_ms"] > 0
    assert set(history["requests_by_server"]) == set(by_server)
    assert all(len(rates) == len(history["points"]) for rates in history["requests_by_server"].values())


def test_errors_are_a_part_of_the_requests(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"", "500 Oops")
    proxy = stand.proxy(backend)
    for _ in range(5):
        assert stand.ask().status == 500
    assert call(proxy, "GET", "/api/metrics")["error_rate"] == 1
    assert call(proxy, "GET", "/api/servers")["servers"][0]["error_rate"] == 1


def test_a_session_is_found_by_address_and_ended_G5(stand):
    backends = stand.backends_named("a", "b", "c")
    proxy = stand.proxy(backends, group={"affinity": {"type": "client_ip", "ttl_s": 1800}})
    assert call(proxy, "GET", "/api/sessions?client_ip=127.0.0.1", status=404)["error"]["code"] == "not_found"
    first = stand.ask().get("X-Backend")
    assert {stand.ask().get("X-Backend") for _ in range(5)} == {first}
    session = call(proxy, "GET", "/api/sessions?client_ip=127.0.0.1")
    assert session["server_id"] == identity(next(b for b in backends if b.name == first))
    assert session["client_ip"] == session["session_id"] == "127.0.0.1" and TIME.match(session["created_at"])
    assert 1700 <= session["ttl_remaining_seconds"] <= 1800 and session["target_group"] == "web"
    call(proxy, "DELETE", "/api/sessions/127.0.0.1", status=204)
    call(proxy, "DELETE", "/api/sessions/127.0.0.1", status=404)
    call(proxy, "GET", "/api/sessions?client_ip=127.0.0.1", status=404)
    assert stand.ask().get("X-Backend") != first  # by the algorithm: it is the next one's turn


def test_a_session_is_found_by_the_id_in_its_cookie(stand):
    backends = stand.backends_named("a", "b")
    proxy = stand.proxy(backends, group={"affinity": {"type": "session"}})
    answer = stand.ask()
    session = re.match(r"lb_session=([0-9a-f]{32})", answer.get("Set-Cookie"))[1]
    found = call(proxy, "GET", f"/api/sessions?session_id={session}")
    assert found["session_id"] == session and found["client_ip"] is None
    assert found["server_id"] == identity(next(b for b in backends if b.name == answer.get("X-Backend")))
    call(proxy, "DELETE", f"/api/sessions/{session}", status=204)
    call(proxy, "GET", f"/api/sessions?session_id={session}", status=404)


def test_asking_for_sessions_where_there_are_none(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, group={"affinity": {"type": "cookie"}})
    assert "names the server itself" in call(proxy, "GET", "/api/sessions?client_ip=127.0.0.1", status=404)["error"]["message"]
    assert call(proxy, "GET", "/api/sessions", status=400)["error"]["path"] == "client_ip"
    assert call(proxy, "GET", "/api/sessions?client_ip=x", status=400)["error"]["path"] == "client_ip"


def test_health_says_whether_this_node_is_well_and_how_many_servers_are(stand):
    targets = tagged({}, {}, {})
    targets[1]["enabled"] = False
    proxy = stand.serve(stand.config(targets))
    health = call(proxy, "GET", "/api/health")
    assert health["healthy"] and health["role"] == "primary"
    assert (health["healthy_backends"], health["total_backends"]) == (2, 3)


# Changes. The bodies of source 001 stand here as it has them.

def test_registering_a_server_as_source_001_says_G3(stand):
    first, second = stand.backends_named("first", "second")
    proxy = stand.proxy(first, group={"health_check": {"type": "tcp", "interval_s": 1}})
    answer = call(proxy, "POST", "/api/servers", {
        "address": identity(second), "weight": 50,
        "metadata": {"datacenter": "eu-1", "version": "1.4", "tags": ["canary", "blue"]}}, status=201)
    assert answer["server_id"] == identity(second) and answer["status"] == "pending"
    assert wait_until(lambda: call(proxy, "GET", f"/api/servers/{identity(second)}")["health"] == "healthy")
    server = call(proxy, "GET", f"/api/servers/{identity(second)}")
    assert server["weight"] == 50
    assert server["metadata"] == {"datacenter": "eu-1", "version": "1.4", "tags": ["canary", "blue"]}
    assert {stand.ask().get("X-Backend") for _ in range(4)} == {"first", "second"}
    fault = call(proxy, "POST", "/api/servers", {"address": identity(second)}, status=409)["error"]
    assert (fault["code"], fault["path"]) == ("conflict", "/address")


def test_a_new_server_takes_nothing_before_its_checks_pass(stand):
    first, dead = stand.backends_named("first", "dead")
    dead.stop()
    proxy = stand.proxy(first, group={"health_check": {"type": "tcp", "interval_s": 1}})
    call(proxy, "POST", "/api/servers", {"address": identity(dead)}, status=201)
    assert all(stand.ask().get("X-Backend") == "first" for _ in range(10))
    server = call(proxy, "GET", f"/api/servers/{identity(dead)}")
    assert server["health"] == "pending" and server["total_requests"] == 0


def test_deleting_drains_and_answers_at_once_E1(stand):
    gate = threading.Event()
    keep, leave = stand.backends_named("keep", "leave")
    leave.answer = lambda request: gate.wait(30) and text_response(b"late")
    proxy = stand.proxy([keep, leave], group={"deregistration_delay_s": 20})
    waiting = [stand.client(proxy) for _ in range(2)]
    for wire in waiting:
        wire.request("GET", "/")
    assert wait_until(lambda: call(proxy, "GET", f"/api/servers/{identity(leave)}")["active_connections"] == 1)
    answer = call(proxy, "DELETE", f"/api/servers/{identity(leave)}", status=202)
    assert {key: answer[key] for key in ("server_id", "status", "active_connections", "drain_timeout_seconds")} == {
        "server_id": identity(leave), "status": "draining", "active_connections": 1, "drain_timeout_seconds": 20}
    assert all(stand.ask().get("X-Backend") == "keep" for _ in range(4))
    assert [s["server_id"] for s in call(proxy, "GET", "/api/servers?status=draining")["servers"]] == [identity(leave)]
    gate.set()
    assert {wire.read_response("GET").status for wire in waiting} == {200}
    assert wait_until(lambda: call(proxy, "GET", "/api/servers")["total"] == 1)
    call(proxy, "DELETE", f"/api/servers/{identity(leave)}", status=404)


def test_weight_metadata_and_enabled_change_for_the_next_request(stand):
    backends = stand.backends_named("a", "b")
    proxy = stand.proxy(backends, group={"algorithm": "weighted_round_robin"})
    path = f"/api/servers/{identity(backends[0])}"
    assert call(proxy, "PUT", path, {"weight": 300})["weight"] == 300
    assert sorted(stand.ask().get("X-Backend") for _ in range(8)) == ["a"] * 6 + ["b"] * 2
    assert call(proxy, "PUT", path, {"enabled": False})["health"] == "draining"
    assert all(stand.ask().get("X-Backend") == "b" for _ in range(5))
    assert call(proxy, "PUT", path, {"enabled": True, "metadata": {"rack": 7, "tags": ["x"]}})["metadata"] == {"rack": "7", "tags": ["x"]}
    assert wait_until(lambda: call(proxy, "GET", path)["health"] == "healthy")
    version = call(proxy, "GET", "/api/health")["version"]
    assert call(proxy, "PUT", path, {"weight": 300, "enabled": True})["weight"] == 300  # says nothing new
    assert call(proxy, "GET", "/api/health")["version"] == version
    call(proxy, "PUT", "/api/servers/10.9.9.9:1", {"weight": 1}, status=404)


def test_another_algorithm_is_in_force_on_the_next_decision_B2(stand):
    backends = stand.backends_named("a", "b", "c")
    proxy = stand.proxy(backends)
    assert len({stand.ask().get("X-Backend") for _ in range(6)}) == 3
    wire = stand.client(proxy)

    def served():
        wire.request("GET", "/")
        return wire.read_response("GET").get("X-Backend")

    for algorithm, distinct in (("ip_hash", 1), ("round_robin", 3), ("consistent_hash", 1), ("weighted_round_robin", 3),
                                ("least_connections", 3), ("ip_hash", 1)):
        assert call(proxy, "PUT", "/api/config/algorithm", {"algorithm": algorithm})["algorithm"] == algorithm
        assert len({served() for _ in range(6)}) == distinct, algorithm  # from the very next request on an open connection
        assert call(proxy, "GET", "/api/config")["algorithm"] == algorithm
    fault = call(proxy, "PUT", "/api/config/algorithm", {"algorithm": "fastest"}, status=422)["error"]
    assert fault["path"] == "/algorithm" and "round_robin" in fault["message"]
    call(proxy, "PUT", "/api/config/algorithm", {}, status=422)


def test_other_health_checks_are_in_force_on_the_next_cycle(stand):
    backends = stand.backends_named("a", "b")
    proxy = stand.proxy(backends, group={"health_check": {"type": "http", "path": "/healthz", "interval_s": 60}})
    health = call(proxy, "PUT", "/api/config/health", {"interval_seconds": 1, "timeout_seconds": 0.5, "unhealthy_threshold": 2,
                                                       "healthy_threshold": 1})["health"]
    assert health == {"type": "http", "path": "/healthz", "interval_seconds": 1, "timeout_seconds": 0.5, "unhealthy_threshold": 2,
                      "healthy_threshold": 1}
    backends[1].answer = lambda request: text_response(b"", "500 Oops")
    assert wait_until(lambda: call(proxy, "GET", "/api/servers?status=unhealthy")["total"] == 1, 30)
    for body, path in (({"interval_seconds": -1}, "/interval_seconds"), ({"timeout_seconds": "x"}, "/timeout_seconds"),
                       ({"timeout_seconds": 0}, "/timeout_seconds"), ({"healthy_threshold": 0}, "/healthy_threshold"),
                       ({"unhealthy_threshold": 2.5}, "/unhealthy_threshold")):
        assert call(proxy, "PUT", "/api/config/health", body, status=422)["error"]["path"] == path
    assert call(proxy, "GET", "/api/config")["health"] == health


def test_changes_name_the_field_that_is_wrong_and_change_nothing_C_147(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    version = call(proxy, "GET", "/api/health")["version"]
    for body, status, path in (
            ({}, 422, "/address"), ({"address": "10.0.0.1"}, 422, "/address"), ({"address": ":80"}, 422, "/address"),
            ({"address": "app:80"}, 422, "/address"), ({"address": "::1:80"}, 422, "/address"), ({"address": 5}, 422, "/address"),
            ({"address": "10.0.0.1:0"}, 422, "/address"), ({"address": "0.0.0.0:80"}, 422, "/address"),
            ({"address": "10.0.0.1:80", "weight": 65536}, 422, "/weight"),
            ({"address": "10.0.0.1:80", "weight": "1"}, 422, "/weight"), ({"address": "10.0.0.1:80", "weigth": 1}, 400, "/weigth"),
            ({"address": "10.0.0.1:80", "metadata": []}, 422, "/metadata"),
            ({"address": "10.0.0.1:80", "metadata": {"a": {}}}, 422, "/metadata/a"),
            ({"address": "10.0.0.1:80", "metadata": {"tags": "x"}}, 422, "/metadata/tags"),
            ({"address": "10.0.0.1:80", "metadata": {"tags": [1]}}, 422, "/metadata/tags/0"),
            ({"address": "10.0.0.1:80", "metadata": {"a b": "x"}}, 422, "/metadata/a b"),
            ([], 400, ""), ("{", 400, ""), ('{"address":"1.2.3.4:5","address":"1.2.3.4:6"}', 400, "/address"), ("", 400, "")):
        fault = call(proxy, "POST", "/api/servers", body, status=status)["error"]
        assert fault["path"] == path, (body, fault)
    call(proxy, "POST", "/api/servers", b'{"address": "\xff"}', status=400)
    call(proxy, "POST", "/api/servers", "address=1", status=415, fields={"Content-Type": "application/x-www-form-urlencoded"})
    assert call(proxy, "GET", "/api/servers")["total"] == 1 and call(proxy, "GET", "/api/health")["version"] == version
    call(proxy, "POST", "/api/servers", {"address": "[2001:db8::1]:80"}, status=201)
    assert call(proxy, "GET", "/api/servers/%5B2001:db8::1%5D:80")["address"] == "[2001:db8::1]:80"


def test_the_other_groups_are_named_by_a_parameter(stand):
    a, b, c = stand.backends_named("a", "b", "c")
    config = stand.config(a)
    config["target_groups"].append({**config["target_groups"][0], "name": "other", "targets": [b.target]})
    proxy = stand.serve(config)
    call(proxy, "POST", "/api/servers?target_group=other", {"address": identity(c)}, status=201)
    call(proxy, "PUT", "/api/config/algorithm?target_group=other", {"algorithm": "maglev"})
    assert call(proxy, "GET", "/api/servers?target_group=other")["total"] == 2
    assert call(proxy, "GET", "/api/servers")["total"] == 1
    assert call(proxy, "GET", "/api/config")["algorithm"] == "round_robin"
    assert call(proxy, "GET", "/api/config?target_group=other")["algorithm"] == "maglev"
    call(proxy, "DELETE", f"/api/servers/{identity(b)}?target_group=other", status=202)
    call(proxy, "POST", "/api/servers?target_group=third", {"address": identity(c)}, status=404)


def test_many_writers_at_once_lose_no_change_C_146(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    failed = []

    def add(number):
        try:
            for i in range(5):
                call(proxy, "POST", "/api/servers", {"address": f"10.1.{number}.{i + 1}:80", "weight": 0}, status=201)
                if i % 2:
                    call(proxy, "DELETE", f"/api/servers/10.1.{number}.{i}:80", status=202)
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    left = {s["server_id"] for s in call(proxy, "GET", "/api/servers?limit=1000")["servers"]} - {identity(backend)}
    assert left == {f"10.1.{n}.{i}:80" for n in range(8) for i in (2, 4, 5)}


def test_roles_bound_what_a_token_may_change_G8(stand):
    backend = stand.backend()
    config = stand.config(backend)
    config["admin"]["token_file"] = tokens(stand.folder)
    proxy = stand.serve(config)
    path = f"/api/servers/{identity(backend)}"
    read, operate, admin = bearer(READ), bearer(OPERATE), bearer(ADMIN)
    call(proxy, "GET", "/api/servers", status=401)
    call(proxy, "GET", "/api/servers", fields=read)
    call(proxy, "PUT", path, {"weight": 7}, status=403, fields=read)
    call(proxy, "PUT", path, {"weight": 7}, fields=operate)
    assert call(proxy, "PUT", path, {"metadata": {}}, status=403, fields=operate)["error"]["path"] == "/metadata"
    call(proxy, "POST", "/api/servers", {"address": "10.0.0.1:80"}, status=403, fields=operate)
    call(proxy, "DELETE", path, status=403, fields=operate)
    call(proxy, "PUT", path, {"metadata": {"a": "b"}}, fields=admin)
    call(proxy, "DELETE", path, status=202, fields=admin)
    proxy.admin = None  # the end of the test has no token


def test_what_was_answered_outlives_a_kill_when_there_is_a_store_H1(stand):
    first, second = stand.backends_named("first", "second")
    config = stand.config(first, store={"url": f"sqlite:{stand.folder}/isobar.db"})
    proxy = stand.serve(config)
    # Until the file is version 1, changes are refused by 503.
    assert wait_until(lambda: proxy.admin_request("PUT", "/api/config/algorithm", {"Content-Type": "application/json"},
                                                  body='{"algorithm": "maglev"}')[0] == 200)
    call(proxy, "POST", "/api/servers", {"address": identity(second), "weight": 3}, status=201)
    proxy.kill()
    stand.proxies.remove(proxy)
    os.rename(os.path.join(stand.folder, "isobar0"), os.path.join(stand.folder, "killed"))
    again = stand.serve(config)
    assert {s["server_id"]: s["weight"] for s in call(again, "GET", "/api/servers")["servers"]} == {identity(first): 100, identity(second): 3}
    assert call(again, "GET", "/api/config")["algorithm"] == "maglev"
