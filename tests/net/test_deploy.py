# SPDX-License-Identifier: Apache-2.0
"""Targets replaced and killed under as much load as the machine gives: the load and the targets are the benches' (bench/l7),
and the access log says who served what, and when. The counts are printed (pytest -s)."""
import copy
import datetime
import json
import os
import shutil
import subprocess
import threading
import time

import pytest

from harness.ports import free_port
from harness.process import ROOT, wait_until
from harness.wire import connect

RATE = 20000  # requests a second in a burst; a machine that cannot answers later, and must not answer worse
N_TARGETS = 10


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """(load, target): paths of the programs."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("l7")
    made = []
    for name, libraries in (("l7load", ["-lssl", "-lcrypto", "-lm"]), ("l7be", [])):
        made.append(str(folder / name))
        subprocess.run(["cc", "-O2", "-o", made[-1], os.path.join(ROOT, "bench", "l7", name + ".c"), *libraries], check=True)
    return made


class Target:
    """A target that is a process of its own."""

    def __init__(self, stand, program):
        self.port = free_port()
        self.process = stand.run([program, "-a", "127.0.0.1", "-p", str(self.port)])
        self.label = f"127.0.0.1:{self.port}"
        self.config = {"ip": "127.0.0.1", "port": self.port}
        self.gone_at = None  # when it was no longer allowed to serve
        assert wait_until(self.answers), "the target does not listen"

    def answers(self):
        try:
            connect(("127.0.0.1", self.port), 5).close()
            return True
        except OSError:
            return False


class Bursts:
    """Bursts of a second, with a breath between them, until finish()."""

    def __init__(self, program, port, *options):
        self.command = [program, "-p", str(port), "-c", "64", "-w", "0", "-d", "1", "-u", "/200", *options]
        self.ok, self.bad, self.errors, self.fastest = 0, 0, 0, 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ends.is_set():
            done = subprocess.run(self.command, capture_output=True, text=True)
            told = json.loads(done.stdout)
            self.ok += told["ok"]
            self.bad += told["bad"]
            self.errors += told["err"]
            self.fastest = max(self.fastest, told["rps"])
            time.sleep(0.2)

    def finish(self):
        self.ends.set()
        self.thread.join()


def serve(stand, targets, group=None):
    log = os.path.join(stand.folder, "access.log")
    config = stand.config([target.config for target in targets], group=group, workers=2,
                          access_log={"file": log, "format": "{time} {target} {status} {reason} {method} {attempts}"})
    return stand.serve(config), log


def lines(log):
    with open(log, encoding="ascii") as text:
        for line in text:
            when, target, status, reason, method, attempts = line.split()
            at = datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()
            yield at, target, int(status), reason, method, int(attempts)


def test_E6_a_rolling_deploy_under_load_fails_no_request(stand, tools):
    load, program = tools
    targets = [Target(stand, program) for _ in range(N_TARGETS)]
    proxy, log = serve(stand, targets, group={
        "algorithm": "p2c_least_request", "deregistration_delay_s": 60,
        "health_check": {"type": "tcp", "interval_s": 0.2, "healthy_threshold": 1}})
    everyone = list(targets)
    bursts = Bursts(load, proxy.config["load_balancers"][0]["listeners"][0]["port"], "-r", str(RATE))

    def publish():
        config = copy.deepcopy(proxy.config)
        config["target_groups"][0]["targets"] = [target.config for target in targets]
        proxy.reload(config)

    try:
        for turn in range(N_TARGETS):
            new, old = Target(stand, program), targets[0]
            everyone.append(new)
            targets.append(new)
            publish()
            assert wait_until(lambda new=new: proxy.metrics().total("target_up", target=new.label) == 1, 30), turn
            time.sleep(0.3)  # it serves beside the old one
            targets.remove(old)
            publish()
            old.gone_at = time.time()
            assert wait_until(lambda old=old: not proxy.metrics().select("target_state", target=old.label), 60), turn
            old.process.terminate()
            old.process.wait()
    finally:
        bursts.finish()
    print(f"\nrolling deploy: {bursts.ok} requests, {bursts.fastest:.0f}/s in the fastest burst, "
          f"{bursts.bad} failed, {bursts.errors} reset or refused")
    assert bursts.ok > 1000 and (bursts.bad, bursts.errors) == (0, 0)
    gone_at = {target.label: target.gone_at for target in everyone}
    served = {}
    for at, target, status, reason, _, _ in lines(log):
        served[target] = served.get(target, 0) + 1
        assert status == 200 or reason.startswith("client-"), (at, target, status, reason)
        assert gone_at[target] is None or at <= gone_at[target] + 0.002, (target, at - gone_at[target])
    assert set(served) == set(gone_at), "every target has served"


def test_kill_9_of_a_target_fails_only_what_was_on_it_and_may_not_be_repeated(stand, tools):
    load, program = tools
    targets = [Target(stand, program) for _ in range(4)]
    proxy, log = serve(stand, targets, group={"health_check": {"type": "tcp", "interval_s": 0.2, "timeout_ms": 500}})
    port = proxy.config["load_balancers"][0]["listeners"][0]["port"]
    gets, posts = Bursts(load, port, "-r", "5000"), Bursts(load, port, "-r", "2000", "-B", "500")
    killed = []
    try:
        for target in targets[:2]:
            time.sleep(1.5)
            target.process.kill()
            target.process.wait()
            killed.append(target.label)
    finally:
        time.sleep(1)
        gets.finish()
        posts.finish()
    failed = [line for line in lines(log) if line[2] != 200 and not line[3].startswith("client-")]
    again = sum(line[5] > 1 for line in lines(log))
    print(f"\nkill -9 of 2 of 4 targets: {gets.ok} GET, {posts.ok} POST; sent again {again}, "
          f"failed {gets.bad} GET, {posts.bad} POST, {gets.errors + posts.errors} reset or refused")
    assert (gets.bad, gets.errors, posts.errors) == (0, 0, 0)
    assert {line[4] for line in failed} <= {"POST"} and {line[1] for line in failed} <= set(killed), failed[:5]
    assert len(failed) <= 64 * len(killed), "no more than the connections that could have had one on it"
    assert len(failed) == posts.bad
