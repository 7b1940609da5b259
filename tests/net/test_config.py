# SPDX-License-Identifier: Apache-2.0
"""`isobar check`, and what `serve` says about a bad file."""
import json
import os
import re
import subprocess

import pytest

from harness.process import ISOBAR, ROOT

GOOD = """\
# a comment
admin: { listen: "127.0.0.1:8443" }
load_balancers:
  - name: lb
    vip: 127.0.0.1
    listeners:
      - { port: 8080, protocol: HTTP, default_target_group: web }
target_groups:
  - name: web
    algorithm: round_robin
    health_check: { type: none }
    targets:
      - { ip: 127.0.0.1, port: 9001 }
"""


def check(stand, text, name="c.yaml"):
    """Runs check on a text: (status, faults as (line, column, message)). Every line of output must name the place."""
    path = os.path.join(stand.folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    status, _, err = stand.isobar("check", path)
    faults = []
    for line in err.splitlines():
        match = re.match(re.escape(path) + r":(\d+):(\d+): (.*)$", line)
        assert match, line
        faults.append((int(match[1]), int(match[2]), match[3]))
    return status, faults


def test_a_good_file_passes_in_yaml_and_json(stand):
    assert check(stand, GOOD) == (0, [])
    as_json = {"load_balancers": [{"name": "lb", "listeners": [{"port": 8080, "default_target_group": "web"}]}],
               "target_groups": [{"name": "web", "targets": [{"ip": "127.0.0.1", "port": 9001}]}]}
    assert check(stand, json.dumps(as_json), "c.json") == (0, [])


def test_C_125_a_misspelt_key_is_an_error_with_its_place_and_a_suggestion(stand):
    status, faults = check(stand, GOOD.replace("algorithm: round_robin", "algoritm: round_robin"))
    assert status == 1 and len(faults) == 1
    line, column, message = faults[0]
    assert (line, column) == (10, 5)
    assert "/target_groups/0" in message and "algoritm" in message and "algorithm" in message


def test_C_125_a_misspelt_value_is_an_error_with_a_suggestion(stand):
    status, faults = check(stand, GOOD.replace("round_robin", "round_robbin"))
    assert status == 1 and len(faults) == 1
    assert faults[0][0] == 10 and "round_robin" in faults[0][2]


def test_C_125_a_key_in_the_wrong_section_is_an_error(stand):
    status, faults = check(stand, GOOD.replace("    vip: 127.0.0.1\n", "    vip: 127.0.0.1\n    algorithm: random\n"))
    assert status == 1 and faults[0][0] == 6 and "/load_balancers/0" in faults[0][2]


@pytest.mark.parametrize("text", [
    GOOD.replace("default_target_group: web", "default_target_group: wep"),
    GOOD[:GOOD.index("target_groups:")],
], ids=["another", "none-declared"])
def test_C_125_an_undeclared_target_group_is_an_error(stand, text):
    status, faults = check(stand, text)
    assert status == 1 and any("default_target_group" in message for _, _, message in faults)


def test_C_125_wrong_units_and_types_are_errors(stand):
    for bad in ("timeouts: { connect_ms: 5x }", "timeouts: { connect_ms: -1 }", "timeouts: { connect_ms: [1] }",
                "timeouts: 5", "limits: { pending: 1e99 }", "limits: { pending: 1.5 }"):
        status, faults = check(stand, GOOD.replace("algorithm: round_robin", bad))
        assert status == 1 and len(faults) == 1 and faults[0][0] == 10, (bad, faults)


def test_every_fault_is_reported_at_once(stand):
    text = GOOD.replace("port: 8080", "port: 80800").replace("round_robin", "roundrobin") \
        .replace("type: none", "type: nune").replace("port: 9001", "prot: 9001")
    status, faults = check(stand, text)
    assert status == 1
    assert {7, 10, 11, 13} <= {line for line, _, _ in faults}


def test_syntax_errors_name_their_line(stand):
    for text, line in (("a: [1, 2\nb: 3\n", 2), ("\tload_balancers: []\n", 1), (GOOD + "  bad indent: [\n", None),
                       ('{"a": 1,, "b": 2}', 1)):
        status, faults = check(stand, text)
        assert status == 1 and faults, text
        if line:
            assert faults[0][0] in (line, line + 1), faults


def test_duplicates_are_errors(stand):
    twice = GOOD + "    algorithm: random\n"
    status, faults = check(stand, twice)
    assert status == 1 and any("algorithm" in message for _, _, message in faults)
    status, faults = check(stand, GOOD + GOOD[GOOD.index("  - name: web"):])
    assert status == 1 and any("web" in message for _, _, message in faults)


def test_C_110_illegal_weights_are_refused(stand):
    for weight in (-1, 65536, 1000000, "heavy", 1.5):
        status, faults = check(stand, GOOD.replace("port: 9001", f"port: 9001, weight: {weight}"))
        assert status == 1 and "weight" in faults[0][2], weight
    for weight in (0, 1, 257, 65535):
        assert check(stand, GOOD.replace("port: 9001", f"port: 9001, weight: {weight}"))[0] == 0


def test_C_127_check_touches_nothing_beside_a_running_proxy(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    before = sorted(os.listdir(proxy.folder))
    status, out, err = stand.isobar("check", proxy.file)
    assert status == 0 and err == "", err
    assert sorted(os.listdir(proxy.folder)) == before
    assert stand.ask().status == 200


def test_C_127_check_makes_no_network_or_file_calls(stand, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(GOOD.replace("algorithm: round_robin", "algorithm: maglev")
                    + "access_log: { file: must-not-appear.log }\n")
    trace = subprocess.run(["strace", "-f", "-e", "trace=network,unlink,rename,mkdir", "-o", str(tmp_path / "trace"), ISOBAR,
                            "check", str(path)], capture_output=True, text=True,
                           # The leak check of AddressSanitizer cannot run under strace.
                           env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}) if has_strace() else None
    if trace is None:
        status, _, _ = stand.isobar("check", str(path))
        assert status == 0
    else:
        assert trace.returncode == 0
        assert "socket(" not in (tmp_path / "trace").read_text()
    assert not (tmp_path / "must-not-appear.log").exists()


def has_strace():
    return subprocess.run(["sh", "-c", "command -v strace"], capture_output=True).returncode == 0


def test_check_reads_several_files_and_fails_when_one_is_bad(stand):
    good, bad = os.path.join(stand.folder, "good.yaml"), os.path.join(stand.folder, "bad.yaml")
    for path, text in ((good, GOOD), (bad, GOOD.replace("type: none", "type: x"))):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    assert stand.isobar("check", good)[0] == 0
    status, _, err = stand.isobar("check", good, bad)
    assert status == 1 and bad in err and good not in err
    assert stand.isobar("check", os.path.join(stand.folder, "absent.yaml"))[0] == 1
    assert stand.isobar("check")[0] == 2


def test_serve_refuses_a_bad_file_with_the_same_words(stand):
    path = os.path.join(stand.folder, "bad.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(GOOD.replace("round_robin", "round_robbin"))
    _, _, wanted = stand.isobar("check", path)
    status, _, err = stand.isobar("serve", "--config", path)
    assert status == 1
    assert wanted.strip().split(": ", 1)[1] in err


def test_hostile_documents_are_refused_without_a_crash(stand):
    bombs = ["[" * 100000, "{a: " * 50000, "a: &x [*x]\n", "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'},*{'a' if n == 0 else f'b{n - 1}'}]\n" for n in range(40)),
        "\x00", "\xff\xfe", "---\n---\n---\n", "- 1\n- 2\n", "x" * 1000000, "", "null\n", "{}: {}\n", "? [a]\n: b\n"]
    for text in bombs:
        path = os.path.join(stand.folder, "bomb.yaml")
        with open(path, "wb") as out:
            out.write(text.encode("latin-1"))
        status, _, _ = stand.isobar("check", path)
        assert status in (0, 1), text[:40]


def test_every_example_in_the_tree_is_valid(stand):
    folder = os.path.join(ROOT, "examples")
    names = [name for name in sorted(os.listdir(folder)) if name.endswith((".yaml", ".json"))]
    assert names
    for name in names:
        status, _, err = stand.isobar("check", os.path.join(folder, name))
        assert status == 0, err
