# SPDX-License-Identifier: Apache-2.0
"""The access log: one line a request, with who ended it and in which phase."""
import json
import os
import re
import signal
import time

from harness.backend import text_response
from harness.ports import free_port
from harness.process import ROOT, wait_until


def logged(stand, path, n):
    """The lines of the log once there are n of them."""

    def lines():
        try:
            with open(path, encoding="utf-8") as text:
                found = text.read().splitlines()
        except FileNotFoundError:
            return None
        return found if len(found) >= n else None

    found = wait_until(lines)
    assert found and len(found) == n, found
    return found


def test_K1_json_lines_hold_what_happened(stand):
    backend = stand.backend()
    log = stand.folder + "/access.log"
    stand.proxy(backend, access_log={"file": log, "format": "json"})
    client = stand.client()
    client.request("POST", "/path?a=b", fields=[("User-Agent", 'sly "agent"\\'), ("Referer", "http://r.example/")], body=b"123")
    assert client.read_response().status == 200
    entry = json.loads(logged(stand, log, 1)[0])
    for key, wanted in {"client": "127.0.0.1", "method": "POST", "host": "t.example", "path": "/path", "query": "a=b",
                        "status": 200, "protocol": "HTTP/1.1", "target_group": "web", "target": backend.label, "reason": "-",
                        "attempts": 1, "user_agent": 'sly "agent"\\', "referer": "http://r.example/",
                        "request_id": backend.requests[0].get("X-Request-Id")}.items():
        assert entry[key] == wanted, (key, entry)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"])
    assert entry["received_bytes"] > 50 and entry["sent_bytes"] > 20 and entry["duration_us"] >= entry["upstream_us"] >= 0


def test_hostile_bytes_cannot_forge_a_line(stand):
    backend = stand.backend()
    log = stand.folder + "/access.log"
    stand.proxy(backend, access_log={"file": log, "format": "json"})
    stand.exchange(b"GET /\"},{\"status\":1 HTTP/1.1\r\nHost: t.example\r\nUser-Agent: \xff\xfe\"\x09\\\r\nConnection: close\r\n\r\n")
    stand.exchange(b"GET /x HTTP/1.1\r\nHost: t.example\r\nUser-Agent: a\nb\r\n\r\n")
    for line in logged(stand, log, 2):
        assert isinstance(json.loads(line), dict)


def test_a_format_string_is_filled_in(stand):
    backend = stand.backend()
    log = stand.folder + "/access.log"
    stand.proxy(backend, access_log={"file": log, "format": '{client} "{request}" {status} {listener} {target} {reason}'})
    stand.ask(target="/f?g=1")
    line = logged(stand, log, 1)[0]
    assert line == f'127.0.0.1 "GET /f?g=1 HTTP/1.1" 200 {line.split()[5]} {backend.label} -'


def test_the_log_may_go_to_stdout(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, access_log={"file": "stdout", "format": "{method} {path} {status}"})
    stand.ask(target="/seen")
    assert wait_until(lambda: "GET /seen 200\n" in proxy.stdout)


def reason_words():
    """The words of the tables in the source; a unit test compares docs/reasons.md with them."""
    words = set()
    for name in ("src/http/reject.def", "src/observe/ends.def"):
        with open(os.path.join(ROOT, name), encoding="utf-8") as lines:
            words.update(re.findall(r'^(?:END|REJECT)\(\w+, \d+, "([a-z0-9-]+)"', lines.read(), re.M))
    return words


def test_every_failure_of_ours_has_a_reason_word(stand):
    def silent(wire):
        wire.read_request()
        wire.read_to_end()

    quiet, ok = stand.backend(silent, name="quiet"), stand.backend(name="ok")
    config = stand.config(quiet, group={"timeouts": {"response_ms": 200}},
                          listener={"timeouts": {"header_ms": 400, "body_ms": 400}, "limits": {"body_bytes": 100}})
    config["target_groups"] += [
        {**config["target_groups"][0], "name": "dead", "targets": [{"ip": "127.0.0.1", "port": free_port()}]},
        {**config["target_groups"][0], "name": "down", "health_check": {"type": "tcp"}, "panic_threshold_pct": 0,
         "targets": [{"ip": "127.0.0.1", "port": free_port()}]},
        {**config["target_groups"][0], "name": "ok", "targets": [ok.target]}]
    config["load_balancers"][0]["listeners"][0]["rules"] = [
        {"match": {"path_prefix": f"/{name}"}, "forward": [{"target_group": name}]} for name in ("dead", "down", "ok")]
    log = stand.folder + "/access.log"
    config["access_log"] = {"file": log, "format": "{status} {reason} {path}"}
    stand.serve(config)
    wanted = []

    def expect(status, path, data=None):
        answer = stand.exchange(data or b"GET " + path + b" HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n")
        assert answer.split(b" ")[1] == b"%d" % status, answer
        wanted.append(status)
        return logged(stand, log, len(wanted))[-1].split(" ")[1]

    seen = [
        expect(504, b"/quiet"),
        expect(502, b"/dead"),
        expect(503, b"/down"),
        expect(413, b"/ok", b"POST /ok HTTP/1.1\r\nHost: t.example\r\nContent-Length: 101\r\n\r\n"),
        expect(408, b"/ok", b"POST /ok HTTP/1.1\r\nHost: t.example\r\nContent-Length: 50\r\n\r\nx"),
        expect(408, b"/ok", b"GET /ok HTTP/1.1\r\nHos"),
        expect(400, b"/ok", b"GET /ok HTTP/1.1\r\nHost : t.example\r\n\r\n"),
    ]
    assert "-" not in seen
    assert len(set(seen)) >= 6, seen
    assert set(seen) <= reason_words(), set(seen) - reason_words()


def test_a_client_that_leaves_is_logged_as_such(stand):
    backend = stand.backend()

    def answer(request):
        time.sleep(0.3)
        return text_response(b"late")

    backend.answer = answer
    log = stand.folder + "/access.log"
    stand.proxy(backend, access_log={"file": log, "format": "{status} {reason}"})
    client = stand.client()
    client.request()
    assert wait_until(lambda: backend.requests)
    client.reset()
    line = logged(stand, log, 1)[0]
    assert "client" in line.split(" ")[1]


def test_rotation_reopens_the_file_on_sigusr1(stand):
    backend = stand.backend()
    log = stand.folder + "/access.log"
    proxy = stand.proxy(backend, access_log={"file": log, "format": "{path}"})
    stand.ask(target="/before")
    logged(stand, log, 1)
    os.rename(log, log + ".1")
    proxy.signal(signal.SIGUSR1)
    assert wait_until(lambda: os.path.exists(log))
    stand.ask(target="/after")
    assert logged(stand, log, 1) == ["/after"]
    assert logged(stand, log + ".1", 1) == ["/before"]


def test_a_log_that_cannot_be_written_stops_no_request(stand):
    fifo = stand.folder + "/fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        backend = stand.backend()
        proxy = stand.proxy(backend, access_log={"file": fifo, "format": "json"})
        client = stand.client()
        for _ in range(3000):
            client.request(fields=[("User-Agent", "u" * 400)])
            assert client.read_response().status == 200
        metrics = proxy.metrics()
        assert metrics.select("access_log_dropped_total")
        drained = 0
        os.set_blocking(reader, True)
        while drained < 1000:
            drained += len(os.read(reader, 65536))
    finally:
        os.close(reader)
