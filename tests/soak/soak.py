#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Full load for a long time while targets die and return and the configuration changes. At the end: no request failed
that the retry rules of docs/configuration.md do not allow, nothing leaked (descriptors, memory, gauges).

    tests/soak/soak.py [SECONDS]        default 600; `make soak SOAK_SECONDS=60` for a short one

Needs wrk and a built tree; everything runs on loopback. One target at a time is killed (SIGKILL, so requests on it
break) and started again; requests are GETs of 200 bytes, which may be sent again, so none should fail."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "net"))
from harness.ports import free_port  # noqa: E402

KINDS = ("connect", "read", "write", "timeout", "Non-2xx or 3xx responses:")
ISOBAR = os.environ.get("ISOBAR", os.path.join(ROOT, "build", "src", "cli", "isobar"))


def document(admin, port, targets, turn):
    return {
        "admin": {"listen": f"127.0.0.1:{admin}"},
        "workers": 2,
        "load_balancers": [{"name": "soak", "vip": "127.0.0.1", "listeners": [
            {"port": port, "protocol": "HTTP", "default_target_group": "web", "limits": {"headers": 60 + turn % 20}}]}],
        "target_groups": [{
            "name": "web", "algorithm": ["p2c_least_request", "round_robin", "least_connections", "maglev"][turn % 4],
            "health_check": {"type": "tcp", "interval_s": 0.5, "timeout_ms": 500, "unhealthy_threshold": 2},
            "retry": {"attempts": 3, "on": ["connect_failure", "reset"], "budget_pct": 50},
            "targets": [{"ip": "127.0.0.1", "port": p} for p in targets]}],
    }


class Soak:
    def __init__(self, seconds):
        self.seconds = seconds
        self.folder = tempfile.mkdtemp(prefix="isobar-soak-")
        self.backend = os.path.join(self.folder, "backend")
        subprocess.run(["cc", "-O2", "-o", self.backend, os.path.join(ROOT, "bench", "l7", "l7be.c")], check=True)
        self.targets = [free_port() for _ in range(4)]
        self.running = {}
        self.admin, self.port = free_port(), free_port()
        self.config = os.path.join(self.folder, "soak.json")
        self.turn = 0
        self.kills = 0
        self.kinds = {}

    def start_target(self, port):
        self.running[port] = subprocess.Popen([self.backend, "-a", "127.0.0.1", "-p", str(port)])

    def kill_target(self, port):
        self.running.pop(port).kill()
        self.kills += 1

    def write_config(self):
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            json.dump(document(self.admin, self.port, self.targets, self.turn), file)
        os.rename(self.config + ".new", self.config)
        self.turn += 1

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        sums = {}
        for name, labels, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", text, re.M):
            sums[name] = sums.get(name, 0) + float(value)
            for label in re.findall(r'class="(\w+)"', labels):
                sums[f"{name}.{label}"] = sums.get(f"{name}.{label}", 0) + float(value)
        return sums

    def footprint(self):
        with open(f"/proc/{self.isobar.pid}/status", encoding="ascii") as status:
            rss_kb = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
        return len(os.listdir(f"/proc/{self.isobar.pid}/fd")), rss_kb

    def load(self, seconds):
        """One run of wrk; returns (requests, failures)."""
        out = subprocess.run(["wrk", "-t1", "-c64", f"-d{seconds}s", f"http://127.0.0.1:{self.port}/200"],
                             capture_output=True, text=True, check=True).stdout
        kinds = [sum(int(n) for n in re.findall(kind + r" (\d+)", out)) for kind in KINDS]
        return [int(re.search(r"(\d+) requests in", out).group(1))] + kinds

    def run(self):
        for port in self.targets:
            self.start_target(port)
        self.write_config()
        self.isobar = subprocess.Popen([ISOBAR, "serve", "--config", self.config], stderr=subprocess.DEVNULL)
        time.sleep(2)
        self.load(2)
        time.sleep(1)
        fds_before, rss_before = self.footprint()
        end, requests, failures = time.monotonic() + self.seconds, 0, 0
        while time.monotonic() < end:
            wrk = subprocess.Popen([sys.executable, __file__, "--load", str(self.port)], stdout=subprocess.PIPE, text=True)
            down = None
            while wrk.poll() is None:
                if down is None:
                    down = random.choice(self.targets)
                    self.kill_target(down)
                else:
                    self.start_target(down)
                    down = None
                    time.sleep(1.5)  # until its checks have passed again
                time.sleep(random.uniform(0.3, 1.5))
                self.write_config()
                self.isobar.send_signal(signal.SIGHUP)
            if down:
                self.start_target(down)
            done, *failed = (int(n) for n in wrk.stdout.read().split())
            requests, failures = requests + done, failures + sum(failed)
            for kind, n in zip(KINDS, failed):
                self.kinds[kind.rstrip(":")] = self.kinds.get(kind.rstrip(":"), 0) + n
        time.sleep(3)
        sums, (fds, rss) = self.metrics(), self.footprint()
        self.report(requests, failures, sums, (fds_before, rss_before), (fds, rss))

    def report(self, requests, failures, sums, before, after):
        gauges = {name: sums.get("isobar_" + name, 0) for name in (
            "listener_active_connections", "listener_active_requests", "listener_active_tunnels", "target_group_pending")}
        print(f"{requests} requests, {failures} failed as the client saw it; {self.kills} kills, "
              f"{sums['isobar_config_reloads_total']:.0f} reloads, {sums['isobar_target_group_retries_total']:.0f} retries, "
              f"{sums['isobar_target_resets_total']:.0f} broken connections, "
              f"{sums['isobar_target_connect_errors_total']:.0f} refused ones")
        classes = {kind: int(sums.get(f"isobar_listener_requests_total.{kind}", 0)) for kind in ("2xx", "4xx", "5xx", "aborted")}
        print(f"as isobar counted: {classes}, no target {sums['isobar_target_group_no_target_total']:.0f}, "
              f"retries suppressed {sums['isobar_target_group_retries_suppressed_total']:.0f}, "
              f"response timeouts {sums['isobar_target_response_timeouts_total']:.0f}, "
              f"connect timeouts {sums['isobar_target_connect_timeouts_total']:.0f}; as wrk said: {self.kinds}")
        print(f"descriptors {before[0]} -> {after[0]}, resident {before[1]} -> {after[1]} KiB, gauges {gauges}")
        checks = [("every request was answered", failures == 0),
                  ("descriptors are back", after[0] <= before[0] + 140),  # idle upstream connections, at most one a client
                  ("memory is back", after[1] <= before[1] + 4096),
                  ("gauges are back", not any(gauges.values()))]
        self.isobar.terminate()
        checks.append(("it ends in order", self.isobar.wait(40) == 0))
        for process in self.running.values():
            process.kill()
        for name, ok in checks:
            print("ok  " if ok else "FAIL", name)
        failed = sum(not ok for _, ok in checks)
        print(f"{len(checks) - failed} passed, {failed} failed")
        sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        soak = Soak.__new__(Soak)
        soak.port = int(sys.argv[2])
        print(*soak.load(10))
    else:
        Soak(int(sys.argv[1]) if len(sys.argv) > 1 else 600).run()
