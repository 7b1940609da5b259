# SPDX-License-Identifier: Apache-2.0
"""`isobar size` (J5)."""
import subprocess

from harness.process import ISOBAR


def size(*arguments):
    return subprocess.run([ISOBAR, "size", *arguments], capture_output=True, text=True, timeout=10)


def number(text, name):
    return float([line for line in text.splitlines() if line.strip().startswith(name)][0].split()[-1])


def test_ten_times_the_load_needs_ten_times_the_proxies_J5():
    few = size("--requests", "1000000", "--spare", "0")
    many = size("--requests", "10000000", "--spare", "0")
    assert few.returncode == many.returncode == 0
    assert number(few.stdout, "proxies (L7)") == 17  # a million at 60% of 100,000 each
    assert number(many.stdout, "proxies (L7)") == 167


def test_checkers_in_zones_probe_less_than_every_proxy_would_D6():
    text = size("--targets", "1000", "--requests", "10000000").stdout
    assert "by every proxy" in text and "by 3 checkers in 3 zones" in text
    assert " 1800 /s, 1.8 a target" in text


def test_wrong_numbers_are_refused():
    done = size("--load-pct", "0")
    assert done.returncode == 2 and "from 1 to 100" in done.stderr
    assert size("nonsense").returncode == 2
