#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a second worker costs: CPU microseconds per request of Isobar with one and with two workers, in interleaved
rounds, under the same load. Workers share no line that both write on each request but two counters per target, so the
two figures should be within 5 %.

    bench/l7/scaling.py [ROUNDS] [SECONDS]      needs wrk and a built tree; the load is a closed loop of 32 connections"""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "net"))
from harness.ports import free_port  # noqa: E402

ISOBAR = os.environ.get("ISOBAR", os.path.join(ROOT, "build", "src", "cli", "isobar"))


def document(workers, port, backend):
    return {"workers": workers, "admin": {"listen": "off"},
            "load_balancers": [{"name": "scaling", "vip": "127.0.0.1", "listeners": [
                {"port": port, "protocol": "HTTP", "default_target_group": "be"}]}],
            "target_groups": [{"name": "be", "algorithm": "p2c_least_request", "health_check": {"type": "none"},
                               "targets": [{"ip": "127.0.0.1", "port": backend}]}]}


def cpu_ns(pid):
    """Time on CPU of all threads, by the scheduler's clock."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as text:
            total += int(text.read().split()[0])
    return total


def one_round(workers, backend, seconds, folder):
    port = free_port()
    config = os.path.join(folder, f"{workers}.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(document(workers, port, backend), file)
    isobar = subprocess.Popen([ISOBAR, "serve", "--config", config], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    url = f"http://127.0.0.1:{port}/128"
    subprocess.run(["wrk", "-t1", "-c32", "-d1s", url], stdout=subprocess.DEVNULL, check=True)
    before = cpu_ns(isobar.pid)
    out = subprocess.run(["wrk", "-t1", "-c32", f"-d{seconds}s", url], capture_output=True, text=True, check=True).stdout
    used = cpu_ns(isobar.pid) - before
    isobar.terminate()
    isobar.wait()
    return used / 1000 / int(re.search(r"(\d+) requests in", out).group(1))


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="isobar-scaling-") as folder:
        program, backend = os.path.join(folder, "backend"), free_port()
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "l7be.c")], check=True)
        origin = subprocess.Popen([program, "-a", "127.0.0.1", "-p", str(backend)])
        time.sleep(0.2)
        try:
            pairs = []
            for turn in range(rounds):
                order = (1, 2) if turn % 2 == 0 else (2, 1)
                taken = {workers: one_round(workers, backend, seconds, folder) for workers in order}
                pairs.append((taken[1], taken[2]))
        finally:
            origin.terminate()
            origin.wait()
    print("cpu us/request  one worker %.2f  two workers %.2f  ratio %.3f (median of %d interleaved rounds)" % (
        statistics.median(one for one, _ in pairs), statistics.median(two for _, two in pairs),
        statistics.median(two / one for one, two in pairs), rounds))


if __name__ == "__main__":
    main()
