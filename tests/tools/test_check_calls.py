# SPDX-License-Identifier: Apache-2.0
"""tools/check-calls must find a call that no include shows, and nothing where calls only go down."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(build, **files):
    folder = build / "libisobar.a.p"
    folder.mkdir()
    for name, text in files.items():
        subprocess.run(["cc", "-c", "-x", "c", "-", "-o", folder / f"src_{name}.c.o"], input=text, text=True, check=True)
    return subprocess.run([ROOT / "tools/check-calls", build], capture_output=True, text=True)


def test_calls_that_go_down_pass(tmp_path):
    done = run(tmp_path, core_text="void text(void) {}", proxy_answer="void text(void); void answer(void) { text(); }")
    assert done.returncode == 0, done.stdout


def test_a_call_that_goes_up_is_named(tmp_path):
    done = run(tmp_path, core_text="void answer(void); void text(void) { answer(); }", proxy_answer="void answer(void) {}")
    assert done.returncode == 1 and done.stdout == "core/text.c: answer of proxy/answer.c\n"


def test_a_variable_counts_too(tmp_path):
    done = run(tmp_path, core_text="extern int level; int text(void) { return level; }", proxy_answer="int level = 1;")
    assert done.returncode == 1 and "level of proxy/answer.c" in done.stdout


def test_a_build_without_symbols_is_skipped(tmp_path):
    assert run(tmp_path).returncode == 77
