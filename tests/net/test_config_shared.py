# SPDX-License-Identifier: Apache-2.0
"""A change rebuilds what it touches and nothing else, whoever makes it, and what was built before goes when nobody uses it any
more (issue 4, 8)."""
import json
import re

import pytest

from harness.process import wait_until

GROUPS = 100


@pytest.fixture
def proxy(stand):
    config = stand.config(stand.backend(name="A"))
    config["target_groups"] += [
        {"name": f"g{i}", "health_check": {"type": "none"},
         "targets": [{"ip": f"10.0.{i}.{k}", "port": 80} for k in range(1, 5)]} for i in range(GROUPS)]
    return stand.serve(config)


def ask(proxy, method, path, body):
    status, _, data = proxy.admin_request(method, path, {"Content-Type": "application/json"}, body=json.dumps(body))
    assert status in (200, 201, 202), data
    return json.loads(data)


def figure(proxy, name):
    """Without reading the rest of a long page."""
    status, page = proxy.get("/metrics")
    assert status == 200
    return int(re.search(rf"^isobar_{name} (\d+)$", page if isinstance(page, str) else page.decode(), re.M)[1])


def built_by(proxy, method, path, body=None):
    """Groups that a change made anew."""
    before = figure(proxy, "config_groups_built_total")
    ask(proxy, method, path, body)
    return figure(proxy, "config_groups_built_total") - before


def port_of(proxy):
    return proxy.config["load_balancers"][0]["listeners"][0]["port"]


def test_a_change_builds_the_groups_that_it_touches(proxy):
    group = "/v1/target-groups/g7"
    assert figure(proxy, "config_groups_built_total") == GROUPS + 1
    assert built_by(proxy, "PATCH", group + "/targets/10.0.7.3:80", {"weight": 7}) == 1
    assert built_by(proxy, "PATCH", group + "/targets/10.0.7.3:80", {"weight": 7}) == 0
    assert built_by(proxy, "PUT", group + "/targets/10.0.7.3:80", {"ip": "10.0.7.3", "port": 80, "weight": 8}) == 1
    assert built_by(proxy, "PATCH", group, {"algorithm": "least_connections"}) == 1
    assert built_by(proxy, "PATCH", group, {"health_check": {"type": "tcp", "interval_s": 60}}) == 1
    assert built_by(proxy, "POST", group + "/targets", {"ip": "10.0.7.77", "port": 80}) == 1
    assert built_by(proxy, "POST", "/v1/target-groups", {"name": "new", "targets": [{"ip": "10.1.0.1", "port": 80}]}) == 1
    rule = {"name": "r", "match": {"path": "/r"}, "forward": [{"target_group": "g9"}]}
    assert built_by(proxy, "POST", f"/v1/load-balancers/lb/listeners/{port_of(proxy)}/rules", rule) == 0
    assert built_by(proxy, "PUT", "/api/config/algorithm?pool=g8", {"algorithm": "least_connections"}) == 1
    whole = json.loads(proxy.get("/v1/config")[1])
    whole["target_groups"][3]["targets"][0]["weight"] = 3
    assert built_by(proxy, "PUT", "/v1/config", whole) == 1, "also where the whole document is new"


def test_groups_behind_one_that_goes_are_taken_over(proxy):
    """The place in the list is part of where a group is, so its counters move; nothing is decoded again."""
    before = figure(proxy, "config_groups_built_total")
    status, _, data = proxy.admin_request("DELETE", "/v1/target-groups/g7")
    assert status == 200, data
    assert figure(proxy, "config_groups_built_total") == before


def test_changes_in_quick_succession_leave_nothing_behind(proxy):
    """The look at what has ended came 100 ms after the last change, and so never while changes went on."""
    most = 0
    for n in range(300):
        ask(proxy, "PATCH", "/v1/target-groups/g7/targets/10.0.7.3:80", {"weight": 1 + n % 50})
        if n % 25 == 0:
            most = max(most, figure(proxy, "config_snapshots"))
    assert most < 150
    assert wait_until(lambda: figure(proxy, "config_snapshots") == 1)
