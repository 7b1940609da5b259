# SPDX-License-Identifier: Apache-2.0
"""A small network in namespaces for the packet tier: client - router - {lb1, lb2}, router - {p1, p2, p3}.

The router has ECMP routes to the VIPs over the lbs; each p owns the VIPs on lo, decapsulates with `isobar l4 decap`
and answers the client directly. docs/l4.md, "A network to try it on", says why each setting is there.
"""
import contextlib
import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from harness.process import ISOBAR

VIP4, VIP6 = "10.200.1.1", "fc00:1::1"
PORT = 8080
LBS, PROXIES = ("lb1", "lb2"), ("p1", "p2", "p3")
BPFFS = "/sys/fs/bpf"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
SERVER = os.path.join(os.path.dirname(__file__), "l4server.py")


def sh(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if check and done.returncode:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def need():
    """Skips the test, saying why, where the machine does not allow it; fails instead when ISOBAR_L4_REQUIRED is set."""
    why = None
    if os.geteuid() != 0:
        why = "network namespaces and XDP need root"
    elif not shutil.which("ethtool"):
        why = "ethtool is not installed"
    elif not os.path.ismount(BPFFS) and subprocess.run(
            f"mkdir -p {BPFFS} && mount -t bpf bpf {BPFFS}", shell=True, capture_output=True).returncode:
        why = f"no bpf file system on {BPFFS}"
    else:
        # In a namespace of its own: the machine's interfaces are not touched, and workers do not meet.
        name = f"try{os.getpid()}"
        done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
        if done.returncode:
            why = "no network namespaces: " + done.stderr.strip()
        else:
            done = subprocess.run(["nsenter", f"--net=/run/netns/{name}", ISOBAR, "l4", "decap", "--interface", "lo", "--vip",
                                   "192.0.2.1", "--mode", "generic", "--pin", f"{BPFFS}/{name}"],
                                  capture_output=True, text=True)
            if done.returncode:
                why = done.stderr.strip()
            sh(f"{ISOBAR} l4 detach --pin {BPFFS}/{name}", check=False)
            sh(f"ip netns del {name}")
    if why and os.environ.get("ISOBAR_L4_REQUIRED"):
        pytest.fail(why)
    if why:
        pytest.skip("skipped, because " + why)


class Net:
    def __init__(self, folder, mtu=1600, policy=3):
        need()
        self.folder = folder
        self.tag = f"{os.getpid() % 100000}"
        self.processes = {}
        self.pins = []
        self.old_ns = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.policy = policy
        self.mtu = mtu
        self.down, self.drained, self.absent = set(), set(), {"p3"}
        self.tcp_vips = f"{VIP4}, {VIP6}"  # of the l4 section; the rest may come from load_balancers
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    # ---- namespaces

    def name(self, host):
        return f"i{self.tag}{host}"

    def run(self, host, command, check=True):
        return sh(f"nsenter --net=/run/netns/{self.name(host)} {command}", check)

    def popen(self, host, command, **more):
        return subprocess.Popen(["nsenter", f"--net=/run/netns/{self.name(host)}"] + command, **more)

    @contextlib.contextmanager
    def inside(self, host):
        """The calling thread is in the host's namespace; sockets made here stay in it."""
        fd = os.open(f"/run/netns/{self.name(host)}", os.O_RDONLY)
        try:
            if LIBC.setns(fd, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            yield
        finally:
            LIBC.setns(self.old_ns, CLONE_NEWNET)
            os.close(fd)

    def _link(self, host, number, mtu):
        """A veth pair router - host: 10.NUMBER.0.1/24 and .2, fdNUMBER::1/64 and ::2."""
        self.run("router", f"ip link add {host} type veth peer name eth0 netns {self.name(host)}")
        for where, device, end in (("router", host, 1), (host, "eth0", 2)):
            self.run(where, f"ip link set {device} mtu {mtu} up")
            self.run(where, f"ip addr add 10.{number}.0.{end}/24 dev {device}")
            self.run(where, f"ip -6 addr add fd{number:02}::{end}/64 dev {device} nodad")
        self.run(host, f"ip route add default via 10.{number}.0.1")
        self.run(host, f"ip -6 route add default via fd{number:02}::1")

    def _build(self):
        for host in ("client", "router") + LBS + PROXIES:
            sh(f"ip netns add {self.name(host)}")
            self.run(host, "ip link set lo up")
        for setting in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.rp_filter=0",
                        "net.ipv4.conf.default.rp_filter=0",
                        f"net.ipv4.fib_multipath_hash_policy={self.policy}",
                        "net.ipv4.fib_multipath_hash_fields=0x37",
                        f"net.ipv6.fib_multipath_hash_policy={self.policy}",
                        "net.ipv6.fib_multipath_hash_fields=0x37"):
            self.run("router", f"sysctl -qw {setting}")
        self._link("client", 10, 1500)
        for i, host in enumerate(LBS):
            self._link(host, 21 + i, self.mtu)
            # XDP_TX on a veth arrives only when the peer has a program too; and a frame that another interface left
            # to checksum would be frozen half done into the tunnel.
            self.decap("router", host, ["192.0.2.254"])
            self.run("router", f"ethtool -K {host} tx off")
        absent, self.absent = self.absent, set()
        everyone = self.config("everyone")
        self.absent = absent
        for i, host in enumerate(PROXIES):
            self._link(host, 31 + i, self.mtu)
            self.run(host, f"ip addr add {VIP4}/32 dev lo")
            self.run(host, f"ip -6 addr add {VIP6}/128 dev lo nodad")
            # A second chance leaves by the interface it came in on, too.
            self.decap("router", host, ["192.0.2.254"])
            self.decap(host, "eth0", [VIP4, VIP6], f"--config {everyone}")
            self.start_server(host)
        self.route(LBS)
        for host in PROXIES:
            self.wait_line(host)

    def route(self, lbs):
        """Which lbs the router spreads the VIPs over."""
        for family, vip, address in (("-4", f"{VIP4}/32", "10.{}.0.2"), ("-6", f"{VIP6}/128", "fd{}::2")):
            hops = " ".join(f"nexthop via {address.format(21 + LBS.index(lb))}" for lb in lbs)
            self.run("router", f"ip {family} route replace {vip} {hops}" if lbs
                     else f"ip {family} route del {vip}")

    def decap_pin(self, host, interface):
        return f"{BPFFS}/i{self.tag}-{host}-{interface}"

    def decap(self, host, interface, vips, extra=""):
        pin = self.decap_pin(host, interface)
        self.pins.append(pin)
        self.run(host, f"{ISOBAR} l4 decap --interface {interface} --pin {pin} {extra} " +
                 " ".join(f"--vip {vip}" for vip in vips))

    # ---- processes

    def start(self, host, command):
        log = open(os.path.join(self.folder, f"{host}.log"), "ab")
        self.processes[host] = self.popen(host, command, stdout=subprocess.PIPE if command[0] == sys.executable else log,
                                          stderr=log)

    def start_server(self, host):
        """Serves the VIPs, and the machine's own address for checks."""
        self.start(host, [sys.executable, SERVER, host, str(PORT), VIP4, VIP6, f"10.{31 + PROXIES.index(host)}.0.2"])

    def wait_line(self, host):
        assert self.processes[host].stdout.readline().strip() == b"ready", self.log(host)

    def log(self, host):
        with open(os.path.join(self.folder, f"{host}.log"), errors="replace") as file:
            return file.read()

    # ---- nodes of the packet tier

    def pin(self, lb):
        return f"{BPFFS}/i{self.tag}-{lb}"

    def config(self, lb, extra="", vips=""):
        nodes = []
        for i, host in enumerate(PROXIES):
            state = "down" if host in self.down else "drain" if host in self.drained else "up"
            if host not in self.absent:
                nodes.append(f"  - {{ name: {host}, ip: 10.{31 + i}.0.2, server_id: {101 + i}, state: {state} }}\n")
        path = os.path.join(self.folder, f"{lb}.yaml")
        with open(path + ".new", "w") as file:
            file.write("nodes:\n" + "".join(nodes) +
                       f"l4:\n  interfaces: [eth0]\n  pin: {self.pin(lb)}\n  flow_entries: 65536\n  linger_s: 1\n{extra}"
                       f"  vips:\n    - {{ address: [{self.tcp_vips}], port: {PORT} }}\n"
                       f"    - {{ address: [{VIP4}, {VIP6}], port: {PORT}, protocol: UDP }}\n{vips}")
        os.replace(path + ".new", path)
        return path

    def start_lb(self, lb, extra="", vips=""):
        generation = self.generation(lb)
        if self.pin(lb) not in self.pins:
            self.pins.append(self.pin(lb))
        self.start(lb, [ISOBAR, "l4", "--config", self.config(lb, extra, vips)])
        self._await(lb, lambda: self.generation(lb) > generation and "native" in self.status(lb))

    def reload_lb(self, lb, extra="", vips=""):
        published = self.log(lb).count(": generation ")  # the number begins anew when the maps had to grow
        self.config(lb, extra, vips)
        self.processes[lb].send_signal(signal.SIGHUP)
        self._await(lb, lambda: self.log(lb).count(": generation ") > published)

    def _await(self, lb, condition, seconds=60):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until and self.processes[lb].poll() is None, self.log(lb)
            time.sleep(0.02)

    def status(self, lb):
        return self.run(lb, f"{ISOBAR} l4 status --pin {self.pin(lb)}", check=False)

    def generation(self, lb):
        for line in self.status(lb).splitlines():
            if line.startswith("generation"):
                return int(line.split()[1])
        return 0

    def counters(self, lb):
        found = {}
        for line in self.run(lb, f"{ISOBAR} l4 counters --pin {self.pin(lb)}").splitlines():
            words = line.split()
            if len(words) == 2:
                found[words[0]] = int(words[1])
            elif words[0] == "real":
                found[words[1]] = int(words[3])
        return found

    def decap_counters(self, host):
        pin = [pin for pin in self.pins if pin.endswith(f"-{host}-eth0")][0]
        return {line.split()[0]: int(line.split()[1])
                for line in self.run(host, f"{ISOBAR} l4 counters --pin {pin}").splitlines()}

    def lookup(self, lb, source, sport, vip=VIP4, protocol="tcp", command="lookup", more=""):
        return self.run(lb, f"{ISOBAR} l4 {command} {protocol} {source} {sport} {vip} {PORT} {more} --pin {self.pin(lb)}")

    def stop(self, host, number=signal.SIGTERM):
        process = self.processes.pop(host)
        process.send_signal(number)
        process.wait(20)

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        for pin in self.pins:
            sh(f"{ISOBAR} l4 detach --pin {pin}", check=False)
        for host in ("client", "router") + LBS + PROXIES:
            sh(f"ip netns del {self.name(host)}", check=False)
        os.close(self.old_ns)


class Flow:
    """One TCP connection from the client to a VIP, which says whom it reached."""

    def __init__(self, net, vip=VIP4, timeout=60.0):
        with net.inside("client"):
            self.socket = socket.socket(socket.AF_INET6 if ":" in vip else socket.AF_INET)
            self.socket.settimeout(timeout)
            self.socket.connect((vip, PORT))
        self.file = self.socket.makefile("rwb")
        self.owner = self.ask("who")

    @property
    def address(self):
        return self.socket.getsockname()[:2]

    def ask(self, line):
        self.file.write(line.encode() + b"\n")
        self.file.flush()
        answer = self.file.readline()
        if not answer:
            raise ConnectionResetError("closed")
        return answer.decode().strip()

    def still(self):
        """The same connection still answers, from the same owner."""
        try:
            return self.ask("who") == self.owner
        except OSError:
            return False

    def upload(self, size):
        data = os.urandom(65536)
        digest = hashlib.sha256()
        self.file.write(f"put {size}\n".encode())
        left = size
        while left:
            piece = data[:min(left, len(data))]
            digest.update(piece)
            self.file.write(piece)
            left -= len(piece)
        self.file.flush()
        return self.file.readline().decode().strip() == digest.hexdigest()

    def download(self, size):
        digest = hashlib.sha256()
        self.file.write(f"get {size}\n".encode())
        self.file.flush()
        left = size
        while left:
            piece = self.file.read(min(left, 65536))
            if not piece:
                raise ConnectionResetError("closed")
            digest.update(piece)
            left -= len(piece)
        return self.file.readline().decode().strip() == digest.hexdigest()

    def close(self):
        self.file.close()
        self.socket.close()
