# SPDX-License-Identifier: Apache-2.0
"""The API on a store: what is answered is durable, two nodes never lose an update, and a store that is away refuses
changes and nothing else (G7, G9, H1, H3; C-146, C-147)."""
import copy
import http.client
import json
import os
import random
import signal
import sqlite3
import threading
import time

import pytest

from harness.load import Load
from harness.postgres import Postgres
from harness.process import wait_until
from harness.store import rows

GROUP = "/v1/target-groups/web"
KILLS = 200


@pytest.fixture
def postgres():
    server = Postgres()
    yield server
    server.close()


def api(proxy, method, path, body=None, **fields):
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    if body is not None:
        fields.setdefault("Content-Type", "application/json")
        body = json.dumps(body)
    status, _, data = proxy.admin_request(method, path, fields, body=body)
    return status, json.loads(data) if data else None


def figure(proxy, name, **labels):
    return proxy.metrics().total("store_" + name, **labels)


def settled(proxy, version=1):
    assert wait_until(lambda: figure(proxy, "version_in_force") == version), proxy.stderr
    assert wait_until(lambda: figure(proxy, "available") == 1)
    proxy.baseline = proxy.sockets()
    return proxy


def weight_of(proxy, target):
    status, body = api(proxy, "GET", f"{GROUP}/targets/127.0.0.1:{target.port}")
    assert status == 200, body
    return body.get("weight", 100)


def put_weight(proxy, target, weight, **fields):
    return api(proxy, "PATCH", f"{GROUP}/targets/127.0.0.1:{target.port}", {"weight": weight}, **fields)


def test_a_change_is_durable_when_it_is_answered(stand, tmp_path):
    path = str(tmp_path / "store.db")
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": "sqlite:" + path})
    proxy = settled(stand.serve(config))
    status, body = put_weight(proxy, a, 7)
    assert status == 200, body
    proxy.kill()
    number, who, diff, document = rows(path, "SELECT number, who, diff, document FROM versions ORDER BY 1 DESC")[0]
    assert number == 2 and json.loads(document)["target_groups"][0]["targets"][0]["weight"] == 7
    assert json.loads(diff)[0]["object"] == "target_groups/web" and who
    assert "admin" not in json.loads(document) and "store" not in json.loads(document)
    assert rows(path, "SELECT weight FROM backends") == [(7,)]
    again = settled(stand.serve(config), 2)
    assert weight_of(again, a) == 7


def test_versions_and_rollback_reach_beyond_a_restart(stand, tmp_path):
    path = str(tmp_path / "store.db")
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": "sqlite:" + path})
    proxy = settled(stand.serve(config))
    for weight in range(2, 8):
        assert put_weight(proxy, a, weight)[0] == 200
    proxy.stop()
    proxy = settled(stand.serve(config), 7)
    status, body = api(proxy, "GET", "/v1/versions?limit=3")
    assert status == 200 and [item["version"] for item in body["items"]] == [7, 6, 5]
    assert "weight 6 -> 7" in body["items"][0]["changes"][0]["what"]
    status, body = api(proxy, "GET", f"/v1/versions?limit=100&cursor={body['next_cursor']}")
    assert [item["version"] for item in body["items"]] == [4, 3, 2, 1] and not body.get("next_cursor")
    status, body = api(proxy, "GET", "/v1/versions/3")
    assert status == 200 and body["config"]["target_groups"][0]["targets"][0]["weight"] == 3
    assert api(proxy, "GET", "/v1/versions/99")[0] == 404
    assert api(proxy, "GET", "/v1/versions/99999999999999999999")[0] == 404
    status, body = api(proxy, "POST", "/v1/versions/3/rollback")
    assert status == 200 and body["version"] == 8, body
    assert weight_of(proxy, a) == 3 and rows(path, "SELECT weight FROM backends") == [(3,)]
    database = sqlite3.connect(path)
    database.execute("UPDATE versions SET document = 'no json', diff = 'no list' WHERE number = 4")
    database.commit()
    database.close()
    status, body = api(proxy, "POST", "/v1/versions/4/rollback")
    assert status == 409 and body["error"]["code"] == "broken"
    assert api(proxy, "GET", "/v1/versions")[1]["items"][4]["changes"] == []


def test_the_nodes_own_sections_stay_its_own(stand, tmp_path):
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": f"sqlite:{tmp_path}/store.db"})
    proxy = settled(stand.serve(config))
    whole = api(proxy, "GET", "/v1/config")[1]
    changed = copy.deepcopy(whole)
    changed["store"]["url"] = "sqlite:/elsewhere.db"
    status, body = api(proxy, "PUT", "/v1/config", changed)
    assert status == 422 and body["error"]["path"] == "/store"
    changed = {key: value for key, value in whole.items() if key not in ("admin", "store")}
    changed["via"] = True
    assert api(proxy, "PUT", "/v1/config", changed)[0] == 200
    assert api(proxy, "GET", "/v1/config")[1]["store"] == whole["store"]


def test_the_password_of_the_store_is_not_shown_and_need_not_be_said(stand, postgres, tmp_path):
    a = stand.backend(name="A")
    url = postgres.url.replace("isobar@", f"isobar:{Postgres.PASSWORD}@")
    config = stand.config(a, store={"url": url, "last_good": f"{tmp_path}/good", "timeout_ms": 5000})
    proxy = settled(stand.serve(config))
    whole = api(proxy, "GET", "/v1/config")[1]
    assert whole["store"] == {"url": postgres.url.replace("isobar@", "isobar:<secret>@"), "last_good": f"{tmp_path}/good", "timeout_ms": 5000}
    whole["via"] = True
    status, body = api(proxy, "PUT", "/v1/config", whole)
    assert status == 200 and body["changes"] == [{"object": "config", "change": "changed", "what": "via false -> true"}]
    whole["store"]["timeout_ms"] = 4000
    assert api(proxy, "PUT", "/v1/config", whole)[0] == 422
    proxy.reload({**config, "store": {**config["store"], "timeout_ms": 4000}})
    assert Postgres.PASSWORD not in proxy.stderr
    assert put_weight(proxy, a, 9)[0] == 200
    assert Postgres.PASSWORD not in open(f"{tmp_path}/good", encoding="utf-8").read()


def test_what_cannot_be_in_force_is_not_committed(stand, tmp_path):
    path = str(tmp_path / "store.db")
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": "sqlite:" + path})
    proxy = settled(stand.serve(config))
    whole = api(proxy, "GET", "/v1/config")[1]
    whole["load_balancers"][0]["listeners"][0]["port"] = a.port
    status, body = api(proxy, "PUT", "/v1/config", whole)
    assert status == 409 and body["error"]["code"] == "cannot_apply"
    whole["target_groups"][0]["algorithm"] = "dice"
    assert api(proxy, "PUT", "/v1/config", whole)[0] == 422
    assert rows(path, "SELECT count(*) FROM versions") == [(1,)] and figure(proxy, "version_in_force") == 1


def test_C_146_fifty_increments_over_two_nodes_are_fifty(stand, postgres, tmp_path):
    """Each reads and writes with If-Match on one of the nodes; a conflict of either kind is tried again."""
    a = stand.backend(name="A")
    nodes = []
    for number in range(2):
        config = stand.config(a, store={"url": postgres.url, "last_good": f"{tmp_path}/good{number}"})
        config["load_balancers"] = [{"name": "lb", "listeners": [
            {"unix": "l.sock", "protocol": "HTTP", "default_target_group": "web"}]}]
        nodes.append(settled(stand.serve(config)))
    assert put_weight(nodes[0], a, 100)[0] == 200
    codes = []

    def increment(number):
        proxy = nodes[number % 2]
        while True:
            status, fields, data = proxy.admin_request("GET", f"{GROUP}/targets/127.0.0.1:{a.port}")
            assert status == 200
            status, body = put_weight(proxy, a, json.loads(data).get("weight", 100) + 1, If_Match=fields["ETag"])
            codes.append(status)
            if status == 200:
                return
            assert status in (409, 412), body
            time.sleep(random.random() * 0.05)

    threads = [threading.Thread(target=increment, args=(number,), daemon=True) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert codes.count(200) == 50
    assert wait_until(lambda: [weight_of(node, a) for node in nodes] == [150, 150])
    assert postgres.query("SELECT max(number) FROM versions") == [(52,)]
    assert postgres.query("SELECT weight FROM backends") == [(150,)]


def test_a_change_on_one_node_is_in_force_on_the_other(stand, postgres, tmp_path):
    a, b = stand.backends_named("A", "B")
    nodes = []
    for number in range(2):
        config = stand.config(a, store={"url": postgres.url, "last_good": f"{tmp_path}/good{number}"})
        config["load_balancers"] = [{"name": "lb", "listeners": [
            {"unix": "l.sock", "protocol": "HTTP", "default_target_group": "web"}]}]
        nodes.append(settled(stand.serve(config)))
    whole = api(nodes[0], "GET", "/v1/config")[1]
    whole["target_groups"][0]["targets"] = [b.target]
    status, body = api(nodes[0], "PUT", "/v1/config", whole)
    assert status == 200 and body["version"] == 2
    assert wait_until(lambda: figure(nodes[1], "version_in_force") == 2)
    assert api(nodes[1], "GET", "/v1/config")[1]["target_groups"] == whole["target_groups"]
    assert api(nodes[1], "GET", "/v1/versions")[1]["items"][0]["version"] == 2
    assert put_weight(nodes[1], b, 3)[0] == 200
    assert wait_until(lambda: weight_of(nodes[0], b) == 3)


def test_H3_a_store_that_is_away_refuses_changes_and_nothing_else(stand, postgres, tmp_path):
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": postgres.url, "last_good": f"{tmp_path}/good", "timeout_ms": 1000})
    proxy = settled(stand.serve(config))
    load = Load(stand, proxy)
    for pause, resume in ((postgres.pause, postgres.resume), (postgres.stop, postgres.start)):
        pause()
        status, body = put_weight(proxy, a, 55)
        assert status == 503 and body["error"]["code"] == "store_unavailable", body
        assert weight_of(proxy, a) == 100
        assert api(proxy, "GET", "/v1/versions")[0] == 200 and api(proxy, "GET", "/v1/versions/1")[0] == 200
        resume()
        assert wait_until(lambda: figure(proxy, "available") == 1)
        assert postgres.query("SELECT max(number) FROM versions") == [(1,)]
    assert put_weight(proxy, a, 56)[0] == 200
    assert load.finish() > 100


def test_an_upgrade_under_changes_loses_none(stand, tmp_path):
    """Two processes on one file for a moment: what the old one acknowledged is in force in the new one."""
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": f"sqlite:{tmp_path}/store.db"})
    proxy = settled(stand.serve(config))
    stand.proxies.remove(proxy)  # it ends here, and its successor with it
    done = threading.Event()
    acknowledged = []

    def write():
        weight = 100
        while not done.is_set():
            weight += 1
            try:
                status, body = put_weight(proxy, a, weight)
            except (OSError, http.client.HTTPException):
                continue  # the old process closed its listener
            if status == 200:
                acknowledged.append((body["version"], weight))
            else:
                assert status in (409, 503), body

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    status, out, err = stand.isobar("upgrade", "--pid", str(proxy.pid), timeout_s=90)
    assert status == 0, err + proxy.stderr
    successor = int(out.split()[1])
    try:
        count = len(acknowledged)
        assert wait_until(lambda: len(acknowledged) > count + 3), "the new process takes changes"
        done.set()
        writer.join(30)
        assert wait_until(lambda: weight_of(proxy, a) == acknowledged[-1][1])
        versions = [version for version, _ in acknowledged]
        assert versions == sorted(set(versions)) and len(versions) > 5
        for version, weight in rows(f"{tmp_path}/store.db", "SELECT number, document FROM versions"):
            if version in versions:
                stored = json.loads(weight)["target_groups"][0]["targets"][0]["weight"]
                assert stored == acknowledged[versions.index(version)][1]
    finally:
        done.set()
        os.kill(successor, signal.SIGTERM)
        proxy.process.wait(20)
    proxy.assert_clean()


def test_C_147_failed_changes_leave_nothing_behind(stand, postgres, tmp_path):
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": postgres.url, "last_good": f"{tmp_path}/good"})
    proxy = settled(stand.serve(config))
    for _ in range(200):
        assert put_weight(proxy, a, -1)[0] == 422
        assert put_weight(proxy, a, 5, If_Match='"stale"')[0] == 412
    for _ in range(20):
        connection = http.client.HTTPConnection(*proxy.admin, timeout=10)
        connection.putrequest("PATCH", f"{GROUP}/targets/127.0.0.1:{a.port}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "100")
        connection.endheaders(b'{"weight":')
        connection.close()
    assert put_weight(proxy, a, 9)[0] == 200
    assert weight_of(proxy, a) == 9
    assert postgres.query("SELECT max(number) FROM versions") == [(2,)]


def test_C_147_kills_between_write_and_apply_lose_nothing_acknowledged(stand, tmp_path):
    """A client that writes as fast as it can; the process is killed in the middle, again and again."""
    path = str(tmp_path / "store.db")
    a = stand.backend(name="A")
    config = stand.config(a, store={"url": "sqlite:" + path})
    chance = random.Random(147)
    weight = 100
    acknowledged = weight

    def write(proxy, state):
        connection = http.client.HTTPConnection(*proxy.admin, timeout=10)
        try:
            while True:
                state["sent"] += 1
                connection.request("PATCH", f"{GROUP}/targets/127.0.0.1:{a.port}",
                                   json.dumps({"weight": state["sent"]}), {"Content-Type": "application/json"})
                response = connection.getresponse()
                response.read()
                if response.status == 200:
                    state["acknowledged"] = state["sent"]
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    for turn in range(KILLS):
        proxy = stand.serve(config)
        assert weight_of(proxy, a) == weight
        state = {"sent": weight, "acknowledged": acknowledged}
        writer = threading.Thread(target=write, args=(proxy, state), daemon=True)
        writer.start()
        time.sleep(chance.random() * 0.05)
        proxy.kill()
        writer.join(20)
        stored = rows(path, "SELECT document FROM versions ORDER BY number DESC LIMIT 1")
        weight = json.loads(stored[0][0])["target_groups"][0]["targets"][0].get("weight", 100) if stored else 100
        assert state["acknowledged"] <= weight <= state["sent"], (turn, state, weight)
        if stored:
            assert rows(path, "SELECT weight FROM backends") == [(weight,)]
        acknowledged = weight
    assert weight > 110  # how far it came is a matter of the machine
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
