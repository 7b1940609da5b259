#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every protocol at once for a long time, while targets die, return and drain. At the end: no request over HTTP failed
that may be sent again, WebSockets ended only by their target's end or a close frame, no UDP echo differed, nothing leaked,
and isobar ended well (with a sanitizer: without a report).

    tests/soak/mixed.py [SECONDS]        default 600; ISOBAR names the program (a sanitized build is what this is for)

Needs wrk, h2load, nghttpd, openssl, python3-websockets and a C compiler; everything runs on loopback. Loads: HTTP/1.1, TLS
with HTTP/1.1 and HTTP/2, h2c, HTTP/1.1 to h2c targets, a TCP relay, UDP echo, WebSocket echo."""
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import websockets

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "net"))
from harness.ports import free_port  # noqa: E402

ISOBAR = os.environ.get("ISOBAR", os.path.join(ROOT, "build", "src", "cli", "isobar"))
WRK_FAULTS = ("connect", "read", "write", "timeout", "Non-2xx or 3xx responses:")
CHUNK_S = 20
CUT_BY_DEATH = ("tcp",)  # a relayed connection dies with its target


class Mixed:
    def __init__(self, seconds):
        self.seconds = seconds
        self.folder = tempfile.mkdtemp(prefix="isobar-mixed-")
        self.ports = {name: free_port() for name in ("admin", "h1", "tls", "up", "tcp", "udp", "ws", "ws_origin", "udp_origin")}
        self.targets = {free_port(): "h1" for _ in range(3)} | {free_port(): "h2" for _ in range(2)}
        self.running, self.draining = {}, set()
        self.failed, self.done, self.notes = {}, {}, {}
        self.ending = threading.Event()

    def path(self, name):
        return os.path.join(self.folder, name)

    # ---- targets

    def prepare(self):
        for name, source in (("l7be", "l7/l7be.c"), ("udpload", "udp/udpload.c")):
            subprocess.run(["cc", "-O2", "-o", self.path(name), os.path.join(ROOT, "bench", source)], check=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                        self.path("key.pem"), "-out", self.path("cert.pem"), "-days", "9", "-subj", "/CN=localhost"],
                       check=True, stderr=subprocess.DEVNULL)
        os.mkdir(self.path("www"))
        with open(self.path("www/200"), "w", encoding="ascii") as file:
            file.write("x" * 200)

    def start_target(self, port):
        command = ([self.path("l7be"), "-a", "127.0.0.1", "-p", str(port)] if self.targets[port] == "h1" else
                   ["nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", self.path("www"), str(port)])
        self.running[port] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_target(self, port):
        process = self.running.pop(port)
        process.kill()
        process.wait()

    def document(self):
        def group(name, kind, protocol):
            return {"name": name, "protocol": protocol, "deregistration_delay_s": 2,
                    "health_check": {"type": "tcp", "interval_s": 0.5, "timeout_ms": 500, "unhealthy_threshold": 2},
                    "retry": {"attempts": 3, "on": ["connect_failure", "reset", "refused_stream"] if protocol == "H2C" else
                              ["connect_failure", "reset"], "budget_pct": 50},
                    "targets": [{"ip": "127.0.0.1", "port": port, "enabled": port not in self.draining}
                                for port, has in self.targets.items() if has == kind]}

        def plain(name, protocol, port):
            return {"name": name, "protocol": protocol, "health_check": {"type": "none"},
                    "targets": [{"ip": "127.0.0.1", "port": port}]}

        def listener(name, protocol, to, **more):
            return {"port": self.ports[name], "protocol": protocol, "default_target_group": to, **more}

        relay = group("relay", "h1", "TCP")
        del relay["retry"]
        return {"admin": {"listen": f"127.0.0.1:{self.ports['admin']}"}, "workers": 2, "shutdown_s": 5,
                "certificates": [{"name": "c", "cert_file": "cert.pem", "key_file": "key.pem"}],
                "load_balancers": [{"name": "mixed", "vip": "127.0.0.1", "listeners": [
                    listener("h1", "HTTP", "web"), listener("tls", "HTTPS", "web", certificates=["c"]),
                    listener("up", "HTTP", "web2"), listener("tcp", "TCP", "relay"), listener("udp", "UDP", "echo"),
                    listener("ws", "HTTP", "sockets")]}],
                "target_groups": [group("web", "h1", "HTTP"), group("web2", "h2", "H2C"), relay,
                                  plain("echo", "UDP", self.ports["udp_origin"]), plain("sockets", "HTTP", self.ports["ws_origin"])]}

    def write_config(self):
        with open(self.path("new.json"), "w", encoding="utf-8") as file:
            json.dump(self.document(), file)
        os.rename(self.path("new.json"), self.path("mixed.json"))

    # ---- loads

    def count(self, name, done, failed, note=""):
        self.done[name] = self.done.get(name, 0) + done
        self.failed[name] = self.failed.get(name, 0) + failed
        if failed and note:
            self.notes.setdefault(name, note)

    def url(self, scheme, name):
        return f"{scheme}://127.0.0.1:{self.ports[name]}/200"

    def wrk(self, name, scheme, listener):
        while not self.ending.is_set():
            out = subprocess.run(["wrk", "-t1", "-c8", f"-d{CHUNK_S}s", self.url(scheme, listener)], capture_output=True,
                                 text=True, check=True).stdout
            failed = sum(int(n) for kind in WRK_FAULTS for n in re.findall(kind + r" (\d+)", out))
            self.count(name, int(re.search(r"(\d+) requests in", out).group(1)), failed, out)

    def h2load(self, name, scheme, listener):
        while not self.ending.is_set():
            out = subprocess.run(["h2load", "-c2", "-m8", f"-D{CHUNK_S}", self.url(scheme, listener)], capture_output=True,
                                 text=True, check=True).stdout
            total, succeeded, failed, errored = (int(n) for n in re.search(
                r"requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored", out).groups())
            statuses = [int(n) for n in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out).groups()]
            del total, errored  # streams that the end of the measurement cut
            self.count(name, succeeded, max(sum(statuses[1:]), failed if sum(statuses[1:]) else 0), out)

    def udp(self):
        while not self.ending.is_set():
            out = subprocess.run([self.path("udpload"), "load", str(self.ports["udp"]), "16", "64", str(CHUNK_S), str(os.getpid())],
                                 capture_output=True, text=True, check=True).stdout
            result = json.loads(out)
            self.count("udp", result["echoes"], 0)

    def websocket_load(self):
        async def talk(n):
            while not self.ending.is_set():
                async with websockets.connect(f"ws://127.0.0.1:{self.ports['ws']}/", ping_interval=None, open_timeout=30) as ws:
                    for turn in range(200):
                        sent = f"{n} {turn} " * random.randrange(1, 2000)
                        await ws.send(sent)
                        same = await ws.recv() == sent
                        self.count("ws", 1, 0 if same else 1, "an echo differed")
                        if self.ending.is_set():
                            break
                        await asyncio.sleep(0.02)

        async def run():
            async def answer(ws, *_):
                async for message in ws:
                    await ws.send(message)

            async with websockets.serve(answer, "127.0.0.1", self.ports["ws_origin"], ping_interval=None):
                results = await asyncio.gather(*(talk(n) for n in range(8)), return_exceptions=True)
                for result in results:
                    if isinstance(result, BaseException):
                        self.count("ws", 0, 1, repr(result))

        asyncio.run(run())

    # ---- the run

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        sums = {}
        for name, labels, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", text, re.M):
            if f'"mixed/{self.ports["udp"]}"' not in labels:  # UDP sessions end by silence alone
                sums[name] = sums.get(name, 0) + float(value)
        return sums

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.isobar.pid}/fd"))

    def disturb(self):
        """One target at a time dies and returns, or drains and comes back; each kind keeps one that serves."""
        port = random.choice(list(self.targets))
        drains = random.random() < 0.5
        if drains:
            self.draining.add(port)
        else:
            self.kill_target(port)
        self.write_config()
        self.isobar.send_signal(signal.SIGHUP)
        time.sleep(random.uniform(1, 4))
        if drains:
            self.draining.discard(port)
        else:
            self.start_target(port)
        self.write_config()
        self.isobar.send_signal(signal.SIGHUP)
        time.sleep(3)  # until its checks have passed again

    def run(self):
        self.prepare()
        for port in self.targets:
            self.start_target(port)
        echo = subprocess.Popen([self.path("udpload"), "echo", str(self.ports["udp_origin"])])
        self.write_config()
        with open(self.path("stderr"), "wb") as log:
            self.isobar = subprocess.Popen([ISOBAR, "serve", "--config", self.path("mixed.json")], stderr=log)
        time.sleep(3)
        before = self.descriptors()
        loads = [threading.Thread(target=self.wrk, args=("h1", "http", "h1")),
                 threading.Thread(target=self.wrk, args=("tls-h1", "https", "tls")),
                 threading.Thread(target=self.wrk, args=("to-h2c", "http", "up")),
                 threading.Thread(target=self.wrk, args=("tcp", "http", "tcp")),
                 threading.Thread(target=self.h2load, args=("h2c", "http", "h1")),
                 threading.Thread(target=self.h2load, args=("tls-h2", "https", "tls")),
                 threading.Thread(target=self.udp), threading.Thread(target=self.websocket_load)]
        for load in loads:
            load.start()
        disturbed, end = 0, time.monotonic() + self.seconds
        while time.monotonic() < end and self.isobar.poll() is None:
            self.disturb()
            disturbed += 1
        self.ending.set()
        for load in loads:
            load.join()
        time.sleep(3)
        return self.judge(before, disturbed, echo)

    def judge(self, before, disturbed, echo):
        faults = [f"{name}: {n} failed: {self.notes.get(name, '')}" for name, n in self.failed.items()
                  if n and name not in CUT_BY_DEATH]
        if self.isobar.poll() is None:
            sums = self.metrics()
            for gauge in ("isobar_listener_active_connections", "isobar_listener_active_tunnels", "isobar_target_active_requests"):
                if sums.get(gauge, 0):
                    faults.append(f"{gauge} is {sums[gauge]:.0f} at the end")
            after = self.descriptors()
            if after > before + 2 * 2 * 64 + 64:  # empty pipes and idle connections to targets are kept
                faults.append(f"{before} descriptors at the beginning, {after} at the end")
            self.isobar.send_signal(signal.SIGTERM)
        status = self.isobar.wait(60)
        for process in [echo, *self.running.values()]:
            process.kill()
        with open(self.path("stderr"), errors="replace", encoding="utf-8") as log:
            text = log.read()
        if status or "Sanitizer" in text or "runtime error" in text:
            faults.append(f"isobar ended with {status}: " + text[-3000:])
        print(", ".join(f"{name} {n}" for name, n in sorted(self.done.items())), f"; {disturbed} targets killed or drained; "
              f"failed: {self.failed}")
        for fault in faults:
            print("FAIL", fault)
        print(f"{len(self.done) - len(faults)} passed, {len(faults)} failed")
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(Mixed(float(sys.argv[1]) if len(sys.argv) > 1 else 600).run())
