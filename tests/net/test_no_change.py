# SPDX-License-Identifier: Apache-2.0
"""A write that changes nothing makes no version; a version says what changed."""
import json
import sqlite3

import pytest
from test_api_v1 import Api
from test_store_api import settled


@pytest.fixture(params=["memory", "store"])
def api(request, stand, tmp_path):
    config = stand.config(stand.backends_named("a", "b"), **({"store": {"url": f"sqlite:{tmp_path}/s.db", "file": "wins"}}
                                                             if request.param == "store" else {}))
    config["load_balancers"][0]["listeners"][0].update(name="l1", rules=[{"match": {"path": "/x"}, "respond": {"status": 200}}])
    api = Api(stand.serve(config))
    if "store" in config:
        settled(api.proxy)
    api.store = str(tmp_path / "s.db") if request.param == "store" else None
    return api


def newest(api):
    items = api.get("/v1/versions")["items"]
    if api.store:
        with sqlite3.connect(api.store) as db:
            assert db.execute("SELECT count(*) FROM versions").fetchone()[0] == len(items)
    return items[0]


def in_other_words(config):
    """The same with defaults written out."""
    config = json.loads(json.dumps(config))
    config.update(via=False, shutdown_s=30, certificates=[])
    group = config["target_groups"][0]
    group.update(slow_start_s=0, health_check={"type": "none", "interval_s": 5})
    for target in group["targets"]:
        target.update(weight=100, enabled=True, backup=False)
    config["load_balancers"][0]["listeners"][0]["rules"][0]["match"]["methods"] = []
    return config


def test_a_write_that_changes_nothing_makes_no_version(api):
    before = api.get("/v1/config")
    first = newest(api)
    target = before["target_groups"][0]["targets"][0]
    address = f"{target['ip']}:{target['port']}"
    rules = "/v1/load-balancers/lb/listeners/l1/rules"
    rule = api.get(rules)["items"][0]
    writes = [
        ("PUT", "/api/config/health", {"type": "none"}), ("PUT", "/api/config/health", {"interval_seconds": 5}),
        ("PUT", "/api/config/health", {}), ("PUT", "/api/config/algorithm", {"algorithm": "round_robin"}),
        ("PUT", f"/api/servers/{address}", {"weight": 100}), ("PUT", f"/api/servers/{address}", {"enabled": True, "metadata": {}}),
        ("PUT", f"/api/servers/{address}", {}),
        ("PATCH", "/v1/target-groups/web", {}), ("PATCH", f"/v1/target-groups/web/targets/{address}", {}),
        ("PUT", f"/v1/target-groups/web/targets/{address}", target), ("PUT", "/v1/target-groups/web", before["target_groups"][0]),
        ("PUT", "/v1/target-groups/web/targets", {"targets": before["target_groups"][0]["targets"]}),
        ("PUT", f"{rules}/{rule['id']}", rule), ("PUT", "/v1/config", before), ("POST", "/v1/versions/1/rollback", None)]
    for method, path, body in writes:
        status, _, answer = api(method, path, body)
        assert status == 200 and answer.get("version", 1) == 1, (path, body, answer)
    assert newest(api) == first and api.get("/v1/config") == before
    for _ in range(3):
        api.proxy.reload()
    assert newest(api) == first and api.get("/v1/config") == before


def test_the_same_in_other_words_is_kept_and_named(api):
    """Whoever writes a default must find it there when he reads."""
    words = in_other_words(api.get("/v1/config"))
    assert api("PUT", "/v1/config", words)[2]["version"] == 2
    assert newest(api)["changes"] == [{"object": "config", "change": "changed", "what": "the same in other words"}]
    assert api.get("/v1/config") == words and api("PUT", "/v1/config", words)[2]["version"] == 2
    address = api.get("/v1/target-groups/web/targets")["items"][0]["id"]
    assert api("PUT", "/api/config/health", {"type": "none", "interval_seconds": 5})[2]["version"] == 2
    assert api("PATCH", f"/v1/target-groups/web/targets/{address}", {"weight": None})[2]["version"] == 3
    assert api("PUT", f"/api/servers/{address}", {"weight": 100})[0] == 200 and newest(api)["version"] == 3
    api.proxy.reload({**words, "via": True})
    assert newest(api)["version"] == 4 and newest(api)["changes"][0]["what"] == "via false -> true"


def test_another_order_is_a_change_that_has_a_name(api):
    targets = api.get("/v1/target-groups/web/targets")["items"]
    shown = api("PUT", "/v1/target-groups/web/targets", {"targets": list(reversed(api.get("/v1/config")["target_groups"][0]["targets"]))})
    assert shown[0] == 200 and [one["id"] for one in shown[2]["targets"]] != [] and shown[2]["version"] == 2
    assert newest(api)["changes"] == [{"object": "config", "change": "changed", "what": "the order of items"}]
    assert len(targets) == 2


def test_refused_and_idle_writes_take_no_room(api):
    """What a change leaves behind is cleared away though it never came into force: a million values is the limit."""
    group = {"name": "web", "targets": [{"ip": "10.0.0.1", "port": port} for port in range(1, 30001)]}
    for _ in range(14):
        api.fails(422, "invalid", "PUT", "/v1/target-groups/web", {**group, "algorithm": "none such"})
    assert api("PATCH", "/v1/target-groups/web", {"algorithm": "ip_hash"})[0] == 200
