# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping: what SIGTERM and SIGINT end, and what they let finish."""
import os
import signal
import threading
import time

import pytest

from harness.backend import text_response
from harness.load import Load
from harness.process import wait_until
from harness.stand import address_of
from harness.wire import connect


def late(body, seconds):
    def answer(request):
        time.sleep(seconds)
        return text_response(body)

    return answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_flight_is_finished(stand, number):
    backend = stand.backend()
    backend.answer = late(b"finished", 0.8)
    proxy = stand.proxy(backend)
    client = stand.client()
    client.request()
    assert wait_until(lambda: backend.requests)
    proxy.signal(number)
    response = client.read_response()
    assert response.body == b"finished"
    assert response.closes
    client.expect_end()
    assert proxy.process.wait(20) == 0


def test_idle_connections_end_at_once_and_new_ones_are_refused(stand):
    backend = stand.backend()
    backend.answer = lambda request: late(b"slow", 1.0)(request) if request.target == "/slow" else text_response(b"quick")
    proxy = stand.proxy(backend)
    idle, busy = stand.client(), stand.client()
    idle.request(target="/quick")
    assert idle.read_response().status == 200
    busy.request(target="/slow")
    assert wait_until(lambda: len(backend.requests) == 2)
    proxy.signal(signal.SIGTERM)
    idle.expect_end()

    def refused():
        try:
            connect(address_of(proxy.config)).close()
            return False
        except ConnectionRefusedError:
            return True

    assert wait_until(refused, 0.9) or proxy.process.poll() is not None
    assert busy.read_response().body == b"slow"
    assert proxy.process.wait(20) == 0


def test_an_upload_in_flight_is_finished(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: 10\r\n\r\n01234")
    assert wait_until(lambda: backend.wires and backend.wires[0].seen)
    proxy.signal(signal.SIGTERM)
    time.sleep(0.2)
    client.send(b"56789")
    assert client.read_response().status == 200
    assert backend.requests[0].body == b"0123456789"
    assert proxy.process.wait(20) == 0


def test_stopping_is_bounded(stand):
    def silent(wire):
        wire.read_request()
        wire.read_to_end()

    backend = stand.backend(silent)
    proxy = stand.proxy(backend, shutdown_s=0.5)
    client = stand.client()
    client.request()
    assert wait_until(lambda: backend.requests)
    proxy.signal(signal.SIGTERM)
    assert proxy.process.wait(20) == 0


def test_healthz_says_that_it_is_going(stand):
    backend = stand.backend()
    backend.answer = late(b"slow", 1.5)
    proxy = stand.proxy(backend)
    client = stand.client()
    client.request()
    assert wait_until(lambda: backend.requests)
    proxy.signal(signal.SIGTERM)
    statuses = []

    def going():
        try:
            statuses.append(proxy.get("/healthz")[0])
        except OSError:
            return True
        return statuses[-1] == 503

    assert wait_until(going, 1.2)
    assert client.read_response().status == 200
    assert proxy.process.wait(20) == 0


def test_a_storm_of_signals_ends_cleanly(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            try:
                stand.ask()
            except (OSError, AssertionError):
                return

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in [signal.SIGHUP, signal.SIGUSR1, signal.SIGHUP, signal.SIGPIPE, signal.SIGHUP] * 4:
        proxy.signal(number)
        time.sleep(0.01)
    proxy.signal(signal.SIGTERM)
    proxy.signal(signal.SIGHUP)
    status = proxy.process.wait(30)
    stop.set()
    for thread in threads:
        thread.join()
    assert status == 0


def test_an_address_in_use_fails_the_start_with_its_name(stand):
    blocker = stand.backend()
    config = stand.config(blocker)
    config["load_balancers"][0]["listeners"][0]["port"] = blocker.port
    proxy = stand.serve(config, ready=False)
    assert proxy.process.wait(20) == 1
    assert str(blocker.port) in proxy.stderr
    assert len(proxy.stderr.splitlines()) < 10


def is_running(pid):
    """A process that ended may still be waited for by its parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_E5_a_binary_upgrade_loses_no_request(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, workers=2)
    stand.proxies.remove(proxy)  # it ends here, and its successors with it
    load = Load(stand, proxy)
    pid = proxy.pid
    try:
        for _ in range(3):
            time.sleep(0.3)
            status, out, err = stand.isobar("upgrade", "--pid", str(pid), timeout_s=90)
            assert status == 0, err + proxy.stderr
            successor = int(out.split()[1])
            assert successor != pid and not is_running(pid)
            pid = successor
            assert proxy.get("/healthz")[0] == 200
        assert load.finish() > 100
    finally:
        load.stop.set()
        os.kill(pid, signal.SIGTERM)
    assert wait_until(lambda: not is_running(pid))
    assert proxy.process.wait(20) == 0
    proxy.assert_clean()


def test_E5_after_an_upgrade_the_old_process_stays_no_longer_than_shutdown_s(stand):
    def silent(wire):
        wire.read_request()
        wire.read_to_end()

    backend = stand.backend(silent)
    proxy = stand.proxy(backend, shutdown_s=1)
    stand.proxies.remove(proxy)
    client = stand.client(proxy)
    client.request()
    assert wait_until(lambda: backend.requests)
    status, out, err = stand.isobar("upgrade", "--pid", str(proxy.pid), timeout_s=90)
    successor = int(out.split()[1])
    try:
        assert status == 0, err + proxy.stderr
        assert proxy.process.wait(30) == 0, "its request will never end"
        assert proxy.get("/healthz")[0] == 200
    finally:
        os.kill(successor, signal.SIGTERM)
    assert wait_until(lambda: not is_running(successor))
    proxy.assert_clean()


def test_E5_an_upgrade_that_does_not_come_up_changes_nothing(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    with open(proxy.file, "w", encoding="utf-8") as broken:
        broken.write("{ this is no configuration")
    status, _, err = stand.isobar("upgrade", "--pid", str(proxy.pid), timeout_s=60)
    assert status == 1 and "goes on" in err, err
    assert stand.ask().status == 200
    assert wait_until(lambda: "ended before it served" in proxy.stderr)
