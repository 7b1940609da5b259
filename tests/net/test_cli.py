# SPDX-License-Identifier: Apache-2.0
"""The command line: help that is complete, mistakes that are answered, and `isobar proxy` without any file."""
import re

import pytest

from harness.ports import free_port
from harness.process import Isobar, wait_until
from harness.wire import connect

COMMANDS = ["proxy", "serve", "check", "churn", "upgrade"]


def test_help_lists_every_command(stand):
    for args in (["--help"], ["help"], ["-h"]):
        status, out, err = stand.isobar(*args)
        assert status == 0 and err == ""
        for command in COMMANDS:
            assert re.search(rf"^\s+{command}\b", out, re.M), command


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(stand, command):
    status, out, err = stand.isobar(command, "--help")
    assert status == 0 and err == "" and out.startswith(f"usage: isobar {command}")
    assert "-h, --help" in out


def test_version(stand):
    status, out, _ = stand.isobar("--version")
    assert status == 0 and re.fullmatch(r"isobar \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize("args", [
    [], ["prox"], ["proxy"], ["proxy", "--lisen", ":1"], ["proxy", "--listen", ":8080"], ["proxy", "stray"], ["serve"],
    ["serve", "--config"], ["serve", "stray"], ["check"], ["check", "--frob", "x"]], ids=" ".join)
def test_wrong_usage_is_answered_with_status_2_and_a_word(stand, args):
    status, out, err = stand.isobar(*args)
    assert status == 2 and err and out == ""


@pytest.mark.parametrize("args,word", [
    (["--listen", "nowhere", "--to", "127.0.0.1:1"], "nowhere"),
    (["--listen", "127.0.0.1:1", "--to", "127.0.0.1"], "127.0.0.1"),
    (["--listen", "127.0.0.1:1", "--to", "127.0.0.1:99999"], "99999"),
    (["--listen", "127.0.0.1:1", "--to", "127.0.0.1:80", "--algorithm", "robin"], "robin"),
    (["--listen", "127.0.0.1:1", "--to", "127.0.0.1:80", "--workers", "many"], "many"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_values_fail_the_start_and_are_named(stand, args, word):
    status, out, err = stand.isobar("proxy", *args)
    assert status in (1, 2) and word in err and out == ""


def test_suggestions_for_commands_and_algorithms(stand):
    assert "proxy" in stand.isobar("porxy")[2]
    assert "round_robin" in stand.isobar("proxy", "--listen", ":1", "--to", "127.0.0.1:1", "--algorithm", "round_robbin")[2]


def test_proxy_works_without_any_file(stand):
    a, b = stand.backends_named("A", "B")
    port, admin = free_port(), free_port()
    proxy = Isobar(stand.folder, None, ["proxy", "--listen", f"127.0.0.1:{port}", "--to", f"127.0.0.1:{a.port}",
                                        "--to", f"127.0.0.1:{b.port}", "--algorithm", "round_robin", "--admin",
                                        f"127.0.0.1:{admin}"])
    proxy.admin = ("127.0.0.1", admin)
    stand.proxies.append(proxy)
    proxy.ready()
    seen = set()

    def both():
        client = connect(("127.0.0.1", port))
        stand.clients.append(client)
        client.request()
        response = client.read_response()
        if response.status == 200:
            seen.add(response.body)
        return len(seen) == 2

    assert wait_until(both)
    assert seen == {b"A", b"B"}
