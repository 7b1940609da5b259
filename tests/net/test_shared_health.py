# SPDX-License-Identifier: Apache-2.0
"""H2: what a node finds out about targets stands in Redis, and other nodes hear of trouble and look for themselves."""
import pytest

from harness.backend import text_response
from harness.process import wait_until
from harness.redis import SERVER, Redis

pytestmark = pytest.mark.skipif(SERVER is None, reason="no redis-server or valkey-server")
CHECK = {"type": "http", "path": "/healthz", "timeout_ms": 20000, "healthy_threshold": 1, "unhealthy_threshold": 1}


def node(stand, backend, redis, interval_s, **check):
    config = stand.config(backend, group={"health_check": {**CHECK, "interval_s": interval_s, **check}}, workers=1,
                          shared_state={"url": redis.url, "timeout_ms": 500})
    return stand.serve(config)


def entry(redis, backend):
    fields = redis.ask("HGETALL", f"server:web/127.0.0.1:{backend.target['port']}")
    return {key.decode(): value.decode() for key, value in zip(fields[::2], fields[1::2])}


def test_H2_a_target_s_status_weight_and_last_check_are_written_and_end_by_themselves(stand, redis):
    backend = stand.backend()
    proxy = node(stand, {**backend.target, "weight": 7, "tags": {"canary": "", "datacenter": "eu"}}, redis, 1)
    assert wait_until(lambda: entry(redis, backend).get("status") == "healthy")
    found = entry(redis, backend)
    assert (found["weight"], found["address"], found["tags"]) == ("7", backend.label, "canary,datacenter=eu")
    assert int(found["last_check"]) > 1700000000 and len(found["node"]) == 16
    assert proxy.admin_request("PATCH", f"/v1/target-groups/web/targets/{backend.label}", {"Content-Type": "application/json"},
                               body='{"weight": 9, "tags": null}')[0] == 200
    assert wait_until(lambda: (entry(redis, backend)["weight"], entry(redis, backend)["tags"]) == ("9", ""), 10)
    assert 200 < redis.ask("TTL", f"server:web/127.0.0.1:{backend.target['port']}") <= 300


def test_H2_another_node_hears_of_trouble_and_looks_at_once(stand, redis):
    state = {"ok": True}

    backend = stand.backend()
    backend.answer = lambda request: text_response(b"ok", "200 OK" if state["ok"] else "503 Service Unavailable")
    quick = node(stand, backend, redis, 1)
    slow = node(stand, backend, redis, 600)  # would notice by itself in ten minutes
    for proxy in (quick, slow):
        assert wait_until(lambda proxy=proxy: proxy.metrics().total("target_up") == 1)
        assert wait_until(lambda proxy=proxy: proxy.metrics().total("shared_state_up") == 1)
    assert wait_until(lambda: entry(redis, backend).get("status") == "healthy")
    state["ok"] = False
    assert wait_until(lambda: quick.metrics().total("target_up") == 0)
    assert wait_until(lambda: entry(redis, backend).get("status") == "unhealthy")
    assert wait_until(lambda: slow.metrics().total("target_up") == 0)
    assert slow.metrics().total("target_accusers") == 1
    state["ok"] = True
    assert wait_until(lambda: quick.metrics().total("target_up") == 1)
    assert wait_until(lambda: slow.metrics().total("target_accusers") == 0)


def test_H2_one_node_s_word_alone_takes_nothing_out(stand, redis):
    backend = stand.backend()
    proxy = node(stand, backend, redis, 600)
    assert wait_until(lambda: proxy.metrics().total("shared_state_up") == 1)
    assert wait_until(lambda: entry(redis, backend).get("status") == "healthy")
    checks = proxy.metrics().total("target_health_checks_total")
    target = f"web/127.0.0.1:{backend.target['port']}"
    for text in (f"0123456789abcdef unhealthy {target}", f"feedfeedfeedfeed unhealthy {target}", "nonsense", "a b", "a unhealthy ", ""):
        redis.ask("PUBLISH", "isobar:health", text)
    assert wait_until(lambda: proxy.metrics().total("target_accusers") == 2)
    assert wait_until(lambda: proxy.metrics().total("target_health_checks_total") > checks)
    assert proxy.metrics().total("target_up") == 1 and stand.ask(proxy=proxy).status == 200


def test_H2_a_redis_that_comes_back_empty_is_told_again(stand, redis, tmp_path):
    backend = stand.backend()
    proxy = node(stand, backend, redis, 1)
    assert wait_until(lambda: entry(redis, backend).get("status") == "healthy")
    redis.stop()
    assert wait_until(lambda: proxy.metrics().total("shared_state_up") == 0)
    again = Redis(tmp_path, port=redis.port)
    try:
        assert wait_until(lambda: entry(again, backend).get("status") == "healthy")
    finally:
        again.stop()
