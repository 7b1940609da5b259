#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the API takes from traffic, and how soon a write is in force.

`load`: CPU time of the one worker thread per request, and the p99 of a client, under paced traffic in interleaved rounds:
    quiet  nobody asks the API
    api    --reads GETs and --writes PATCHes a second at the admin listener; every other write is to the group that serves
    other  the same at the admin listener of a second Isobar that has no traffic: what the machine itself takes from the
           worker when its other core is busy
The worker has a core to itself. Everything else shares the other one, where the origin and the traffic's driver go first
(SCHED_FIFO, needs root), so that their being scheduled late is not taken for the worker's being slow. The project demands
ratios api/quiet below 1.05.

`write`: from the first byte of a PATCH or PUT of one target, with 1,000 target groups of 50, until a request is served
accordingly: the write switches the only enabled target of the group that serves on or off, so the next request gets 200
or 503. The project demands less than 50 ms. With the configuration in memory, and in SQLite. CPU is that of all threads but
the worker.

On a busy machine, `chrt -f 5 bench/api/apibench.py` puts all of it before whatever else runs there (needs root).

    bench/api/apibench.py [load|write] [--rounds 9] [--secs 4] [--isobar build-release/src/cli/isobar]

Needs two cores, a C compiler and OpenSSL's headers.
"""
import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "net"))
from harness.ports import free_port  # noqa: E402

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
WORKER_CORE, OTHER_CORE = 0, 1
FIRST = "50"  # priority of the origin and of the traffic's driver


def build(folder):
    for name, libraries in (("l7be", ()), ("l7load", ("-lssl", "-lcrypto", "-lm"))):
        source = os.path.join(ROOT, "bench", "l7", name + ".c")
        subprocess.run(["cc", "-O2", "-o", os.path.join(folder, name), source, *libraries], check=True)


def first(command):
    """The command, before everything else on its core where that is permitted."""
    permitted = subprocess.run(["chrt", "-f", FIRST, "true"], check=False, **QUIET).returncode == 0
    return ["chrt", "-f", FIRST, *command] if permitted else command


class Origin:
    def __init__(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(first([f"{folder}/l7be", "-a", "0.0.0.0", "-p", str(self.port)]), **QUIET)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Isobar:
    """A process whose one worker has a core, and whose other threads share the other core."""

    def __init__(self, program, folder, name, groups, store=False):
        self.port, self.admin = free_port(), free_port()
        document = {
            "workers": 1, "admin": {"listen": f"127.0.0.1:{self.admin}"},
            "load_balancers": [{"name": "lb", "vip": "127.0.0.1", "listeners": [
                {"port": self.port, "protocol": "HTTP", "default_target_group": "serving"}]}],
            "target_groups": groups}
        if store:
            document["store"] = {"url": f"sqlite:{folder}/{name}.db"}
        config = os.path.join(folder, name + ".json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.process = subprocess.Popen([program, "serve", "--config", config], **QUIET)
        self.await_answers()
        self.worker = next(task for task in os.listdir(f"/proc/{self.process.pid}/task") if self.name_of(task) == "worker/0")
        os.sched_setaffinity(int(self.worker), {WORKER_CORE})

    def await_answers(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=5)
                connection.request("GET", "/healthz")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit("isobar does not answer")

    def name_of(self, task):
        with open(f"/proc/{self.process.pid}/task/{task}/comm", encoding="ascii") as file:
            return file.read().strip()

    def cpu_ms(self):
        """Time on CPU of all threads but the worker."""
        total = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            if task != self.worker:
                with open(f"/proc/{self.process.pid}/task/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
        return total / 1e6

    def close(self):
        self.process.terminate()
        self.process.wait()


def serving(origin):
    """The group that serves: two addresses of one origin, so that a changed weight changes the balance."""
    return {"name": "serving", "algorithm": "p2c_least_request", "health_check": {"type": "none"},
            "targets": [{"ip": f"127.0.0.{host}", "port": origin.port} for host in (1, 2)]}


def spare(number, n_targets):
    return {"name": f"spare-{number}", "health_check": {"type": "none"},
            "targets": [{"ip": f"10.{number >> 8}.{number & 255}.{host}", "port": 80} for host in range(1, n_targets + 1)]}


def send(connection, method, target, body, seeding=False):
    """Seeding: a store may still be about to get what the file says, and refuse changes until then."""
    connection.request(method, target, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    if answer.status in (409, 503) and seeding:
        time.sleep(0.2)
        send(connection, method, target, body, seeding)
    elif answer.status not in (200, 201):
        sys.exit(f"{method} {target}: {answer.status} {data.decode()}")


class ApiLoad:
    """Readers in a process of their own, a writer in a thread here."""

    def __init__(self, isobar, folder, origin, args):
        self.isobar, self.port, self.rate = isobar, origin.port, args.writes
        self.taken_ms, self.stop = [], threading.Event()
        self.readers = subprocess.Popen(
            [f"{folder}/l7load", "-p", str(isobar.admin), "-H", "127.0.0.1", "-u", args.path, "-r", str(args.reads), "-c", "32",
             "-w", "0.3", "-d", str(args.secs + 0.4)], stdout=subprocess.PIPE, text=True)
        self.writer = threading.Thread(target=self.write)
        self.writer.start()

    def write(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.isobar.admin, timeout=30)
        due, n = time.monotonic(), 0
        while not self.stop.wait(max(0, due - time.monotonic())):
            group, target = (f"spare-{n % 7}", "10.0.%d.1:80" % (n % 7)) if n % 2 else ("serving", f"127.0.0.2:{self.port}")
            begun = time.monotonic()
            send(connection, "PATCH", f"/v1/target-groups/{group}/targets/{target}", {"weight": 90 + n // 14 % 20})
            self.taken_ms.append((time.monotonic() - begun) * 1000)
            due, n = due + 1 / self.rate, n + 1

    def close(self):
        """(reads a second, writes a second, median ms of a write)"""
        out = json.loads(self.readers.communicate()[0])
        self.stop.set()
        self.writer.join()
        if out["bad"] or out["err"]:
            sys.exit(f"reads of the API failed: {out}")
        return out["rps"], len(self.taken_ms) / (out["secs"] + 0.3), statistics.median(self.taken_ms)


def traffic(isobar, folder, args):
    """(CPU microseconds of the worker a request, p99 in microseconds)"""
    done = subprocess.run(
        first([f"{folder}/l7load", "-p", str(isobar.port), "-r", str(args.traffic), "-c", "64", "-w", "0.5", "-d", str(args.secs),
               "-P", f"{isobar.process.pid}/{isobar.worker}", "-C", str(WORKER_CORE)]), capture_output=True, text=True, check=True)
    out = json.loads(done.stdout)
    if out["bad"] or out["err"]:
        sys.exit(f"requests failed: {out}")
    return out["cpu_us"], out["p99"]


def measure_load(program, folder, origin, args):
    groups = [serving(origin)] + [spare(number, 20) for number in range(50)]
    mine, other = (Isobar(program, folder, name, groups) for name in ("mine", "other"))
    asked = {"quiet": None, "api": mine, "other": other}
    order, rounds, api = list(asked), [], []
    try:
        for number in range(args.rounds):
            taken = {}
            for name in order[number % 3:] + order[:number % 3]:
                load = ApiLoad(asked[name], folder, origin, args) if asked[name] else None
                taken[name] = traffic(mine, folder, args)
                if load:
                    figures = load.close()
                    api += [figures] if name == "api" else []
            rounds.append(taken)
    finally:
        mine.close()
        other.close()
    print(f"traffic {args.traffic}/s, one worker; API %.0f reads/s, %.1f writes/s of %.2f ms (medians of {args.rounds} rounds)" %
          tuple(statistics.median(column) for column in zip(*api)))
    print(f"{'':8}{'CPU us/request':>16}{'ratio':>8}{'p99 us':>10}{'ratio':>8}")
    for name in asked:
        cells = []
        for column in (0, 1):
            cells.append(statistics.median(taken[name][column] for taken in rounds))
            cells.append(statistics.median(taken[name][column] / taken["quiet"][column] for taken in rounds))
        print(f"{name:8}{cells[0]:16.2f}{cells[1]:8.3f}{cells[2]:10.0f}{cells[3]:8.3f}")
    print("api/other: CPU %.3f, p99 %.3f" % tuple(
        statistics.median(taken["api"][column] / taken["other"][column] for taken in rounds) for column in (0, 1)))


def status_of(connection):
    connection.request("GET", "/128")
    answer = connection.getresponse()
    answer.read()
    return answer.status


def measure_write(program, folder, origin, args):
    only = serving(origin)
    only["targets"] = [{"ip": "127.0.0.1", "port": origin.port}] + [
        {"ip": f"10.200.0.{host}", "port": 80, "enabled": False} for host in range(1, 50)]
    groups = [only] + [spare(number, 50) for number in range(999)]
    target = f"/v1/target-groups/serving/targets/127.0.0.1:{origin.port}"
    for store in (False, True):
        isobar = Isobar(program, folder, f"many-{store}", groups, store)
        try:
            api = http.client.HTTPConnection("127.0.0.1", isobar.admin, timeout=30)
            client = http.client.HTTPConnection("127.0.0.1", isobar.port, timeout=30)
            send(api, "PATCH", target, {"weight": 2}, seeding=True)
            for method in ("PATCH", "PUT"):
                answered, in_force, cpu = [], [], []
                for number in range(args.samples):
                    enabled = number % 2 == 1
                    time.sleep(0.1)
                    begun, cpu_before = time.monotonic(), isobar.cpu_ms()
                    send(api, method, target, {"enabled": enabled})
                    answered.append((time.monotonic() - begun) * 1000)
                    while (status_of(client) == 200) != enabled:
                        pass
                    in_force.append((time.monotonic() - begun) * 1000)
                    cpu.append(isobar.cpu_ms() - cpu_before)
                print("%-5s 1 of 1,000 x 50 targets, %s: answered after %.1f ms (at most %.1f), in force after %.1f (%.1f), CPU %.1f" % (
                    method, "SQLite" if store else "memory", statistics.median(answered), max(answered),
                    statistics.median(in_force), max(in_force), statistics.median(cpu)))
        finally:
            isobar.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("load", "write"), help="both unless said")
    parser.add_argument("--isobar", default=os.path.join(ROOT, "build-release", "src", "cli", "isobar"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--secs", type=float, default=4)
    parser.add_argument("--traffic", type=int, default=5000, help="requests a second")
    parser.add_argument("--reads", type=int, default=5000)
    parser.add_argument("--writes", type=int, default=50)
    parser.add_argument("--samples", type=int, default=20, help="writes measured of each kind")
    parser.add_argument("--path", default="/v1/target-groups/serving/targets", help="what is read")
    args = parser.parse_args()
    os.sched_setaffinity(0, {OTHER_CORE})  # and with this process all that it starts
    with tempfile.TemporaryDirectory(prefix="isobar-api-") as folder:
        build(folder)
        origin = Origin(folder)
        try:
            for what, measure in (("load", measure_load), ("write", measure_write)):
                if args.what in (None, what):
                    measure(args.isobar, folder, origin, args)
        finally:
            origin.close()


if __name__ == "__main__":
    main()
