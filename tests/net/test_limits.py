# SPDX-License-Identifier: Apache-2.0
"""Limits on bodies and connections, and what is answered beyond them."""
import json
import subprocess
import threading
import time

from harness.backend import text_response
from harness.judge import first_response
from harness.process import wait_until
from harness.wire import connect
from harness.stand import address_of


def test_a_body_beyond_the_limit_is_413(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"limits": {"body_bytes": 1000}})
    assert stand.ask("POST", body=b"b" * 1000).status == 200
    n = len(backend.requests)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 1001\r\n\r\n")
    assert client.read_response("POST").status == 413
    chunked = b"POST / HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = stand.exchange(chunked + b"3e8\r\n" + b"c" * 1000 + b"\r\n1\r\nc\r\n0\r\n\r\n")
    assert first_response(answer).status == 413
    assert len(backend.requests) == n, "no backend got such a body whole"


def test_expect_100_is_answered_with_413_at_once(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"limits": {"body_bytes": 10}})
    client = stand.client()
    client.send(b"PUT / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
    assert client.read_response("PUT").status == 413
    assert backend.raw == b""


def test_connections_beyond_the_limit_are_refused_and_counted(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, listener={"limits": {"connections": 3}}, workers=2)
    clients = [stand.client() for _ in range(3)]
    for client in clients:
        client.request()
        assert client.read_response().status == 200
    extra = stand.client()
    try:
        extra.request()
        data = extra.read_to_end()
    except OSError:
        data = b""
    assert data == b"" or b" 503 " in data.split(b"\r\n")[0]
    assert wait_until(lambda: proxy.metrics().total("listener_connections_refused_total") == 1)
    clients.pop().close()

    def served():
        try:
            return stand.ask().status == 200
        except (OSError, AssertionError):
            return False

    assert wait_until(served)


def test_connections_to_a_target_are_limited_and_the_rest_waits(stand):
    lock, state = threading.Lock(), {"now": 0, "most": 0}
    backend = stand.backend()

    def answer(request):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        time.sleep(0.05)
        with lock:
            state["now"] -= 1
        return text_response(b"ok")

    backend.answer = answer
    stand.proxy(backend, group={"limits": {"connections": 2, "pending": 100, "pending_ms": 20000}}, workers=2)
    statuses = []

    def run():
        for _ in range(3):
            statuses.append(stand.ask().status)

    threads = [threading.Thread(target=run) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 30
    assert state["most"] <= 2


def held(stand, **limits):
    """isobar whose only target connection is taken by a request that is answered when `release` is set."""
    release = threading.Event()
    backend = stand.backend()

    def answer(request):
        if request.target == "/hold":
            release.wait(30)
        return text_response(request.target.encode())

    backend.answer = answer
    proxy = stand.proxy(backend, group={"limits": {"connections": 1, **limits}})
    holder = stand.client()
    holder.request(target="/hold")
    assert wait_until(lambda: backend.requests)
    return proxy, holder, release


def test_a_request_that_waits_too_long_is_503(stand):
    proxy, holder, release = held(stand, pending=10, pending_ms=300)
    response = stand.ask(target="/waits")
    assert response.status == 503 and response.get("Retry-After")
    assert proxy.metrics().total("target_group_pending_timeouts_total") == 1
    release.set()
    assert holder.read_response().body == b"/hold"


def test_a_full_queue_is_503_at_once(stand):
    proxy, holder, release = held(stand, pending=1, pending_ms=20000)
    waiting = stand.client()
    waiting.request(target="/waits")
    assert wait_until(lambda: proxy.metrics().total("target_group_pending") == 1)
    assert stand.ask(target="/too-much").status == 503
    release.set()
    assert holder.read_response().body == b"/hold"
    assert waiting.read_response().body == b"/waits"


def test_a_client_that_leaves_the_queue_leaves_nothing_behind(stand):
    proxy, holder, release = held(stand, pending=5, pending_ms=60000)
    waiting = stand.client()
    waiting.request(target="/waits")
    assert wait_until(lambda: proxy.metrics().total("target_group_pending") == 1)
    # A FIN alone would only say that it sends no more (case C-045).
    waiting.reset()
    assert wait_until(lambda: proxy.metrics().total("target_group_pending") == 0)
    release.set()
    assert holder.read_response().body == b"/hold"
    assert stand.ask(target="/next").body == b"/next"


def test_errors_are_json_for_those_who_ask_and_text_for_others(stand):
    backend = stand.backend()
    stand.proxy(backend, listener={"limits": {"body_bytes": 1}})
    response = stand.ask("POST", body=b"too long", fields=[("Accept", "application/json")])
    assert response.status == 413 and response.get("Content-Type").startswith("application/json")
    json.loads(response.body)
    response = stand.ask("POST", body=b"too long")
    assert response.status == 413 and not response.get("Content-Type").startswith("application/json")
    assert len(response.body) < 500


def test_descriptors_run_out_without_harm(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    subprocess.run(["prlimit", f"--pid={proxy.pid}", "--nofile=60:60"], check=True)
    address = address_of(proxy.config)
    crowd = []
    for _ in range(80):
        try:
            crowd.append(connect(address, 5))
        except OSError:
            break
    time.sleep(0.2)
    for wire in crowd:
        wire.close()

    def served():
        try:
            return stand.ask().status == 200
        except (OSError, AssertionError):
            return False

    assert wait_until(served)
    cpu = proxy.cpu_s()
    time.sleep(0.5)
    assert proxy.cpu_s() - cpu < 0.4, "it must not spin"
