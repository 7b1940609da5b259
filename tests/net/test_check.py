# SPDX-License-Identifier: Apache-2.0
"""What `isobar check` prints and returns; what it finds is in test_config.py and tests/unit/config."""
import json
import os
import subprocess

from harness.process import ISOBAR

GOOD = """load_balancers:
  - { name: l, listeners: [{ port: 80, default_target_group: g }, { port: 81, default_target_group: g }] }
target_groups:
  - { name: g, targets: [{ ip: 10.0.0.1, port: 80 }, { ip: 10.0.0.2, port: 80 }, { ip: 10.0.0.3, port: 80 }] }
"""
BAD = GOOD.replace("port: 81", "port: 99999")


def write(stand, name, text):
    path = os.path.join(stand.folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def test_a_good_file_is_summed_up_in_one_line(stand):
    path = write(stand, "good.yaml", GOOD)
    assert stand.isobar("check", path) == (
        0, f"{path}: ok: 1 load balancer, 2 listeners, 1 target group, 3 targets\n", "")


def test_faults_are_lines_with_their_place_on_stderr(stand):
    path = write(stand, "bad.yaml", BAD)
    assert stand.isobar("check", path) == (
        1, "", f"{path}:2:75: /load_balancers/0/listeners/1/port: is the number 99999, expected a whole number from 1 to "
               "65535\n")


def test_warnings_do_not_fail(stand):
    path = write(stand, "odd.yaml", GOOD.replace("name: g, t", "name: g, hash_key: path, t"))
    status, out, err = stand.isobar("check", path)
    assert status == 0 and ": ok: " in out
    assert err.startswith(f"{path}:4:26: warning: /target_groups/0/hash_key: ")


def test_json_has_all_files_and_their_faults(stand):
    good, bad = write(stand, "good.yaml", GOOD), write(stand, "bad.yaml", BAD)
    status, out, err = stand.isobar("check", "--format", "json", good, bad)
    assert status == 1 and err == ""
    first, second = json.loads(out)
    assert first == {"file": good, "ok": True, "errors": 0, "warnings": 0, "load_balancers": 1, "listeners": 2,
                     "target_groups": 1, "targets": 3, "faults": []}
    assert (second["file"], second["ok"], second["errors"]) == (bad, False, 1)
    assert second["faults"] == [{
        "severity": "error", "line": 2, "column": 75, "path": "/load_balancers/0/listeners/1/port",
        "message": "is the number 99999, expected a whole number from 1 to 65535"}]


def test_a_pipe_is_read(stand):
    run = subprocess.run([ISOBAR, "check", "/dev/stdin"], input=GOOD, capture_output=True, text=True, check=False)
    assert run.returncode == 0 and run.stdout.startswith("/dev/stdin: ok: ")


def test_the_reference_has_every_section(stand):
    status, out, err = stand.isobar("check", "--reference")
    assert status == 0 and err == ""
    for part in ("## Top of the document", "## `load_balancers[].listeners[]`", "## `target_groups[].health_check`"):
        assert part in out


def test_wrong_options_are_usage_errors(stand):
    for args in ([], ["--format", "xml", "f"], ["--format"], ["--what"]):
        status, out, err = stand.isobar("check", *args)
        assert status == 2 and out == "" and err, args
