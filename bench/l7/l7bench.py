#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compare L7 proxies by CPU time per request, side by side.

All proxies run at once, pinned to one core; the origin server and the load
driver share another.  Only one proxy gets load at any moment; the loads are
interleaved (round by round, proxy after proxy, order rotated) so that slow
drifts of the machine hit every proxy alike.  Per load the table gives the
median over the rounds, and its ratio to the best peer of the SAME round.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics as st
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# name: (driver arguments, what it stands for)
LOADS = {
    "ka":       (["-u", "/128"], "keep-alive GET, 128 B body, 64 connections, closed loop"),
    "ka-x":     (["-u", "/128", "-x"], "same with ~700 B of browser-like request headers"),
    "ka-p5":    (["-u", "/128", "-r", "5000"], "keep-alive GET, 128 B, paced 5000/s (Poisson)"),
    "ka-p15":   (["-u", "/128", "-r", "15000"], "keep-alive GET, 128 B, paced 15000/s (Poisson)"),
    "1k":       (["-u", "/1k"], "keep-alive GET, 1 KB"),
    "10k":      (["-u", "/10k"], "keep-alive GET, 10 KB"),
    "100k":     (["-u", "/100k", "-c", "32"], "keep-alive GET, 100 KB, 32 connections"),
    "100k-p2":  (["-u", "/100k", "-c", "32", "-r", "2000"], "keep-alive GET, 100 KB, paced 2000/s"),
    "1m":       (["-u", "/1024k", "-c", "16"], "keep-alive GET, 1 MB, 16 connections"),
    "post2k":   (["-u", "/128", "-B", "2048"], "keep-alive POST, 2 KB body"),
    "post64k":  (["-u", "/128", "-B", "65536", "-c", "32"], "keep-alive POST, 64 KB body"),
    "churn":    (["-u", "/128", "-k"], "new client connection per request"),
    "churn-p2": (["-u", "/128", "-k", "-r", "2000"], "new client connection per request, paced 2000/s"),
    "tls-ka":   (["-t", "-u", "/128"], "TLS 1.3 keep-alive GET, 128 B"),
    "tls-10k":  (["-t", "-u", "/10k"], "TLS 1.3 keep-alive GET, 10 KB"),
    "tls-100k": (["-t", "-u", "/100k", "-c", "32"], "TLS 1.3 keep-alive GET, 100 KB"),
    "tls-full": (["-t", "-u", "/128", "-k", "-c", "32"], "full TLS 1.3 handshake per request"),
    "tls-res":  (["-t", "-R", "-u", "/128", "-k", "-c", "32"], "resumed TLS 1.3 handshake per request"),
}
DEFAULT = "ka,ka-p5,10k,100k,post2k,churn,tls-ka,tls-100k,tls-full,tls-res"


def sh(cmd, **kw):
    return subprocess.run(cmd, check=True, **kw)


def build(out):
    cc = os.environ.get("CC", "cc")
    for name, libs in (("l7be", []), ("l7floor", []), ("l7load", ["-lssl", "-lcrypto", "-lm"])):
        src, dst = os.path.join(HERE, name + ".c"), os.path.join(out, name)
        if not os.path.exists(dst) or os.path.getmtime(dst) < os.path.getmtime(src):
            sh([cc, "-O2", "-Wall", "-o", dst, src] + libs)


def make_cert(d):
    key, crt, pem = (os.path.join(d, n) for n in ("key.pem", "crt.pem", "both.pem"))
    if not os.path.exists(pem):
        sh(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], stderr=subprocess.DEVNULL)
        sh(["openssl", "req", "-new", "-x509", "-key", key, "-subj", "/CN=bench.test", "-days", "30", "-out", crt],
           stderr=subprocess.DEVNULL)
        with open(pem, "w") as f:
            for p in (crt, key):
                f.write(open(p).read())
    return key, crt, pem


def tree(pid):
    """pid and all its descendants"""
    kids = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                s = open(f"/proc/{p}/stat").read()
            except OSError:
                continue
            kids.setdefault(int(s[s.rindex(")") + 2:].split()[1]), []).append(int(p))
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        todo += kids.get(p, [])
    return out


def rss_kb(pids):
    """private + proportional shared memory of the processes, kB"""
    tot = 0
    for p in pids:
        try:
            for line in open(f"/proc/{p}/smaps_rollup"):
                if line.startswith("Pss:"):
                    tot += int(line.split()[1])
        except OSError:
            pass
    return tot


def wait_port(host, port, secs=5):
    end = time.time() + secs
    while time.time() < end:
        try:
            socket.create_connection((host, port), 0.5).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


class Proxy:
    def __init__(self, name, cmd, tmpl, port, a, files):
        self.name, self.port, self.tls = name, port, port + 1
        self.dir = os.path.join(a.work, name)
        os.makedirs(self.dir, exist_ok=True)
        key, crt, pem = files
        self.sub = {"DIR": self.dir, "HOST": a.host, "PORT": port, "TLSPORT": port + 1,
                    "BACKEND": f"{a.host}:{a.backend_port}", "BHOST": a.host, "BPORT": a.backend_port,
                    "KEY": key, "CRT": crt, "PEM": pem}
        if tmpl:
            text = open(tmpl).read()
            conf = os.path.join(self.dir, "conf")
            self.sub["CONF"] = conf
            with open(conf, "w") as f:
                f.write(self.fill(text))
        self.cmd = self.fill(cmd).split()
        self.core = a.proxy_core
        self.log = open(os.path.join(self.dir, "out.log"), "w")
        self.p = None

    def fill(self, s):
        for k, v in self.sub.items():
            s = s.replace(f"@{k}@", str(v))
        return s

    def start(self, host):
        self.p = subprocess.Popen(["taskset", "-c", str(self.core)] + self.cmd, stdout=self.log,
                                  stderr=subprocess.STDOUT, start_new_session=True)
        if not wait_port(host, self.port) or self.p.poll() is not None:
            self.stop()
            sys.exit(f"{self.name}: did not start; see {self.dir}/out.log")

    def pids(self):
        return tree(self.p.pid)

    def stop(self):
        if self.p and self.p.poll() is None:
            self.p.send_signal(signal.SIGTERM)
            try:
                self.p.wait(3)
            except subprocess.TimeoutExpired:
                os.killpg(self.p.pid, signal.SIGKILL)
                self.p.wait()


def into_netns(cc):
    """Re-run this script in a network namespace of its own: private loopback and
    ports, a stated congestion control, no firewall rules, nobody else's traffic."""
    if os.geteuid() or os.environ.get("L7BENCH_NETNS"):
        return
    allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
    try:  # a namespace may only pick an algorithm that is on this list
        have = open(allowed).read().split()
        if cc not in have:
            with open(allowed, "w") as f:
                f.write(" ".join(have + [cc]))
    except OSError:
        pass
    env = dict(os.environ, L7BENCH_NETNS="1")
    os.execvpe("unshare", ["unshare", "-n", sys.executable] + sys.argv, env)


def setup_netns(cc):
    import fcntl
    import struct
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:  # ifconfig lo up
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))
    for k, v in (("tcp_congestion_control", cc), ("ip_local_port_range", "24000 65500")):
        try:
            with open(f"/proc/sys/net/ipv4/{k}", "w") as f:
                f.write(v)
        except OSError as e:
            print(f"# {k}: {e}", file=sys.stderr)


def drive(a, px, args, dur, warm):
    port = px.tls if "-t" in args else px.port
    cmd = ["taskset", "-c", str(a.load_core), os.path.join(a.work, "l7load"), "-a", a.host, "-p", str(port),
           "-d", str(dur), "-w", str(warm), "-C", str(a.proxy_core), "-P", ",".join(map(str, px.pids())), "-Q", str(a.be_pid)] + args
    r = subprocess.run(cmd, capture_output=True, text=True, timeout=dur + warm + 30)
    try:
        d = json.loads(r.stdout)
        if not d["ok"] and "-i" not in args:
            raise ValueError
        return d
    except ValueError:
        return {"rps": 0, "err": -1, "cpu_us": float("nan"), "fail": (r.stdout + r.stderr)[-200:]}


def drive_quiet(a, px, args):
    """One run, repeated while something else used more than --max-foreign of the proxy's core."""
    best = None
    for _ in range(a.retries + 1):
        r = drive(a, px, args, a.secs, a.warm)
        if "fail" in r:
            return r
        r["foreign"] = max(0.0, (r["core_us"] - r["cpu_us"]) * r["rps"] / 1e6)
        if best is None or r["foreign"] < best["foreign"]:
            best = r
        if best["foreign"] <= a.max_foreign:
            break
    return best


def has_tls(a, px):
    try:
        socket.create_connection((a.host, px.tls), 0.5).close()
        return True
    except OSError:
        return False


def idle_mem(a, mk, tls):
    """kB per idle client connection that has completed its handshake"""
    px = mk()
    px.start(a.host)
    try:
        if tls and not has_tls(a, px):
            return None
        # touch every code path once so that one-off allocations are not counted
        drive(a, px, (["-t"] if tls else []) + ["-c", "16", "-u", "/128"], 0.5, 0.1)
        time.sleep(0.3)
        base = rss_kb(px.pids())
        cmd = ["taskset", "-c", str(a.load_core), os.path.join(a.work, "l7load"), "-a", a.host, "-p",
               str(px.tls if tls else px.port), "-c", str(a.idle), "-d", "4" if tls else "1", "-w",
               "10" if tls else "1.5", "-i", "-u", "/128"] + (["-t"] if tls else [])
        p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = p.stdout.readline()
        time.sleep(0.3)
        full = rss_kb(px.pids())
        p.stdin.close()
        p.wait()
        n = json.loads(line)["open"] if line else 0
        return {"base_kb": base, "open": n, "kb_per_conn": (full - base) / n if n else float("nan")}
    finally:
        px.stop()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--proxy", action="append", default=[], metavar="NAME=COMMAND[::TEMPLATE]",
                    help="a proxy of ours; @PORT@ @TLSPORT@ @HOST@ @BACKEND@ @BHOST@ @BPORT@ @CRT@ @KEY@ @PEM@ @DIR@ "
                         "and, with a template file, @CONF@ are filled in")
    ap.add_argument("--peer", action="append", default=[], metavar="NAME=nginx|haproxy:BINARY[:TEMPLATE]",
                    help="another build of a peer")
    ap.add_argument("--floor", action="store_true", help="also l7floor, a byte relay with nothing else")
    ap.add_argument("--no-peers", action="store_true", help="leave out the installed nginx and haproxy")
    ap.add_argument("--loads", default=DEFAULT, help="comma-separated; 'all' or from: " + ", ".join(LOADS))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--secs", type=float, default=2.0, help="measured seconds per run")
    ap.add_argument("--warm", type=float, default=0.4)
    ap.add_argument("--max-foreign", type=float, default=0.10,
                    help="repeat a run while others used more than this share of the proxy's core")
    ap.add_argument("--retries", type=int, default=2, help="at most this many repeats of a disturbed run")
    ap.add_argument("--no-netns", action="store_true", help="stay in the caller's network namespace")
    ap.add_argument("--cc", default="cubic", help="TCP congestion control inside the namespace")
    ap.add_argument("--proxy-core", type=int, default=0)
    ap.add_argument("--load-core", type=int, default=1)
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--base-port", type=int, default=21100)
    ap.add_argument("--backend-port", type=int, default=21000)
    ap.add_argument("--idle", type=int, default=0, metavar="N", help="also measure memory with N idle connections")
    ap.add_argument("--work", help="scratch folder (default: a fresh temporary one)")
    ap.add_argument("--gate", action="append", default=[], metavar="NAME:LOAD=RATIO,..",
                    help="exit 1 when NAME's ratio to the best peer is above RATIO in a load")
    ap.add_argument("--json", help="write every single run here")
    a = ap.parse_args()
    if not a.no_netns:
        into_netns(a.cc)
        if os.environ.get("L7BENCH_NETNS"):
            setup_netns(a.cc)

    own = not a.work
    a.work = a.work or tempfile.mkdtemp(prefix="l7bench.")
    os.makedirs(a.work, exist_ok=True)
    build(a.work)
    files = make_cert(a.work)

    spec = []  # name, cmd, template, is_peer
    peers = list(a.peer)
    if not a.no_peers:
        for n in ("haproxy", "nginx"):
            path = shutil.which(n) or shutil.which(n, path="/usr/sbin:/usr/local/sbin")
            if path:
                peers.insert(0, f"{n}={n}:{path}")
    for s in peers:
        name, rest = s.split("=", 1)
        kind, path, *t = rest.split(":")
        if kind == "nginx":
            t = t[0] if t else os.path.join(HERE, "peers", "nginx.conf.in")
            spec.append((name, f"{path} -e stderr -p @DIR@/ -c @CONF@", t, True))
        else:
            t = t[0] if t else os.path.join(HERE, "peers", "haproxy.cfg.in")
            spec.append((name, f"{path} -db -f @CONF@", t, True))
    for s in a.proxy:
        name, rest = s.split("=", 1)
        cmd, _, t = rest.partition("::")
        spec.append((name, cmd, t or None, False))
    if a.floor:
        spec.append(("floor", os.path.join(a.work, "l7floor") + " @HOST@ @PORT@ @BPORT@", None, False))
    loads = list(LOADS) if a.loads == "all" else [x for x in a.loads.split(",") if x]

    nth = iter(range(1000))

    def mk(i):  # every start gets ports of its own
        n, c, t, _ = spec[i]
        return Proxy(n, c, t, a.base_port + 2 * next(nth), a, files)

    be = subprocess.Popen(["taskset", "-c", str(a.load_core), os.path.join(a.work, "l7be"), "-a", a.host, "-p",
                           str(a.backend_port)])
    a.be_pid = be.pid
    started, res = [], {}
    try:
        if not wait_port(a.host, a.backend_port):
            sys.exit("the origin server did not start")
        for i in range(len(spec)):
            px = mk(i)
            started.append(px)
            px.start(a.host)
        tls = {px.name: has_tls(a, px) for px in started}
        for rnd in range(a.rounds):
            for ld in loads:
                order = started[rnd % len(started):] + started[:rnd % len(started)]
                for px in order:
                    if "-t" in LOADS[ld][0] and not tls[px.name]:
                        continue
                    r = drive_quiet(a, px, LOADS[ld][0])
                    r["round"] = rnd
                    res.setdefault(ld, {}).setdefault(px.name, []).append(r)
                    if r.get("fail") or r.get("err", 0) or r.get("bad", 0):
                        print(f"# {ld} {px.name}: err={r.get('err')} bad={r.get('bad')} {r.get('fail', '')}",
                              file=sys.stderr)
            print(f"# round {rnd + 1}/{a.rounds} done", file=sys.stderr)
        for px in started:
            px.stop()
        isp = {n: p for n, _, _, p in spec}
        ratio = {}
        w = max(len(n) for n, *_ in spec)
        for ld in loads:
            if ld not in res:
                continue
            print(f"\n{ld}: {LOADS[ld][1]}")
            print(f"  {'proxy':{w}} {'cpu us/req':>10} {'user':>6} {'sys':>7} {'spread':>7} {'ratio':>6} "
                  f"{'p50 us':>8} {'p99 us':>8} {'req/s':>8} {'util':>5} {'vcs/req':>7} {'ksoft':>6} {'all us':>7} {'foreign':>7}")
            med = lambda rs, k: st.median(r[k] for r in rs if k in r)
            for n, *_ in spec:
                rs = res[ld].get(n)
                if not rs or all("fail" in r for r in rs):
                    continue
                rs = [r for r in rs if "fail" not in r]
                # ratio to the best peer, round by round
                ratios = []
                for r in rs:
                    best = [q["cpu_us"] for m, qs in res[ld].items() if isp[m] for q in qs
                            if q["round"] == r["round"] and "fail" not in q]
                    if best:
                        ratios.append(r["cpu_us"] / min(best))
                if ratios:
                    ratio[n, ld] = st.median(ratios)
                cs = sorted(r["cpu_us"] for r in rs)
                m = st.median(cs)
                mad = st.median(abs(c - m) for c in cs)
                print(f"  {n:{w}} {m:10.2f} {med(rs, 'user_us'):6.2f} {med(rs, 'sys_us'):7.2f} {100 * mad / max(m, 1e-9):6.1f}% "
                      f"{(f'{st.median(ratios):6.2f}' if ratios else '     -')} {med(rs, 'p50'):8.0f} {med(rs, 'p99'):8.0f} "
                      f"{med(rs, 'rps'):8.0f} {med(rs, 'util'):5.2f} {med(rs, 'vcs'):7.3f} "
                      f"{med(rs, 'ksoft_us'):6.2f} {med(rs, 'all_us'):7.2f} {med(rs, 'foreign'):7.2f}")
        if a.idle:
            print(f"\nmemory with {a.idle} idle connections (PSS, whole process tree)")
            print(f"  {'proxy':{w}} {'idle MB':>8} {'plain kB/conn':>14} {'TLS kB/conn':>12}")
            for i, (n, *_) in enumerate(spec):
                p, t = idle_mem(a, lambda: mk(i), False), idle_mem(a, lambda: mk(i), True)
                res.setdefault("idle", {})[n] = {"plain": p, "tls": t}
                print(f"  {n:{w}} {p['base_kb'] / 1024:8.1f} {p['kb_per_conn']:14.2f} "
                      f"{(t['kb_per_conn'] if t else float('nan')):12.2f}   (open: {p['open']}"
                      f"{', ' + str(t['open']) if t else ''})")
    finally:
        for px in started:
            px.stop()
        be.terminate()
        be.wait()
    if a.json:
        with open(a.json, "w") as f:
            json.dump(res, f)
    worse = 0
    for g in a.gate:
        n, _, rest = g.partition(":")
        for item in rest.split(","):
            ld, _, lim = item.partition("=")
            got = ratio.get((n, ld))
            ok = got is not None and got <= float(lim)
            worse += not ok
            print(f"gate {n} {ld}: {'-' if got is None else f'{got:.2f}'} (limit {lim}) {'ok' if ok else 'WORSE'}")
    if own:
        shutil.rmtree(a.work, ignore_errors=True)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
