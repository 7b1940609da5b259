#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time per request of HTTP/2 in front of an HTTP/1.1 origin, isobar beside haproxy: h2load with 8 connections of 32
streams, answers of 128 bytes or --size, cleartext and TLS. All on one machine; proxies share one core, origin and load the other, and only
one proxy gets load at a time. Prints the median over the rounds and its ratio to haproxy's of the same round.

    bench/l7/h2bench.py [--isobar build/src/cli/isobar] [--rounds 5] [--requests 60000] [--size 128] [--no-tls]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile

from pinned import HERE, OTHER_CORE, PROXY_CORE, begin, cpu_us, end, h2load, settle, write

TICK = os.sysconf("SC_CLK_TCK")
ORIGIN, PLAIN, TLS = 19500, {"haproxy": 19501, "isobar": 19511}, {"haproxy": 19502, "isobar": 19512}

HAPROXY = """global
    nbthread 1
defaults
    mode http
    timeout client 1h
    timeout server 1h
    timeout connect 5s
    http-reuse always
frontend fe
    bind 127.0.0.1:{plain} proto h2
    bind 127.0.0.1:{tls} ssl crt {folder}/all.pem alpn h2
    default_backend be
backend be
    server s1 127.0.0.1:{origin} pool-max-conn -1 pool-purge-delay 1h
"""

ISOBAR = """workers: 1
admin: {{ listen: "127.0.0.1:0" }}
certificates:
  - {{ name: c, cert_file: {folder}/cert.pem, key_file: {folder}/key.pem }}
load_balancers:
  - name: lb
    vip: 127.0.0.1
    listeners:
      - {{ port: {plain}, default_target_group: g }}
      - {{ port: {tls}, protocol: HTTPS, certificates: [c], default_target_group: g }}
target_groups:
  - name: g
    health_check: {{ type: none }}
    targets:
      - {{ ip: 127.0.0.1, port: {origin} }}
"""


def spent_us(pid):
    """User, system and total time: the first two in the kernel's ticks, the total exact."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) / TICK * 1e6, int(fields[12]) / TICK * 1e6, cpu_us(pid)


def start(folder, args):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    f"{folder}/key.pem", "-out", f"{folder}/cert.pem", "-days", "2", "-subj", "/CN=localhost"],
                   check=True, stderr=subprocess.DEVNULL)
    with open(f"{folder}/all.pem", "w") as out:
        for part in ("cert", "key"):
            with open(f"{folder}/{part}.pem") as file:
                out.write(file.read())
    subprocess.run(["cc", "-O2", "-o", f"{folder}/l7be", f"{HERE}/l7be.c"], check=True)
    values = {"folder": folder, "origin": ORIGIN}
    h = write(f"{folder}/h.cfg", HAPROXY, plain=PLAIN["haproxy"], tls=TLS["haproxy"], **values)
    i = write(f"{folder}/i.yaml", ISOBAR, plain=PLAIN["isobar"], tls=TLS["isobar"], **values)
    origin = begin(OTHER_CORE, f"{folder}/l7be", "-a", "127.0.0.1", "-p", str(ORIGIN))
    proxies = {"isobar": begin(PROXY_CORE, args.isobar, "serve", "--config", i)}
    if shutil.which("haproxy"):
        proxies["haproxy"] = begin(PROXY_CORE, "haproxy", "-f", h, "-db")
    settle(origin, *proxies.values())
    return origin, proxies


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isobar", default=os.path.join(HERE, "../../build/src/cli/isobar"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=60000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--no-tls", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        origin, proxies = start(folder, args)
        try:
            for name, scheme, ports in (("h2c", "http", PLAIN), ("h2 over TLS", "https", TLS))[:1 if args.no_tls else 2]:
                measured = {proxy: [] for proxy in proxies}
                for number in range(args.rounds + 1):
                    for proxy, process in proxies.items():
                        before = spent_us(process.pid)
                        h2load(f"{scheme}://127.0.0.1:{ports[proxy]}/{args.size}", args.requests)
                        after = spent_us(process.pid)
                        if number:  # the first round warms up
                            measured[proxy].append([(b - a) / args.requests for a, b in zip(before, after)])
                for proxy, rows in measured.items():
                    user, system, total = (statistics.median(column) for column in zip(*rows))
                    ratio = ""
                    if "haproxy" in measured and proxy != "haproxy":
                        ratio = "ratio %.2f" % statistics.median(
                            mine[2] / theirs[2] for mine, theirs in zip(rows, measured["haproxy"]))
                    print(f"{name:12} {proxy:8} cpu {total:6.2f} us/req  user {user:5.2f}  sys {system:5.2f}  {ratio}")
        finally:
            end(origin, *proxies.values())


if __name__ == "__main__":
    main()
