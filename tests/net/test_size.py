# SPDX-License-Identifier: Apache-2.0
"""`isobar size` (J5)."""
import re
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


def test_the_numbers_of_source_000_come_out_J5():
    text = size("--requests", "10000000", "--packets-per-request", "10", "--request-bytes", "4340", "--response-bytes", "25000",
                "--targets", "50000", "--spare", "3", "--nic-gbit", "40").stdout
    assert "100000000 packets/s, 400.0 Gbit/s" in text
    assert 2000 < float(re.search(r"to clients +([0-9.]+) Gbit/s", text)[1]) < 4000
    assert number(text, "packet nodes (L4)") == 24 and number(text, "proxies (L7)") == 170
    assert " 1700000 /s" in text  # if every proxy probed every backend


def test_the_numbers_of_source_001_come_out_J5():
    text = size("--request-bytes", "2000", "--load-pct", "100", "--connection-s", "10", "--spare", "0").stdout
    assert number(text, "proxies (L7)") == 10 and "2.0, 10.0 GB/s" in text
    assert number(text, "open connections") == 1000000 and "100000 open connections" in text
    assert " 1000 /s" in text  # 10 nodes probe 500 servers every 5 s
    assert number(size("--request-bytes", "2000", "--load-pct", "100").stdout, "proxies (L7)") == 12
