# SPDX-License-Identifier: Apache-2.0
"""/v1: resources, versions, preconditions, and that what is answered is in force (G5, G7, G9; C-146, C-147, C-149, C-150)."""
import copy
import json
import os
import signal
import threading

from harness.backend import text_response
from harness.ports import free_port
from harness.process import wait_until
from harness.stand import address_of
from harness.wire import connect


class Api:
    """A client of /v1 on a running isobar."""

    def __init__(self, proxy):
        self.proxy = proxy

    def __call__(self, method, path, body=None, **fields):
        """(status, fields, decoded body)."""
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        status, answered, data = self.proxy.admin_request(method, path, fields, body=body)
        return status, answered, json.loads(data) if data and "json" in answered["Content-Type"] else data or None

    def get(self, path):
        status, _, body = self("GET", path)
        assert status == 200, (path, status, body)
        return body

    def fails(self, status, code, method, path, body=None, **fields):
        got, _, answer = self(method, path, body, **fields)
        assert (got, answer["error"]["code"]) == (status, code), (method, path, got, answer)
        return answer["error"]


def start(stand, *names, **options):
    backends = stand.backends_named(*(names or ("a",)))
    return Api(stand.proxy(backends, **options)), backends


def served_by(stand, n=12, listener=0):
    return {stand.ask(listener=listener).body.decode() for _ in range(n)}


# ---- source 000, as it stands

def test_the_requests_of_source_000_get_the_answers_of_source_000(stand, tmp_path):
    from harness.tls import Authority
    cert = Authority(tmp_path).issue("c-91", "checkout.example")
    api, _ = start(stand)
    status, _, answer = api("POST", "/v1/target-groups", """
  { "protocol": "HTTP", "port": 8080, "algorithm": "p2c_least_request",
    "health_check": { "path": "/healthz", "interval_s": 2, "timeout_ms": 1000,
                      "healthy_threshold": 2, "unhealthy_threshold": 3 },
    "slow_start_s": 30, "deregistration_delay_s": 60 }""", Content_Type="application/json")
    assert status == 201 and answer["tg_id"] == "tg-1", answer
    assert api.get("/api/config?target_group=tg-1")["health"] == {
        "type": "http", "path": "/healthz", "interval_seconds": 2, "timeout_seconds": 1, "unhealthy_threshold": 3,
        "healthy_threshold": 2}
    for number in range(2, 9):
        protocol = "TCP" if number == 8 else "HTTP"
        assert api("POST", "/v1/target-groups", {"protocol": protocol, "port": 5432})[2]["tg_id"] == f"tg-{number}"
    assert api("POST", "/v1/certificates", cert)[2]["cert_id"] == "c-91"
    https, tcp = free_port(), free_port()
    status, _, answer = api("POST", "/v1/load-balancers?dry_run=true", """
  { "name": "checkout", "listeners": [
      { "port": 443, "protocol": "HTTPS", "cert_id": "c-91", "default_target_group": "tg-7" },
      { "port": 5432, "protocol": "TCP", "default_target_group": "tg-8" } ] }""", Content_Type="application/json")
    assert status == 200, answer
    # The same with ports that are free on the machine of the test.
    status, _, answer = api("POST", "/v1/load-balancers", """
  { "name": "checkout", "vip": "127.0.0.1", "listeners": [
      { "port": %d, "protocol": "HTTPS", "cert_id": "c-91", "default_target_group": "tg-7" },
      { "port": %d, "protocol": "TCP", "default_target_group": "tg-8" } ] }""" % (https, tcp),
                           Content_Type="application/json")
    assert status == 201 and answer["lb_id"] == "checkout" and answer["vip"] == "127.0.0.1", answer
    assert "dns_name" in answer
    status, _, answer = api("PUT", "/v1/target-groups/tg-7/targets",
                            """{ "targets": [{ "ip": "10.1.4.21", "port": 8080, "weight": 100 }] }""",
                            Content_Type="application/json")
    assert status == 200 and answer["targets"][0]["id"] == "10.1.4.21:8080", answer
    status, _, answer = api("GET", "/v1/target-groups/tg-7/health")
    assert status == 200 and answer[0]["target"] == "10.1.4.21:8080" and "reason" in answer[0], answer
    status, _, answer = api("DELETE", "/v1/target-groups/tg-7/targets/10.1.4.21:8080")
    assert status == 202 and answer["state"] == "draining" and answer["until"].endswith("Z"), answer
    assert api.get("/v1/target-groups/tg-7/health") == []
    api.proxy.baseline += 2  # sockets: the new listeners'


def test_a_group_names_the_port_of_its_targets(stand):
    api, (backend,) = start(stand)
    group = {"name": "second", "port": backend.port, "health_check": {"type": "none"}, "targets": [{"ip": "127.0.0.1"}]}
    assert api("POST", "/v1/target-groups", group)[0] == 201
    assert api.get("/v1/target-groups/second/targets")["items"][0]["id"] == f"127.0.0.1:{backend.port}"
    assert api.get("/v1/target-groups/second/health")[0]["state"] == "healthy"


# ---- what is answered is in force

def test_changes_are_in_force_when_they_are_answered(stand):
    api, (a, b) = start(stand, "a", "b")
    assert served_by(stand) == {"a", "b"}
    status, _, answer = api("DELETE", f"/v1/target-groups/web/targets/{a.label}")
    assert status == 202
    assert served_by(stand) == {"b"}
    assert api("PUT", f"/v1/target-groups/web/targets/{a.label}", {})[0] == 201
    assert served_by(stand) == {"a", "b"}
    assert api("PATCH", f"/v1/target-groups/web/targets/{b.label}", {"weight": 0})[0] == 200
    assert served_by(stand) == {"a"}
    assert api("PATCH", f"/v1/target-groups/web/targets/{b.label}", {"weight": None, "enabled": False})[0] == 200
    assert served_by(stand) == {"a"}
    version = api.get("/v1/versions")["items"][0]["version"]
    assert version == 5 and answer["version"] == 2


def test_listeners_and_rules_come_and_go(stand):
    api, _ = start(stand)
    port = free_port()
    listener = {"port": port, "rules": [{"match": {"path_prefix": "/x"}, "respond": {"status": 201}}]}
    status, fields, answer = api("POST", "/v1/load-balancers/lb/listeners", listener)
    assert status == 201 and fields["Location"] == f"/v1/load-balancers/lb/listeners/{port}", answer

    def ask(path):
        wire = connect(("127.0.0.1", port), 20)
        wire.request("GET", path, [("Connection", "close")])
        status = wire.read_response("GET").status
        wire.close()
        return status

    assert (ask("/x"), ask("/y")) == (201, 404)
    rules = f"/v1/load-balancers/lb/listeners/{port}/rules"
    status, fields, answer = api("POST", rules, {"match": {"path": "/y"}, "deny": {"status": 418}})
    assert (status, answer["name"], ask("/y")) == (201, "rule-1", 418)
    assert api("PUT", rules + "/rule-1", {"match": {"path": "/y"}, "deny": {"status": 451}})[0] == 200
    assert ask("/y") == 451
    unnamed = api.get(rules)["items"][0]["id"]
    assert unnamed.startswith("rule.") and api("DELETE", f"{rules}/{unnamed}")[0] == 200
    assert ask("/x") == 404
    api.fails(404, "not_found", "DELETE", f"{rules}/{unnamed}")
    assert api("DELETE", f"/v1/load-balancers/lb/listeners/{port}")[0] == 200
    assert wait_until(lambda: _refused(port))


def _refused(port):
    try:
        connect(("127.0.0.1", port), 5).close()
        return False
    except OSError:
        return True


def test_an_address_in_use_changes_nothing(stand):
    api, _ = start(stand)
    taken = stand.backend(name="other").port
    error = api.fails(409, "cannot_apply", "POST", "/v1/load-balancers/lb/listeners",
                      {"port": taken, "default_target_group": "web"})
    assert str(taken) in error["message"]
    assert len(api.get("/v1/versions")["items"]) == 1
    assert len(api.get("/v1/load-balancers/lb/listeners")["items"]) == 1
    assert api("POST", "/v1/target-groups", {"name": "after"})[2]["version"] == 2


# ---- faults

def test_faults_name_their_place_in_the_body(stand):
    api, _ = start(stand)
    groups = "/v1/target-groups"
    assert api.fails(422, "invalid", "POST", groups, {"name": "x", "targets": [{"ip": "10.0.0.1", "port": 70000}]})["path"] \
        == "/targets/0/port"
    assert api.fails(422, "invalid", "PUT", groups + "/web", {"algoritm": "random"})["path"] == "/algoritm"
    assert api.fails(422, "invalid", "PATCH", groups + "/web", {"health_check": {"port": -1}})["path"] == "/health_check/port"
    errors = api.fails(422, "invalid", "POST", groups, {"name": "x", "algorithm": 1, "slow_start_s": -1})["errors"]
    assert {error["path"] for error in errors} == {"/algorithm", "/slow_start_s"}
    api.fails(422, "invalid", "PUT", groups + "/web", {"name": "other"})
    api.fails(409, "conflict", "POST", groups, {"name": "web"})
    api.fails(409, "in_use", "DELETE", groups + "/web")
    api.fails(404, "not_found", "GET", groups + "/none")
    api.fails(404, "not_found", "GET", groups + "/none/targets")
    api.fails(404, "not_found", "PATCH", groups + "/none", {"weight": 1})
    api.fails(404, "not_found", "DELETE", groups + "/web/targets/10.0.0.1:1")
    api.fails(405, "method_not_allowed", "DELETE", "/v1/config")
    assert api.get("/v1/versions")["items"][0]["version"] == 1, "nothing of this changed anything"


def test_broken_bodies_are_refused_where_they_are_broken_C_150(stand):
    api, _ = start(stand)
    before = api.get("/v1/config")
    json_type = {"Content_Type": "application/json"}
    for body in (b"{", b"", b'{"a": NaN}', b'{"name": "\xff"}', b"[" * 100000, b'{"a":' * 100000, b'{"name": "x"} x', b"[]",
                 b'{"name": "a", "name": "b"}', b'{"name": "a\\u0000"}'):
        error = api.fails(400, "bad_body", "POST", "/v1/target-groups", body, **json_type)
        assert error["message"], body[:20]
    assert api.fails(400, "bad_body", "POST", "/v1/target-groups", b'{"name": "a", "name": "b"}', **json_type)["path"] == "/name"
    api.fails(415, "unsupported_media_type", "POST", "/v1/target-groups", b"name=x",
              Content_Type="application/x-www-form-urlencoded")
    for weight in (2**63, 2**64, 1e300, -1, 1.5, "5", True):
        group = {"name": "x", "targets": [{"ip": "10.0.0.1", "port": 1, "weight": weight}]}
        assert api.fails(422, "invalid", "POST", "/v1/target-groups", group)["path"] == "/targets/0/weight"
    assert api.get("/v1/config") == before


def test_failed_changes_leave_nothing_behind_C_147(stand):
    api, (backend,) = start(stand)
    for _ in range(200):
        api.fails(422, "invalid", "POST", "/v1/target-groups", {"name": "x", "targets": [{}]})
        api.fails(412, "precondition_failed", "PUT", "/v1/target-groups/web", {}, If_Match='"nonsense"')
    for _ in range(20):
        wire = connect(api.proxy.admin, 20)
        wire.send(b"PUT /v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"load_balancers\": [")
        wire.close()
    status, _, answer = api("PATCH", f"/v1/target-groups/web/targets/{backend.label}", {"weight": 7})
    assert (status, answer["version"]) == (200, 2)
    assert stand.ask().status == 200


# ---- preconditions and concurrency

def test_of_two_writers_one_wins_C_146(stand):
    api, (backend,) = start(stand)
    path = f"/v1/target-groups/web/targets/{backend.label}"
    etags = [api("GET", path)[1]["ETag"] for _ in range(2)]
    assert etags[0] == etags[1]
    assert api("PUT", path, {"weight": 1}, If_Match=etags[0])[0] == 200
    api.fails(412, "precondition_failed", "PUT", path, {"weight": 2}, If_Match=etags[1])
    assert api.get(path)["weight"] == 1
    status, fields, body = api("GET", path, If_None_Match=api("GET", path)[1]["ETag"])
    assert (status, body) == (304, None)
    api.fails(412, "precondition_failed", "PUT", path, {"weight": 2}, If_None_Match="*")
    api.fails(412, "precondition_failed", "PUT", "/v1/target-groups/new", {}, If_Match="*")
    version = api("GET", "/v1/config")[1]["ETag"]
    assert api("PUT", path, {"weight": 3})[0] == 200
    api.fails(412, "precondition_failed", "PUT", "/v1/config", api.get("/v1/config"), If_Match=version)


def test_fifty_parallel_increments_lose_nothing_C_146(stand):
    api, (backend,) = start(stand)
    path = f"/v1/target-groups/web/targets/{backend.label}"
    assert api("PATCH", path, {"weight": 100})[0] == 200
    failures = []

    def increment():
        for _ in range(500):
            _, fields, item = api("GET", path)
            status, _, answer = api("PATCH", path, {"weight": item["weight"] + 1}, If_Match=fields["ETag"])
            if status == 200:
                return
            if status != 412:
                failures.append((status, answer))
                return
        failures.append("never")

    threads = [threading.Thread(target=increment) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert api.get(path)["weight"] == 150


def test_repeating_a_put_makes_no_version(stand):
    api, (backend,) = start(stand)
    path = f"/v1/target-groups/web/targets/{backend.label}"
    assert api("PUT", path, {"weight": 5})[2]["version"] == 2
    assert api("PUT", path, {"weight": 5})[2]["version"] == 2
    assert api("PUT", path, api.get(path))[2]["version"] == 2, "what was read can be written"
    assert api("PUT", "/v1/config", api.get("/v1/config"))[2] == {"version": 2, "changes": []}


def test_a_post_with_a_key_is_made_once(stand):
    api, _ = start(stand)
    first = api("POST", "/v1/target-groups", {"port": 1}, Idempotency_Key="k1")
    again = api("POST", "/v1/target-groups", {"port": 1}, Idempotency_Key="k1")
    assert first[0] == again[0] == 201 and first[2] == again[2] and first[1]["Location"] == again[1]["Location"]
    assert len(api.get("/v1/target-groups")["items"]) == 2
    api.fails(422, "key_reused", "POST", "/v1/target-groups", {"port": 2}, Idempotency_Key="k1")
    api.fails(422, "invalid", "POST", "/v1/target-groups", {"port": 0}, Idempotency_Key="k2")
    assert api("POST", "/v1/target-groups", {"port": 3}, Idempotency_Key="k2")[0] == 201, "a failure is forgotten"


# ---- lists

def test_pages_skip_and_repeat_nothing_while_the_list_changes_C_149(stand):
    api, _ = start(stand)
    targets = [{"ip": f"10.1.{i // 250}.{i % 250}", "port": 80, "tags": {"zone": "ab"[i % 2]}} for i in range(500)]
    path = "/v1/target-groups/many/targets"
    api("POST", "/v1/target-groups", {"name": "many", "health_check": {"type": "none"}, "targets": targets})
    everything = [item["id"] for item in api.get(path + "?limit=1000")["items"]]
    assert len(everything) == 500
    gone, seen, cursor, turn = set(), [], "", 0
    while cursor is not None:
        page = api.get(f"{path}?limit=20{cursor and '&cursor=' + cursor}")
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if turn < 10:
            for victim in (everything[turn], everything[-1 - turn]):
                assert api("DELETE", f"{path}/{victim}")[0] == 202
                gone.add(victim)
            assert api("PUT", f"{path}/10.0.0.{turn}:80", {})[0] == 201
            assert api("PUT", f"{path}/10.9.0.{turn}:80", {})[0] == 201
        turn += 1
    assert len(seen) == len(set(seen)), "something was shown twice"
    assert set(everything) - gone <= set(seen), "something was left out"
    assert len(api.get(path + "?tags.zone=a&limit=1000")["items"]) == len({t for t in set(everything) - gone
                                                                          if int(t.split(".")[3].split(":")[0]) % 2 == 0})
    for query in ("limit=0", "limit=-1", "limit=x", "cursor=zz", "cursor=abc", "nonsense=1"):
        api.fails(400, "invalid", "GET", f"{path}?{query}")
    assert len(api.get(path + "?limit=1000000000")["items"]) == len(everything) - len(gone) + 20


def test_lists_are_filtered_by_what_items_say_or_leave_to_the_default(stand):
    api, _ = start(stand)
    api("POST", "/v1/target-groups", {"name": "tcp", "protocol": "TCP"})
    api("POST", "/v1/target-groups", {"name": "plain"})
    names = [item["id"] for item in api.get("/v1/target-groups?protocol=HTTP")["items"]]
    assert names == ["plain", "web"]
    assert [item["id"] for item in api.get("/v1/target-groups?protocol=TCP")["items"]] == ["tcp"]


# ---- the whole document

def test_what_the_file_says_the_api_says_and_back_G9(stand):
    api, backends = start(stand, "a", "b")
    original = copy.deepcopy(api.proxy.config)
    assert api.get("/v1/config") == original
    changed = copy.deepcopy(original)
    changed["target_groups"][0]["targets"].pop()
    changed["via"] = True
    status, fields, answer = api("PUT", "/v1/config", changed)
    assert (status, fields["ETag"], answer["version"]) == (200, '"2"', 2)
    assert {change["object"] for change in answer["changes"]} == {"config", "target_groups/web"}
    assert api.get("/v1/config") == changed and served_by(stand) == {"a"}
    api.proxy.reload(api.get("/v1/config"))
    assert api.get("/v1/config") == changed
    status, _, answer = api("POST", "/v1/versions/1/rollback")
    assert status == 200 and api.get("/v1/config") == original and served_by(stand) == {"a", "b"}
    again = stand.serve({**api.get("/v1/config"), "admin": {"listen": f"127.0.0.1:{free_port()}"},
                         "load_balancers": [{"name": "lb", "vip": "127.0.0.1", "listeners": [
                             {"port": free_port(), "protocol": "HTTP", "default_target_group": "web"}]}]})
    assert stand.ask(proxy=again).status == 200


def test_yaml_is_taken_for_the_whole(stand):
    api, _ = start(stand)
    listener = api.proxy.config["load_balancers"][0]["listeners"][0]["port"]
    text = (f"load_balancers: [{{ name: lb, vip: 127.0.0.1, listeners: [{{ port: {listener}, default_target_group: web }}] }}]\n"
            "target_groups:\n- name: web\n  targets: []\n")
    status, _, answer = api("PUT", "/v1/config", text, Content_Type="application/yaml")
    assert status == 200, answer
    assert api.get("/v1/config")["target_groups"] == [{"name": "web", "targets": []}]
    assert api.get("/v1/config")["admin"] == api.proxy.config["admin"]


def test_the_file_of_the_node_rules_over_what_reaches_it(stand):
    api, _ = start(stand)
    config = api.get("/v1/config")
    config["admin"] = {"listen": "127.0.0.1:1"}
    assert api.fails(422, "invalid", "PUT", "/v1/config", config)["path"] == "/admin"


def test_a_dry_run_says_what_a_change_would_mean(stand):
    api, (a, b) = start(stand, "a", "b", group={"algorithm": "maglev"})
    config = api.get("/v1/config")
    config["target_groups"][0]["targets"].append({"ip": "127.0.0.1", "port": 9})
    config["target_groups"][0]["targets"][0]["enabled"] = False
    status, _, answer = api("PUT", "/v1/config?dry_run=true", config)
    assert status == 200 and answer["dry_run"] and answer["version"] == 1
    impact = answer["impact"]
    assert impact["targets_added"] == [{"target_group": "web", "target": "127.0.0.1:9"}]
    assert impact["targets_drained"] == [{"target_group": "web", "target": a.label}]
    group = impact["target_groups"][0]
    assert group["capacity_before"] == group["capacity_after"] == 200 and 45 < group["hash_keys_moved_pct"] < 80
    assert len(api.get("/v1/versions")["items"]) == 1
    status, _, answer = api("DELETE", f"/v1/target-groups/web/targets/{b.label}?dry_run=true")
    assert (status, answer["impact"]["targets_removed"]) == (200, [{"target_group": "web", "target": b.label}])
    api.fails(422, "invalid", "POST", "/v1/target-groups?dry_run=true", {"algorithm": "x"})
    assert api.get("/v1/versions")["items"][0]["version"] == 1


def test_versions_say_who_and_what(stand):
    api, (a,) = start(stand)
    api("PATCH", f"/v1/target-groups/web/targets/{a.label}", {"weight": 9})
    items = api.get("/v1/versions?limit=1")
    assert [item["version"] for item in items["items"]] == [2] and items["items"][0]["who"] == "local"
    assert items["items"][0]["changes"][0]["object"] == "target_groups/web"
    older = api.get(f"/v1/versions?limit=1&cursor={items['next_cursor']}")
    assert [item["version"] for item in older["items"]] == [1] and older["next_cursor"] is None
    assert api.get("/v1/versions/1")["config"] == api.proxy.config
    api.fails(404, "not_found", "GET", "/v1/versions/3")
    api.fails(404, "not_found", "POST", "/v1/versions/x/rollback")


def test_a_reload_is_a_version_like_any_other(stand):
    api, (a, b) = start(stand, "a", "b")
    api("PATCH", f"/v1/target-groups/web/targets/{a.label}", {"weight": 0})
    api.proxy.reload()
    assert api.get("/v1/versions")["items"][0]["who"] == "file"
    assert api.get("/v1/config") == api.proxy.config and served_by(stand) == {"a", "b"}


def read_file(path):
    with open(path, encoding="ascii") as text:
        return text.read()


def test_key_material_comes_in_and_never_out(stand, tmp_path):
    from harness.tls import Authority, tls_wire
    authority = Authority(tmp_path)
    first, second = (authority.issue(name, "shop.example") for name in ("first", "second"))
    api, _ = start(stand)
    port = free_port()
    cert, key = read_file(first["cert_file"]), read_file(first["key_file"])
    status, _, answer = api("POST", "/v1/certificates", {"name": "shop", "cert_pem": cert, "key_pem": key})
    assert status == 201 and answer["key_pem"] == "<secret>" and answer["cert_pem"] == cert
    assert api("POST", "/v1/load-balancers/lb/listeners",
               {"port": port, "protocol": "HTTPS", "certificates": "shop", "default_target_group": "web"})[0] == 201
    api.proxy.baseline += 1
    api.proxy.config["load_balancers"][0]["listeners"].append({"port": port})

    def answers():
        wire = tls_wire(("127.0.0.1", port), authority.context(), "shop.example")
        wire.request("GET", "/", [("Connection", "close")])
        status = wire.read_response("GET").status
        wire.close()
        return status

    assert answers() == 200
    for path in ("/v1/certificates", "/v1/certificates/shop", "/v1/config", "/v1/versions", "/v1/versions/2"):
        assert "PRIVATE KEY" not in json.dumps(api.get(path)), path
    version = api.get("/v1/versions")["items"][0]["version"]
    assert api("PUT", "/v1/config", api.get("/v1/config"))[2]["version"] == version, "what was shown can be written back"
    assert api("PUT", "/v1/certificates/shop", api.get("/v1/certificates/shop"))[2]["version"] == version
    assert api("PATCH", "/v1/certificates/shop", {"max_version": "1.2"})[0] == 200 and answers() == 200
    mismatch = {"cert_pem": read_file(second["cert_file"]), "key_pem": key}
    assert "key" in api.fails(422, "invalid", "PUT", "/v1/certificates/shop", mismatch)["path"]
    api.fails(422, "invalid", "PUT", "/v1/certificates/shop", {"cert_pem": read_file(second["cert_file"])})
    api.fails(422, "invalid", "PUT", "/v1/certificates/shop", {"cert_pem": "nonsense", "key_pem": key})
    assert api("PUT", "/v1/certificates/shop", {"cert_pem": read_file(second["cert_file"]),
                                                "key_pem": read_file(second["key_file"])})[0] == 200
    assert answers() == 200
    api.fails(409, "in_use", "DELETE", "/v1/certificates/shop")


# ---- draining and the end

def test_a_deleted_target_ends_what_it_has_E1(stand):
    slow = threading.Event()

    def answer(request):
        slow.wait(20)
        return text_response(b"slow")

    backend = stand.backend(name="slow")
    backend.answer = answer
    api = Api(stand.proxy([backend, stand.backend(name="other")]))
    wire = None
    for _ in range(4):
        wire = stand.client()
        wire.request("GET", "/")
        if wait_until(lambda: len(backend.requests) > 0, 1):
            break
    status, _, answered = api("DELETE", f"/v1/target-groups/web/targets/{backend.label}")
    assert status == 202 and answered["state"] == "draining"
    states = {item["target"]: item for item in api.get("/v1/target-groups/web/health")}
    assert states[backend.label]["state"] == "draining" and states[backend.label]["in_flight"] == 1
    assert served_by(stand) == {"other"}
    slow.set()
    assert wire.read_response("GET").body == b"slow"
    assert wait_until(lambda: backend.label not in {item["target"] for item in api.get("/v1/target-groups/web/health")})


def test_no_change_is_begun_while_the_process_ends_C_150(stand):
    api, _ = start(stand, lame_duck_s=3)
    api.proxy.signal(signal.SIGTERM)
    assert wait_until(lambda: api.proxy.get("/healthz")[0] == 503)
    api.fails(503, "shutting_down", "POST", "/v1/target-groups", {"name": "late"})
    assert api("GET", "/v1/target-groups")[0] == 200
    assert api.proxy.process.wait(30) == 0


def test_a_change_reads_no_file_that_it_is_not_about(stand, tmp_path):
    """Tokens and certificates are what they were at the last reload, whatever became of their files since."""
    from harness.tls import Authority
    cert = Authority(tmp_path).issue("shop", "shop.example")
    path = os.path.join(stand.folder, "tokens")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
        out.write("admin aaaaaaaaaaaaaaaa\n")
    backend = stand.backend()
    config = stand.config(backend, certificates=[cert])
    config["admin"]["token_file"] = path
    api = Api(stand.serve(config, ready=False))
    api.proxy.token = "a" * 16
    api.proxy.ready()
    for name in (path, cert["cert_file"], cert["key_file"]):
        os.unlink(name)
    assert api("PATCH", f"/v1/target-groups/web/targets/{backend.label}", {"weight": 1})[0] == 200
    api.proxy.reload()
    assert "tokens" in api.proxy.stderr and api.get("/v1/versions")["items"][0]["version"] == 2


def test_roles_may_do_what_they_are_for_G8(stand):
    path = os.path.join(stand.folder, "tokens")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
        out.write("read rrrrrrrrrrrrrrrr\noperate oooooooooooooooo night-shift\nadmin aaaaaaaaaaaaaaaa\n")
    backend = stand.backend()
    config = stand.config(backend)
    config["admin"]["token_file"] = path
    api = Api(stand.serve(config))
    target = f"/v1/target-groups/web/targets/{backend.label}"
    api.proxy.token = "r" * 16
    assert api("GET", "/v1/config")[0] == 200
    api.fails(403, "forbidden", "PATCH", target, {"weight": 1})
    api.proxy.token = "o" * 16
    assert api("PATCH", target, {"weight": 1, "enabled": True})[0] == 200
    api.fails(403, "forbidden", "PATCH", target, {"port": 1})
    api.fails(403, "forbidden", "PATCH", "/v1/target-groups/web", {"algorithm": "random"})
    api.fails(403, "forbidden", "DELETE", target)
    assert api.get("/v1/versions")["items"][0]["who"] == "night-shift"
    api.proxy.token = None
    api.fails(401, "unauthorized", "GET", "/v1/config")
    api.proxy.token = "a" * 16
    assert api("PATCH", "/v1/target-groups/web", {"algorithm": "random"})[0] == 200
