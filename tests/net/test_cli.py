# SPDX-License-Identifier: Apache-2.0
"""The command line: help that is complete, mistakes that are answered, and `isobar proxy` without any file."""
import os
import re
import shutil
import subprocess

import pytest

from harness.ports import free_port
from harness.process import ROOT, Isobar, wait_until
from harness.wire import connect

COMMANDS = ["proxy", "serve", "upgrade", "check", "ctl", "explain", "churn", "l4", "size", "completion", "help"]
NAMES = re.compile(r'\{"([a-z0-9-]+)", (?:required|no|optional)_argument')


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
    assert status == 0 and re.fullmatch(r"isobar \d+\.\d+\.\d+ \((OpenSSL|BoringSSL|AWS-LC)\b[^)]*\)\n", out)


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


def options_of(command):
    """What the source of a command takes."""
    folder = os.path.join(ROOT, "src/cli")
    found = set()
    for name in os.listdir(folder):
        if name == f"cmd_{command}.c" or name.startswith(f"cmd_{command}_"):
            with open(os.path.join(folder, name), encoding="utf-8") as text:
                found |= set(NAMES.findall(text.read()))
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_help_completion_and_the_manual_page_know_every_option(stand, command):
    options = options_of(command)
    shown = stand.isobar(command, "--help")[1]
    bash = stand.isobar("completion", "bash")[1]
    zsh = stand.isobar("completion", "zsh")[1]
    man = stand.isobar("help", "--man")[1]
    if command == "ctl":
        names = [line.split()[0] for line in shown[shown.index("commands:"):].splitlines()[1:] if line.startswith("  ")]
        shown += "".join(stand.isobar("ctl", name, "--help")[1] for name in names)
        words = "\n".join(re.findall(r'"?ctl[a-z ]*"?\) words="(.*)"', bash))
    else:
        words = re.search(rf'^    {command}\) words="(.*)"', bash, re.M)[1]
    for option in options:
        assert re.search(rf"--{option}\b", shown), option
        assert f"--{option}" in words.split(), option
        assert f"--{option}" in zsh, option
        assert "\\-\\-" + option.replace("-", "\\-") in man, option
    if shutil.which("zsh"):
        assert subprocess.run(["zsh", "-n"], input=zsh, text=True, capture_output=True, check=False).returncode == 0


def completed(stand, *words):
    """What bash offers for the last word."""
    script = os.path.join(stand.folder, "isobar.bash")
    with open(script, "w", encoding="utf-8") as out:
        out.write(stand.isobar("completion", "bash")[1])
    ask = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _isobar; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", ask, "bash", script, *words], capture_output=True, text=True, check=True, cwd=stand.folder)
    return done.stdout.split()


def test_bash_completes_commands_options_values_and_files(stand):
    assert completed(stand, "isobar", "ch") == ["check", "churn"]
    assert completed(stand, "isobar", "ctl", "ex") == ["export", "explain"]
    assert "--wait" in completed(stand, "isobar", "ctl", "drain", "--")
    assert "--wait" not in completed(stand, "isobar", "ctl", "top", "--")
    assert completed(stand, "isobar", "check", "--format", "") == ["text", "json"]
    assert completed(stand, "isobar", "proxy", "--algorithm", "ma") == ["maglev"]
    assert completed(stand, "isobar", "l4", "st") == ["status"]
    with open(os.path.join(stand.folder, "some.yaml"), "w", encoding="ascii"):
        pass
    assert completed(stand, "isobar", "serve", "--config", "so") == ["some.yaml"]
    assert completed(stand, "isobar", "ctl", "apply", "so") == ["some.yaml"]


def test_the_manual_page_is_one(stand):
    man = stand.isobar("help", "--man")[1]
    assert man.startswith(".TH ISOBAR 1 ")
    for line in man.splitlines():
        assert not re.match(r"[.'](?!TH|SH|SS|TP|PP|nf|fi|nh|ad|br|RS|RE)", line), line
    assert man.count("\n.nf\n") == man.count("\n.fi\n")


def test_help_of_a_command_by_its_name(stand):
    assert stand.isobar("help", "serve")[:2] == stand.isobar("serve", "--help")[:2]
    for args in (["help", "nothing"], ["help", "serve", "check"], ["completion"], ["completion", "fish"]):
        assert stand.isobar(*args)[0] == 2
