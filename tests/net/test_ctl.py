# SPDX-License-Identifier: Apache-2.0
"""isobar ctl: the API from the command line; what it prints, and the status with which it ends."""
import json
import os
import threading

import pytest

from harness.backend import text_response
from harness.ports import free_port
from harness.process import wait_until
from harness.tls import Authority
from test_api_server import ADMIN, OPERATE, READ, tokens

OK, DIFFERS, USAGE, REFUSED, UNREACHABLE = range(5)


def ctl(stand, *args, status=OK, text=None, env=None, admin=None):
    """Runs a command on the first proxy: (stdout, stderr)."""
    proxy = stand.proxies[0] if stand.proxies else None
    admin = admin or (f"{proxy.admin[0]}:{proxy.admin[1]}" if proxy and proxy.admin else "127.0.0.1:1")
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("ISOBAR_")}, "ISOBAR_ADMIN": admin, **(env or {})}
    got, out, err = stand.isobar("ctl", *args, text=text, env=env)
    assert got == status, (args, got, out, err)
    return out, err


def asked(stand, *args, **options):
    return json.loads(ctl(stand, *args, "--json", **options)[0])


def two(stand, **group):
    backends = stand.backends_named("a", "b")
    return stand.proxy(backends, group=group), backends


def test_resources_are_read_and_listed(stand):
    proxy, (a, b) = two(stand)
    group = json.loads(ctl(stand, "get", "target-groups/web")[0])
    assert group["id"] == "web" and len(group["targets"]) == 2
    assert asked(stand, "get", "target-groups", "web", "targets", a.label)["port"] == a.port
    assert json.loads(ctl(stand, "get", "/api/config")[0])["algorithm"] == "round_robin"
    lines = ctl(stand, "list", "target-groups/web/targets")[0].splitlines()
    assert lines[0].split()[:3] == ["id", "ip", "port"] and sorted(line.split()[0] for line in lines[1:]) == sorted([a.label, b.label])
    assert [item["id"] for item in asked(stand, "list", "target-groups")] == ["web"]
    assert {item["server_id"] for item in asked(stand, "list", "servers", "status=healthy")} == {a.label, b.label}
    assert asked(stand, "list", "servers", "status=unhealthy") == []
    _, err = ctl(stand, "get", "target-groups/none", status=REFUSED)
    assert "404 not_found" in err


def test_every_page_of_a_list_is_fetched(stand):
    targets = [{"ip": f"10.0.{i // 250}.{i % 250 + 1}", "port": 80} for i in range(450)]
    stand.serve(stand.config(targets))
    assert len(asked(stand, "list", "target-groups/web/targets")) == 450
    assert len(ctl(stand, "list", "servers")[0].splitlines()) == 451


def test_a_target_is_drained_weighed_and_enabled(stand):
    gate = threading.Event()
    proxy, (a, b) = two(stand, algorithm="weighted_round_robin")
    a.answer = lambda request: gate.wait(30) and text_response(b"late", fields=[("X-Backend", "a")])
    held = stand.client()
    held.request("GET", "/")
    assert wait_until(lambda: json.loads(proxy.get(f"/api/servers/{a.label}")[1])["active_connections"] == 1)
    out, err = ctl(stand, "drain", "web", a.label, "--wait", "1", status=DIFFERS)
    assert "takes no new requests" in out and "still has 1 requests" in err
    assert {stand.ask().get("X-Backend") for _ in range(3)} == {"b"}
    gate.set()
    assert held.read_response("GET").status == 200
    assert "drained" in ctl(stand, "drain", "web", a.label, "--wait", "20")[0]
    ctl(stand, "enable", "web", a.label)
    ctl(stand, "weight", "web", a.label, "300")
    assert wait_until(lambda: json.loads(proxy.get(f"/api/servers/{a.label}")[1])["health"] == "healthy")
    assert sorted(stand.ask().get("X-Backend") for _ in range(4)) == ["a", "a", "a", "b"]
    assert asked(stand, "weight", "web", a.label, "7", "--dry-run")["dry_run"] is True
    assert json.loads(proxy.get(f"/api/servers/{a.label}")[1])["weight"] == 300
    ctl(stand, "weight", "web", a.label, "65536", status=USAGE)
    assert "no target" in ctl(stand, "drain", "web", "10.9.9.9:1", status=REFUSED)[1]


def test_a_file_is_compared_applied_and_exported_and_the_way_back_is_found(stand, tmp_path):
    proxy, (a, b) = two(stand)
    file = str(tmp_path / "new.json")
    ctl(stand, "export", file)
    assert ctl(stand, "diff", file)[0] == ""
    assert "no change" in ctl(stand, "apply", file)[0]
    with open(file, encoding="utf-8") as text:
        config = json.load(text)
    assert config == proxy.config  # what the file said, as it said it
    config["target_groups"][0]["algorithm"] = "maglev"
    config["target_groups"][0]["targets"][1]["enabled"] = False
    with open(file, "w", encoding="utf-8") as text:
        json.dump(config, text)
    out, _ = ctl(stand, "diff", file, status=DIFFERS)
    assert "~ target_groups/web" in out and f"drained    web {b.label}" in out and "capacity 200 to 100" in out
    assert asked(stand, "diff", file, status=DIFFERS)["impact"]
    assert json.loads(proxy.get("/api/config")[1])["algorithm"] == "round_robin"
    ctl(stand, "apply", file, "--if-version", "7", status=REFUSED)
    assert "version 2 is in force" in ctl(stand, "apply", file, "--if-version", "1")[0]
    assert json.loads(proxy.get("/api/config")[1])["algorithm"] == "maglev"
    lines = ctl(stand, "versions")[0].splitlines()
    assert lines[0].split() == ["version", "at", "who", "changes"] and [line.split()[0] for line in lines[1:]] == ["2", "1"]
    assert "algorithm" in ctl(stand, "versions", "2")[0]
    assert "nothing" not in ctl(stand, "rollback", "1", "--dry-run")[0]
    assert "version 3 is in force" in ctl(stand, "rollback", "1")[0]
    assert json.loads(proxy.get("/api/config")[1])["algorithm"] == "round_robin"
    yaml = ctl(stand, "export")[0].replace("round_robin", "ip_hash")
    assert "in force" in ctl(stand, "apply", "-", text=yaml)[0]
    broken = ctl(stand, "export")[0].replace("ip_hash", "fastest")
    out, err = ctl(stand, "apply", "-", text=broken, status=REFUSED)
    assert "/target_groups/0/algorithm" in err and "expected" in err
    ctl(stand, "apply", str(tmp_path / "none"), status=USAGE)


def test_sessions_are_found_and_ended(stand):
    proxy, _ = two(stand, affinity={"type": "client_ip"})
    assert "404" in ctl(stand, "sessions", "127.0.0.1", status=REFUSED)[1]
    first = stand.ask().get("X-Backend")
    out, _ = ctl(stand, "sessions", "127.0.0.1")
    assert "127.0.0.1 is bound to" in out and "target group web" in out
    assert asked(stand, "sessions", "127.0.0.1", "--group", "web")["client_ip"] == "127.0.0.1"
    assert "ended" in ctl(stand, "sessions", "127.0.0.1", "--end")[0]
    assert stand.ask().get("X-Backend") != first


def test_explain_asks_the_running_process(stand):
    proxy, (a, b) = two(stand, algorithm="ip_hash")
    port = proxy.config["load_balancers"][0]["listeners"][0]["port"]
    served = stand.ask().get("X-Backend")
    out, _ = ctl(stand, "explain", f"http://t.example:{port}/x", "-X", "POST", "-H", "A: 1", "-H", "a: 2", "-H", "B: 3:4")
    assert f"chosen     {(a if served == 'a' else b).label}" in out and "POST http://t.example" in out
    said = asked(stand, "explain", f"http://t.example:{port}/x", "--from", "192.0.2.1")
    assert said["request"]["client_ip"] == "192.0.2.1"
    assert "where no listener is" in ctl(stand, "explain", f"http://t.example:{free_port()}/", status=REFUSED)[1]


def test_metrics_and_top_show_live_figures(stand):
    proxy, (a, b) = two(stand)
    for _ in range(10):
        stand.ask()
    out, _ = ctl(stand, "metrics")
    assert out.startswith("target group web: ") and a.label in out and " 5\n" in out
    assert asked(stand, "metrics", "web")["total_requests"] == 10
    assert "# TYPE isobar_target_up gauge" in ctl(stand, "metrics", "--prometheus")[0]
    lines = ctl(stand, "top")[0].splitlines()  # no terminal: once
    assert lines[0].startswith("target group") and len(lines) == 3 and "\033" not in lines[0]
    assert {server["server_id"] for server in asked(stand, "top", "--once")} == {a.label, b.label}


def test_top_draws_in_place_on_a_terminal_until_it_is_interrupted(stand):
    import pty
    import signal
    import subprocess

    from harness.process import ISOBAR
    proxy, _ = two(stand)
    master, slave = pty.openpty()
    top = subprocess.Popen([ISOBAR, "ctl", "top", "--interval", "1", "--admin", f"127.0.0.1:{proxy.admin[1]}"], stdin=slave,
                           stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while seen.count(b"\033[2J") < 2:
        seen += os.read(master, 65536)
    top.send_signal(signal.SIGINT)
    assert top.wait(30) == 0 and b"Ctrl-C" in seen
    os.close(master)


def test_tokens_come_from_a_file_or_the_environment(stand):
    backend = stand.backend()
    config = stand.config(backend)
    config["admin"]["token_file"] = tokens(stand.folder)
    stand.serve(config)
    file = os.path.join(stand.folder, "mine")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
        out.write(OPERATE + "\n")
    assert "401" in ctl(stand, "list", "servers", status=REFUSED)[1]
    ctl(stand, "list", "servers", env={"ISOBAR_TOKEN": READ})
    ctl(stand, "weight", "web", backend.label, "5", status=REFUSED, env={"ISOBAR_TOKEN": READ})
    ctl(stand, "weight", "web", backend.label, "5", env={"ISOBAR_TOKEN_FILE": file})
    ctl(stand, "weight", "web", backend.label, "6", "--token-file", file)
    ctl(stand, "rollback", "1", "--token-file", file, status=REFUSED)
    ctl(stand, "rollback", "1", env={"ISOBAR_TOKEN": ADMIN})
    ctl(stand, "list", "servers", "--token-file", "/nowhere", status=USAGE)
    ctl(stand, "list", "servers", env={"ISOBAR_TOKEN": "a\r\nX: y"}, status=USAGE)
    stand.proxies[0].admin = None  # the end of the test has no token


def test_https_is_verified(stand, tmp_path):
    authority = Authority(tmp_path)
    config = stand.config(stand.backend())
    cert = authority.issue("admin", "localhost", "127.0.0.1")
    config["admin"]["tls"] = {"cert_file": cert["cert_file"], "key_file": cert["key_file"]}
    proxy = stand.serve(config, ready=False)
    proxy.admin_tls = authority.context()
    proxy.ready()
    address = f"https://127.0.0.1:{proxy.admin[1]}"
    ctl(stand, "list", "servers", "--ca-file", authority.file, admin=address)
    _, err = ctl(stand, "list", "servers", status=UNREACHABLE, admin=address)
    assert "certificate is not accepted" in err


def test_no_answer_is_a_status_of_its_own(stand):
    for admin in (f"127.0.0.1:{free_port()}", "unix:/nowhere/socket", "nonsense", "http://[::1]:1", "127.0.0.1:999999"):
        _, err = ctl(stand, "list", "servers", admin=admin, status=UNREACHABLE)
        assert err.startswith("isobar ctl: ")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", b"nonsense\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", b"HTTP/1.1 200"])
def test_a_server_that_answers_nonsense_is_no_answer(stand, answer):
    def speak(wire):
        wire.read_request()
        wire.send(answer)

    liar = stand.backend(speak)
    ctl(stand, "list", "servers", admin=f"127.0.0.1:{liar.port}", status=UNREACHABLE)


def test_what_a_terminal_would_act_upon_is_not_printed(stand):
    def speak(wire):
        wire.read_request()
        wire.send(text_response(b'{"items":[{"id":"a\\u001b[2Jb"}],"next_cursor":null}', fields=[("Content-Type", "application/json")]))

    liar = stand.backend(speak)
    out, _ = ctl(stand, "list", "target-groups", admin=f"127.0.0.1:{liar.port}")
    assert "a?[2Jb" in out and "\033" not in out


@pytest.mark.parametrize("args", [[], ["nothing"], ["get"], ["list"], ["drain"], ["drain", "web"], ["weight", "web", "x"], ["apply"],
                                  ["rollback"], ["sessions"], ["explain"], ["get", "x", "--frob"], ["get", "x", "--dry-run"],
                                  ["top", "--interval", "0"], ["apply", "x", "--if-version", "y"], ["explain", "u", "-H", "x"]],
                         ids=" ".join)
def test_wrong_usage_is_status_2_and_touches_nothing(stand, args):
    out, err = ctl(stand, *args, status=USAGE)
    assert err and out == ""


def test_every_command_explains_itself(stand):
    out, _ = ctl(stand, "--help")
    commands = [line.split()[0] for line in out[out.index("commands:"):].splitlines()[1:] if line.startswith("  ")]
    assert set(commands) >= {"get", "list", "apply", "diff", "export", "drain", "enable", "weight", "versions", "rollback", "sessions",
                             "metrics", "top", "explain"}
    for command in commands:
        text, _ = ctl(stand, command, "--help")
        assert text.startswith(f"usage: isobar ctl {command}") and "--help" in text
