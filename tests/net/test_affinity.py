# SPDX-License-Identifier: Apache-2.0
"""A client stays with the target that served it first (C1 to C3)."""
import copy

import pytest

from harness.process import wait_until

NAMES = ("A", "B", "C", "D")


def stand_of_four(stand, affinity, **group):
    backends = stand.backends_named(*NAMES)
    config = stand.config(backends, group={"affinity": affinity, **group}, workers=2)
    return stand.serve(config), config


def cookie_of(response, name):
    for value in response.all("Set-Cookie"):
        if value.startswith(name + "="):
            return value.split(";")[0]
    return None


def ask_with(stand, cookie, times=1):
    return {stand.ask(fields=[("Cookie", f"a=1; {cookie}; z=2")] if cookie else []).body for _ in range(times)}


@pytest.mark.parametrize("extra", [{}, {"id": "plain"}, {"id": "signed", "secret": "0123456789abcdef"}])
def test_C1_a_cookie_keeps_a_client_with_its_target(stand, extra):
    stand_of_four(stand, {"type": "cookie", **extra})
    for _ in range(4):
        first = stand.ask()
        cookie = cookie_of(first, "lb_server")
        assert cookie and ask_with(stand, cookie, 6) == {first.body}
    bound = stand.ask(fields=[("Cookie", cookie)])
    assert cookie_of(bound, "lb_server") is None  # nothing new to say


def test_C1_the_cookie_has_the_attributes_that_were_asked_for(stand):
    stand_of_four(stand, {"type": "cookie", "cookie": "SRV", "path": "/app", "domain": "shop.example", "secure": True,
                          "same_site": "none", "max_age": True, "ttl_s": 60})
    value = next(v for v in stand.ask().all("Set-Cookie"))
    assert value.startswith("SRV=")
    assert value.split("; ")[1:] == ["Path=/app", "Domain=shop.example", "Max-Age=60", "HttpOnly", "Secure", "SameSite=None"]


def test_C1_a_forged_signature_binds_nothing(stand):
    stand_of_four(stand, {"type": "cookie", "id": "signed", "secret": "0123456789abcdef"})
    cookie = cookie_of(stand.ask(), "lb_server")
    forged = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
    answers = [stand.ask(fields=[("Cookie", forged)]) for _ in range(8)]
    assert all(cookie_of(answer, "lb_server") for answer in answers)
    assert len({answer.body for answer in answers}) > 1


def test_C_128_a_stale_cookie_is_replaced_and_garbage_is_ignored(stand):
    proxy, config = stand_of_four(stand, {"type": "cookie"})
    first = stand.ask()
    cookie = cookie_of(first, "lb_server")
    changed = copy.deepcopy(config)
    index = NAMES.index(first.body.decode())
    del changed["target_groups"][0]["targets"][index]
    proxy.reload(changed)
    moved = stand.ask(fields=[("Cookie", cookie)])
    new = cookie_of(moved, "lb_server")
    assert moved.body != first.body and new and new != cookie
    assert ask_with(stand, new, 20) == {moved.body}
    for garbage in ("x" * 8000, "%00", "../../etc", "ffffffffffffffff", '"', "=" * 50, ""):
        answer = stand.ask(fields=[("Cookie", f"lb_server={garbage}")])
        assert answer.status == 200 and answer.body.decode() in NAMES


def test_C_128_a_cookie_of_another_group_selects_nothing(stand):
    backends = stand.backends_named(*NAMES)
    affinity = {"type": "cookie", "id": "plain"}
    config = stand.config(backends[:2], group={"affinity": affinity}, listener={"rules": [
        {"match": {"path": "/other"}, "forward": [{"target_group": "other"}]}]})
    config["target_groups"].append({**config["target_groups"][0], "name": "other", "targets": [b.target for b in backends[2:]]})
    stand.serve(config)
    foreign = cookie_of(stand.ask(target="/other"), "lb_server")
    for _ in range(6):
        answer = stand.ask(fields=[("Cookie", foreign)])
        assert answer.body in (b"A", b"B") and cookie_of(answer, "lb_server") not in (None, foreign)


def test_C2_a_session_cookie_is_mapped_in_memory(stand):
    stand_of_four(stand, {"type": "session"})
    first = stand.ask()
    cookie = cookie_of(first, "lb_session")
    assert cookie and len(cookie) == len("lb_session=") + 32
    assert ask_with(stand, cookie, 12) == {first.body}  # whichever worker takes it
    # A client without the cookie is known by its address.
    assert ask_with(stand, None, 6) == {first.body}


def test_C2_an_address_is_mapped_in_memory(stand):
    stand_of_four(stand, {"type": "client_ip"})
    first = stand.ask()
    assert first.all("Set-Cookie") == []
    assert ask_with(stand, None, 12) == {first.body}


@pytest.mark.parametrize("kind", ["cookie", "session", "client_ip"])
def test_C3_a_failed_target_loses_its_sessions_at_once(stand, kind):
    backends = stand.backends_named(*NAMES)
    checks = {"type": "tcp", "interval_s": 0.1, "timeout_ms": 100, "unhealthy_threshold": 1, "healthy_threshold": 1}
    proxy = stand.proxy(backends, group={"affinity": {"type": kind}, "health_check": checks})
    first = stand.ask()
    cookie = cookie_of(first, {"cookie": "lb_server", "session": "lb_session"}.get(kind, "-"))
    backends[NAMES.index(first.body.decode())].stop()
    assert wait_until(lambda: proxy.metrics().total("target_group_healthy_targets") == 3)
    moved = stand.ask(fields=[("Cookie", cookie)] if cookie else [])
    assert moved.status == 200 and moved.body != first.body
    again = cookie_of(moved, "lb_server") or cookie
    assert ask_with(stand, again, 8) == {moved.body}


def test_C_101_a_draining_target_keeps_its_sessions_and_gets_no_new_ones(stand):
    proxy, config = stand_of_four(stand, {"type": "cookie"}, deregistration_delay_s=2)
    first = stand.ask()
    cookie = cookie_of(first, "lb_server")
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"][NAMES.index(first.body.decode())]["enabled"] = False
    proxy.reload(changed)
    assert ask_with(stand, cookie, 5) == {first.body}
    assert first.body not in ask_with(stand, None, 12)
    # After the deadline the bound client is routed anew.
    assert wait_until(lambda: stand.ask(fields=[("Cookie", cookie)]).body != first.body)
    moved = stand.ask(fields=[("Cookie", cookie)])
    assert moved.status == 200 and cookie_of(moved, "lb_server")
