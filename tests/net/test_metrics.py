# SPDX-License-Identifier: Apache-2.0
"""What /metrics says, and how."""
import copy
import time

from harness.backend import text_response
from harness.process import wait_until


def exchange_some(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"b" * 1000, request.target[1:].replace("-", " ") or "200 OK")
    proxy = stand.proxy(backend)
    client = stand.client()
    for target in ("/200-OK", "/200-OK", "/301-Moved", "/404-Not-Found", "/500-Oh"):
        client.request(target=target)
        client.read_response()
    client.send(b"BAD REQUEST LINE\r\n\r\n")
    client.read_response()
    return backend, proxy


def test_K1_requests_are_counted_by_class_per_listener_and_target(stand):
    backend, proxy = exchange_some(stand)
    metrics = proxy.metrics()
    for status_class, of_listener, of_target in (("2xx", 2, 2), ("3xx", 1, 1), ("4xx", 2, 1), ("5xx", 1, 1)):
        assert metrics.total("listener_requests_total", **{"class": status_class}) == of_listener, status_class
        assert metrics.total("target_requests_total", **{"class": status_class}) == of_target, status_class
    assert metrics.total("listener_rejected_total") == 1
    assert metrics.total("listener_connections_total") == 1
    assert metrics.total("target_connects_total") == 1
    assert metrics.total("target_pool_hits_total") == 4
    assert metrics.total("listener_sent_bytes_total") > 5000
    assert metrics.total("target_received_bytes_total") > 5000
    assert metrics.total("listener_received_bytes_total") > 100


def test_K1_latency_histograms_count_every_request(stand):
    backend, proxy = exchange_some(stand)
    metrics = proxy.metrics()
    for name in [family for family, kind in metrics.types.items() if kind == "histogram"]:
        buckets = [(labels["le"], value) for labels, value in metrics.select(name + "_bucket")]
        assert buckets[-1][0] == "+Inf"
        assert [value for _, value in buckets] == sorted(value for _, value in buckets)
    listener = next(name for name, kind in metrics.types.items() if kind == "histogram" and "listener" in name)
    assert metrics.total(listener + "_count") in (5, 6)
    assert metrics.total(listener + "_sum") > 0


def test_C_145_the_exposition_is_well_formed(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    status, fields, body = proxy.admin_request("GET", "/metrics", [("Accept", "text/plain;version=0.0.4")])
    assert status == 200 and fields["Content-Type"].startswith("text/plain")
    metrics = proxy.metrics()
    assert metrics.text.endswith("\n")
    families = set()
    for name, labels, _ in metrics.samples:
        family = name
        for suffix in ("_bucket", "_sum", "_count"):
            if name.endswith(suffix) and metrics.types.get(name[:-len(suffix)]) == "histogram":
                family = name[:-len(suffix)]
        assert family in metrics.types, f"{name} has no type"
        assert metrics.helps.get(family), f"{name} has no help"
        families.add(family)
    for family, kind in metrics.types.items():
        assert family in families, f"{family} is declared without a sample"
        assert (kind == "counter") == family.endswith("_total"), (family, kind)
        assert kind in ("counter", "gauge", "histogram")
        if kind == "histogram":
            groups = {}
            for labels, value in metrics.select(family + "_bucket"):
                key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
                groups.setdefault(key, []).append((labels["le"], value))
            counts = {tuple(sorted(labels.items())): value for labels, value in metrics.select(family + "_count")}
            sums = {tuple(sorted(labels.items())) for labels, _ in metrics.select(family + "_sum")}
            assert groups.keys() == counts.keys() == sums
            for key, series in groups.items():
                assert series[-1] == ("+Inf", counts[key])
    seen = [(name, tuple(sorted(labels.items()))) for name, labels, _ in metrics.samples]
    assert len(seen) == len(set(seen)), "a series came twice"


def test_C_145_series_exist_before_the_first_event(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    metrics = proxy.metrics()
    for name in ("listener_requests_total", "listener_connections_total", "target_requests_total", "target_connect_errors_total",
                 "target_group_retries_total", "target_pool_hits_total", "listener_active_connections"):
        found = metrics.select(name)
        assert found and all(value == 0 for _, value in found), name


def test_C_145_an_openmetrics_scraper_is_served_what_it_can_read(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    status, fields, body = proxy.admin_request("GET", "/metrics", [
        ("Accept", "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.5")])
    assert status == 200
    if "openmetrics" in fields["Content-Type"]:
        assert body.endswith(b"# EOF\n")
    else:
        assert fields["Content-Type"].startswith("text/plain")


def test_C_142_series_of_removed_targets_disappear_and_never_resume_an_old_value(stand):
    backends = stand.backends_named("A", "B", "C")
    config = stand.config(backends)
    proxy = stand.serve(config)
    for _ in range(9):
        assert stand.ask().status == 200
    label = backends[2].label

    def series():
        return [(name, value) for name, labels, value in proxy.metrics().samples if label in labels.values()]

    before = dict(series())
    assert before
    changed = copy.deepcopy(config)
    del changed["target_groups"][0]["targets"][2]
    proxy.reload(changed)
    assert wait_until(lambda: series() == [], 20)
    proxy.reload(config)
    after = dict(series())
    assert after
    again = after.get("isobar_target_connects_total")
    assert again in (0, None) or again >= before["isobar_target_connects_total"]


def test_gauges_follow_what_is_open(stand):
    backend = stand.backend()

    def answer_late(request):
        time.sleep(0.5)
        return text_response(b"late")

    backend.answer = answer_late
    proxy = stand.proxy(backend)
    clients = [stand.client() for _ in range(5)]
    for client in clients:
        client.request()
    assert wait_until(lambda: proxy.metrics().total("listener_active_requests") == 5)
    assert proxy.metrics().total("listener_active_connections") == 5
    for client in clients:
        client.read_response()
    assert wait_until(lambda: proxy.metrics().total("listener_active_requests") == 0)
    assert proxy.metrics().total("target_idle_connections") == 5
    for client in clients:
        client.close()
    assert wait_until(lambda: proxy.metrics().total("listener_active_connections") == 0)


def test_the_admin_listener_answers_what_it_has_and_404s_the_rest(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    assert proxy.get("/healthz")[0] == 200
    assert proxy.get("/api/health")[0] == 200
    assert proxy.get("/metrics")[0] == 200
    assert proxy.get("/nothing")[0] == 404
    assert proxy.admin_request("POST", "/metrics")[0] == 405
    status, fields, body = proxy.admin_request("HEAD", "/metrics")
    assert status == 200 and body == b""


def test_metrics_cost_a_request_nothing_while_they_are_read(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    client = stand.client()
    for _ in range(30):
        proxy.metrics()
        client.request()
        assert client.read_response().status == 200
