# SPDX-License-Identifier: Apache-2.0
"""Reads the API's own description and walks it: every operation with every answer that it documents, none left out."""
import json
import os
import signal
import sqlite3
import threading

from harness.ports import free_port
from harness.process import wait_until
from harness.tls import Authority
from test_api_v1 import Api
from test_basic_auth import credentials, password_file
from test_store_api import settled

READ, ADMIN = "r" * 16, "a" * 16
GROUP = {"health_check": {"type": "none"}, "targets": [{"ip": "127.0.0.1", "port": 9}]}


class Walk:
    """What the walk needs to know beside the description: bodies that make sense, and names of what is there."""

    def __init__(self, stand):
        path = os.path.join(stand.folder, "tokens")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
            out.write(f"read {READ}\nadmin {ADMIN}\n")
        config = stand.config(stand.backend(), lame_duck_s=20, nodes=[{"name": "n1", "ip": "10.0.0.1"}])
        config["load_balancers"][0]["listeners"][0].update(name="l1", rules=[
            {"name": "r1", "match": {"path": "/x"}, "respond": {"status": 200}}])
        config["target_groups"][0]["affinity"] = {"type": "client_ip"}
        config["target_groups"].append({"name": "g1", **GROUP})
        config["admin"]["token_file"] = path
        self.store = os.path.join(stand.folder, "store.db")
        config["store"] = {"url": f"sqlite:{self.store}"}
        # Slow to compare, so that two questions meet.
        config["load_balancers"][0]["listeners"][0]["rules"].append({"name": "slow", "match": {"path": "/slow"}, "forward": [
            {"target_group": "g1"}], "basic_auth": {"password_file": password_file(stand, ["u:$6$rounds=999999$abcdefgh$" + "x" * 86])}})
        self.authority = Authority(stand.folder)
        config["certificates"] = [self.authority.issue("c1", "x.example")]
        self.proxy = stand.serve(config, ready=False)
        self.proxy.token = ADMIN
        settled(self.proxy.ready())
        self.api = Api(self.proxy)
        self.number = 0
        self.seen = {}
        self.description = self.api.get("/v1/openapi.json")

    known = {"load_balancer": "lb", "listener": "l1", "rule": "r1", "target_group": "g1", "target": "127.0.0.1:9",
             "node": "n1", "certificate": "c1", "version": "1", "server_id": "127.0.0.1:9", "session_id": "127.0.0.1"}

    def fresh(self):
        self.number += 1
        return self.number

    def item(self, kind):
        """A body for a new item of a kind, and its name in paths."""
        n = self.fresh()
        name = f"x{n}"
        return {
            "load-balancers": ({"name": name, "listeners": []}, name),
            "listeners": ({"name": name, "port": free_port(), "default_target_group": "g1"}, name),
            "rules": ({"name": name, "match": {"path": f"/{n}"}, "deny": {}}, name),
            "target-groups": ({"name": name, **GROUP}, name),
            "targets": ({"ip": "127.0.0.1", "port": 10000 + n}, f"127.0.0.1:{10000 + n}"),
            "nodes": ({"name": name, "ip": f"10.1.0.{n}"}, name),
            "certificates": (self.authority.issue(name, "x.example"), name) if kind == "certificates" else None,
        }[kind]

    def fill(self, path, **other):
        for name, value in {**self.known, **other}.items():
            path = path.replace("{" + name + "}", value)
        return path

    def write_as_another(self):
        """What another node's commit does; its document is the one that is in force."""
        with sqlite3.connect(self.store, timeout=20) as database:
            database.execute("INSERT INTO versions (number, created_at, who, token, diff, document, bytes, in_tables)"
                             " SELECT number + 1, 0, 'other', 'other' || number, '[]', document, bytes, in_tables FROM versions"
                             " ORDER BY number DESC LIMIT 1")
        database.close()

    def conflict(self, operation, path, body=lambda: None):
        """Another node's version comes in between. One that was seen before the request came makes it pass: then again."""
        for _ in range(20):
            change = body()
            self.write_as_another()
            got, _, answer = self.api(operation[1].upper(), path(change) if callable(path) else path, change)
            assert got in (200, 201, 202, 409), (operation, got, answer)
            if got == 409:
                assert answer["error"]["code"] == "conflict", (operation, answer)
                break
        assert got == 409, (operation, "never met the other node")
        self.seen.setdefault(operation, set()).add("409")
        newest = int(answer["error"]["message"].split("version ")[1].split(";")[0])
        assert wait_until(lambda: self.api("GET", "/v1/config")[1]["ETag"] == f'"{newest}"')

    def until(self, operation, status, path, body, code):
        """An answer that needs others to ask at the same time."""
        assert wait_until(lambda: (answer := self.api(operation[1].upper(), path, body))[0] == status and
                          answer[2]["error"]["code"] == code, timeout_s=60)
        self.seen.setdefault(operation, set()).add(str(status))

    def __call__(self, operation, status, method, path, body=None, code=None, **fields):
        token = fields.pop("token", ADMIN)
        self.proxy.token = token
        got, answered, answer = self.api(method, path, body, **fields)
        self.proxy.token = ADMIN
        assert got == status, (method, path, got, answer, status)
        documented = self.description["paths"][operation[0]][operation[1]]["responses"]
        assert str(status) in documented, (operation, status, "is not documented")
        self.seen.setdefault(operation, set()).add(str(status))
        if status >= 400:
            assert set(answer["error"]) >= {"code", "path", "message"} and (code is None or answer["error"]["code"] == code)
        return answered, answer


def walk_errors_of_all(walk, operation, role):
    """What any operation may answer, whatever it does."""
    path, method = operation
    target, verb = walk.fill(path), method.upper()
    has_body = verb in ("POST", "PUT", "PATCH") and "rollback" not in path
    responses = walk.description["paths"][path][method]["responses"]
    if role != "open":
        walk(operation, 401, verb, target, token=None, code="unauthorized")
        walk(operation, 401, verb, target, token="nobody-knows-this", code="unauthorized")
    if role == "read" and path != "/metrics":
        walk(operation, 403, verb, target, Origin="http://evil.example", code="forbidden")
    if role in ("operate", "admin"):
        walk(operation, 403, verb, target, token=READ, code="forbidden")
    if "415" in responses and has_body:
        walk(operation, 415, verb, target, b"x", Content_Type="text/plain")
    if "413" in responses and has_body:
        walk(operation, 413, verb, target, b" " * 100, Content_Length="20000000")
    if "400" in responses and has_body:
        walk(operation, 400, verb, target, b"{", Content_Type="application/json")
    if "412" in responses and path != "/v1/versions/{version}/rollback":
        body = {} if has_body else None
        walk(operation, 412, verb, target, body, If_Match='"never"', code="precondition_failed")
    if "412" in responses and "rollback" in path:
        walk(operation, 412, verb, target, If_Match='"never"')


def walk_resource(walk, path, kind):
    """Collection and item of one resource."""
    item_path = next(p for p in walk.description["paths"] if p.startswith(path + "/{") and p.count("/") == path.count("/") + 1)
    collection, key = walk.fill(path), kind.replace("-", "_")
    body, name = walk.item(kind)
    walk((path, "post"), 200, "POST", collection + "?dry_run=true", body)
    walk((path, "post"), 201, "POST", collection, body)
    walk((path, "post"), 409, "POST", collection, body, code="conflict")
    walk((path, "post"), 422, "POST", collection, {**walk.item(kind)[0], "no_such_key": 1}, code="invalid")
    fields, page = walk((path, "get"), 200, "GET", collection)
    assert name in [item["id"] for item in page["items"]]
    walk((path, "get"), 304, "GET", collection, If_None_Match=fields["ETag"])
    walk((path, "get"), 400, "GET", collection + "?limit=0")
    items = [{k: v for k, v in item.items() if k != "id"} for item in page["items"]]
    walk((path, "put"), 200, "PUT", collection, {key: items})
    walk((path, "put"), 422, "PUT", collection, {"something": []})
    one = f"{collection}/{name}"
    fields, _ = walk((item_path, "get"), 200, "GET", one)
    walk((item_path, "get"), 304, "GET", one, If_None_Match=fields["ETag"])
    walk((item_path, "patch"), 200, "PATCH", one, {})
    walk((item_path, "patch"), 422, "PATCH", one, {"no_such_key": 1})
    walk((item_path, "put"), 200, "PUT", one, body)
    walk((item_path, "put"), 422, "PUT", one, {**body, "no_such_key": 1})
    walk((item_path, "delete"), 202 if kind == "targets" else 200, "DELETE", one)
    walk((item_path, "put"), 201, "PUT", one, body)
    for method in ("get", "patch", "delete"):
        walk((item_path, method), 404, method.upper(), collection + "/nothing-of-that-name:1", {} if method == "patch" else None)
    walk_conflicts(walk, path, item_path, kind, items)
    if "{" in path:
        for target, methods in ((path, ("get", "post", "put")), (item_path, ("get", "put", "patch", "delete"))):
            for method in methods:
                nowhere = walk.fill(target, load_balancer="none", target_group="none")
                walk((target, method), 404, method.upper(), nowhere, {key: []} if (target, method) == (path, "put") else
                     {} if method in ("post", "put", "patch") else None)


def walk_conflicts(walk, path, item_path, kind, items):
    """Each change of a resource, on what is there, as another node is faster."""
    collection, key = walk.fill(path), kind.replace("-", "_")

    def fresh():
        """A new item, once it is there."""
        body, name = walk.item(kind)
        assert walk.api("POST", collection, body)[0] == 201
        fresh.name, fresh.body = name, body
        return changed()

    def changed():
        return {**fresh.body, **{"targets": {"weight": 5}, "nodes": {"weight": 5}, "target-groups": {"slow_start_s": walk.fresh()},
                                 "rules": {"deny": {"status": 400 + walk.fresh() % 100}}, "certificates": {"max_version": "1.2"},
                                 "listeners": {"security_headers": True}, "load-balancers": {"vip": f"127.0.1.{walk.fresh() % 250 + 1}"}}[kind]}

    def one(_):
        return f"{collection}/{fresh.name}"

    walk.conflict((path, "post"), collection, lambda: walk.item(kind)[0])
    walk.conflict((path, "put"), collection, lambda: {key: items + [walk.item(kind)[0]]})
    walk.conflict((item_path, "put"), one, fresh)
    walk.conflict((item_path, "patch"), one, fresh)
    walk.conflict((item_path, "delete"), one, lambda: fresh() and None)


def walk_config(walk):
    operation = ("/v1/config", "put")
    fields, config = walk(("/v1/config", "get"), 200, "GET", "/v1/config")
    walk(operation, 200, "PUT", "/v1/config", config)
    walk(operation, 422, "PUT", "/v1/config", {**config, "no_such_key": 1})
    taken = json.loads(json.dumps(config))
    taken["load_balancers"][0]["listeners"].append({"name": "taken", "port": walk.proxy.admin[1], "default_target_group": "g1"})
    walk(operation, 422, "PUT", "/v1/config", taken)
    walk(("/v1/versions", "get"), 200, "GET", "/v1/versions")
    walk(("/v1/versions", "get"), 400, "GET", "/v1/versions?cursor=x")
    walk(("/v1/versions/{version}", "get"), 200, "GET", "/v1/versions/1")
    walk(("/v1/versions/{version}", "get"), 404, "GET", "/v1/versions/999999")
    walk(("/v1/versions/{version}/rollback", "post"), 404, "POST", "/v1/versions/999999/rollback")
    walk.conflict(("/v1/config", "put"), "/v1/config", lambda: {**config, "shutdown_s": 100 + walk.fresh()})
    walk(("/v1/versions/{version}/rollback", "post"), 200, "POST", "/v1/versions/1/rollback")

    def another():
        assert walk.api("PUT", "/v1/config", {**config, "shutdown_s": 100 + walk.fresh()})[0] == 200

    walk.conflict(("/v1/versions/{version}/rollback", "post"), "/v1/versions/1/rollback", another)
    health = ("/v1/target-groups/{target_group}/health", "get")
    walk(health, 200, "GET", "/v1/target-groups/g1/health")
    walk(health, 404, "GET", "/v1/target-groups/none/health")
    walk(("/v1/openapi.json", "get"), 200, "GET", "/v1/openapi.json", token=None)


def shut_down(walk, paths):
    """What changes something is refused from then on."""
    walk.proxy.baseline = None
    walk.proxy.signal(signal.SIGTERM)
    assert wait_until(lambda: walk.proxy.get("/healthz")[0] == 503)
    for path, operations in paths.items():
        for method, operation in operations.items():
            if path in ("/healthz", "/api/health"):
                got = walk.proxy.get(path)[0]
                assert got == 503
                walk.seen.setdefault((path, method), set()).add(str(got))
            elif "503" in operation["responses"] and operation["x-role"] in ("operate", "admin"):
                body = None if method == "delete" or "rollback" in path else {}
                walk((path, method), 503, method.upper(), walk.fill(path), body, code="shutting_down")
    walk.proxy.kill()


def is_walked(walk, paths):
    """Every documented answer of every operation was met."""
    pairs = {(method, path, status) for path, operations in paths.items() for method, operation in operations.items()
             for status in operation["responses"]}
    met = {(method, path, status) for (path, method), statuses in walk.seen.items() for status in statuses}
    assert pairs and pairs <= met, sorted(pairs - met)


def walk_servers(walk, stand):
    servers, one = "/api/servers", "/api/servers/{server_id}"
    walk((servers, "get"), 200, "GET", servers)
    walk((servers, "get"), 400, "GET", servers + "?limit=0")
    walk((servers, "get"), 400, "GET", servers + "?status=well")
    walk((servers, "post"), 201, "POST", servers, {"address": "127.0.0.1:9"})
    walk((servers, "post"), 409, "POST", servers, {"address": "127.0.0.1:9"}, code="conflict")
    walk((servers, "post"), 422, "POST", servers, {"address": "nowhere"}, code="invalid")
    walk((one, "get"), 200, "GET", walk.fill(one))
    walk((one, "put"), 200, "PUT", walk.fill(one), {"enabled": False})
    walk((one, "put"), 422, "PUT", walk.fill(one), {"weight": -1}, code="invalid")
    walk((one, "delete"), 202, "DELETE", walk.fill(one))
    for method in ("get", "put", "delete"):
        walk((one, method), 404, method.upper(), "/api/servers/127.0.0.1:10", {} if method == "put" else None)
    walk(("/api/config", "get"), 200, "GET", "/api/config")
    for what, body, wrong in (("algorithm", {"algorithm": "ip_hash"}, {"algorithm": "fastest"}),
                              ("health", {"interval_seconds": 5}, {"interval_seconds": -5})):
        walk((f"/api/config/{what}", "put"), 200, "PUT", f"/api/config/{what}", body)
        walk((f"/api/config/{what}", "put"), 422, "PUT", f"/api/config/{what}", wrong, code="invalid")
    assert stand.ask().status == 200  # binds this address to a server
    walk.conflict((servers, "post"), servers, lambda: {"address": f"127.0.0.1:{20000 + walk.fresh()}"})
    ports = []

    def another():
        ports.append(20000 + walk.fresh())
        assert walk.api("POST", servers, {"address": f"127.0.0.1:{ports[-1]}"})[0] == 201
        return {"weight": 7}

    walk.conflict((one, "put"), lambda _: f"/api/servers/127.0.0.1:{ports[-1]}", another)
    walk.conflict((one, "delete"), lambda _: f"/api/servers/127.0.0.1:{ports[-1]}", lambda: another() and None)
    walk.conflict(("/api/config/algorithm", "put"), "/api/config/algorithm", lambda: {"algorithm": ("maglev", "random")[walk.fresh() % 2]})
    walk.conflict(("/api/config/health", "put"), "/api/config/health", lambda: {"interval_seconds": 10 + walk.fresh()})
    sessions, session = ("/api/sessions", "get"), ("/api/sessions/{session_id}", "delete")
    walk(sessions, 200, "GET", "/api/sessions?client_ip=127.0.0.1")
    walk(sessions, 400, "GET", "/api/sessions")
    walk(session, 204, "DELETE", "/api/sessions/127.0.0.1")
    walk(session, 404, "DELETE", "/api/sessions/127.0.0.1", code="not_found")


def walk_pages(walk, port):
    for path in ("/", "/healthz", "/api/health", "/metrics", "/api/metrics"):
        token = None if walk.description["paths"][path]["get"]["x-role"] == "open" else READ
        walk((path, "get"), 200, "GET", path, token=token)
    explain, question = "/v1/explain", {"url": f"http://127.0.0.1:{port}/x"}
    walk((explain, "get"), 200, "GET", f"{explain}?url={question['url']}", token=READ)
    walk((explain, "get"), 400, "GET", explain)
    walk((explain, "post"), 200, "POST", explain, question, token=READ)
    walk((explain, "post"), 400, "POST", explain, {}, code="invalid")
    slow = {"url": f"http://127.0.0.1:{port}/slow", "headers": dict([credentials("u", "p")])}
    met, other = threading.Event(), Api(walk.proxy)

    def ask_on():
        while not met.is_set():
            other("POST", explain, slow)

    asking = threading.Thread(target=ask_on)
    asking.start()
    walk.until((explain, "post"), 503, explain, slow, code="busy")
    met.set()
    asking.join()


def walk_lost_store(walk, stand):
    """A node that cannot ask for a session that it does not know."""
    config = json.loads(json.dumps(walk.proxy.config))
    config.update(shared_state={"url": f"redis://127.0.0.1:{free_port()}"}, admin={**config["admin"], "listen": f"127.0.0.1:{free_port()}"})
    config["load_balancers"][0]["listeners"] = []
    del config["store"]
    other, mine = stand.serve(config, ready=False), walk.proxy
    other.token = ADMIN
    other.ready()
    walk.proxy, walk.api = other, Api(other)
    walk(("/api/sessions", "get"), 503, "GET", "/api/sessions?client_ip=192.0.2.1", code="no_answer")
    walk.proxy, walk.api = mine, Api(mine)


def test_every_operation_on_one_pool_and_every_documented_answer(stand):
    walk = Walk(stand)
    paths = {path: operations for path, operations in walk.description["paths"].items()
             if not path.startswith("/v1/") or path == "/v1/explain"}
    for path, operations in paths.items():
        for method, operation in operations.items():
            walk_errors_of_all(walk, (path, method), operation["x-role"])
            if "target_group" in [parameter["name"] for parameter in operation["parameters"]]:
                body = {} if method in ("post", "put") else None
                walk((path, method), 404, method.upper(), walk.fill(path) + "?target_group=none", body)
    walk_pages(walk, walk.proxy.config["load_balancers"][0]["listeners"][0]["port"])
    walk_servers(walk, stand)
    walk_lost_store(walk, stand)
    shut_down(walk, paths)
    is_walked(walk, paths)


def test_every_operation_and_every_documented_answer(stand):
    walk = Walk(stand)
    paths = {path: operations for path, operations in walk.description["paths"].items()
             if path.startswith("/v1/") and path != "/v1/explain"}
    resources = ["/v1/load-balancers", "/v1/load-balancers/{load_balancer}/listeners",
                 "/v1/load-balancers/{load_balancer}/listeners/{listener}/rules", "/v1/certificates", "/v1/target-groups",
                 "/v1/target-groups/{target_group}/targets", "/v1/nodes"]
    assert {"get", "post", "put"} == set(paths["/v1/target-groups"])
    for path, operations in paths.items():
        for method, operation in operations.items():
            walk_errors_of_all(walk, (path, method), operation["x-role"])
    for path in resources:
        walk_resource(walk, path, path.rsplit("/", 1)[1])
    walk(("/v1/target-groups/{target_group}", "delete"), 409, "DELETE", "/v1/target-groups/web", code="in_use")
    walk_config(walk)
    shut_down(walk, paths)
    is_walked(walk, paths)
