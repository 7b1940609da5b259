#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time per small unary gRPC call from HTTP/2 clients to an HTTP/2 target, isobar beside haproxy and nginx (grpc_pass): h2load
with 8 connections of 32 calls, a message of 37 bytes echoed by nghttpd with grpc-status in trailers. All on one machine; proxies
share one core, target and load the other, and only one proxy gets load at a time. Prints least and median over the rounds,
and the median ratio to the better peer of the same round.

    bench/l7/grpcbench.py [--isobar build/src/cli/isobar] [--rounds 7] [--calls 30000]
"""
import argparse
import os
import shutil
import statistics
import struct
import tempfile

from pinned import HERE, OTHER_CORE, PROXY_CORE, begin, cpu_us, end, h2load, settle, write

TARGET, PORTS = 19520, {"isobar": 19521, "haproxy": 19522, "nginx": 19523}

HAPROXY = """global
    nbthread 1
    tune.h2.max-concurrent-streams 128
defaults
    mode http
    timeout client 1h
    timeout server 1h
    timeout connect 5s
    http-reuse always
frontend fe
    bind 127.0.0.1:{haproxy} proto h2
    default_backend be
backend be
    server s1 127.0.0.1:{target} proto h2 pool-max-conn -1 pool-purge-delay 1h
"""

NGINX = """daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream be {{ server 127.0.0.1:{target}; keepalive 512; keepalive_requests 100000000; }}
  keepalive_requests 100000000;
  server {{
    listen 127.0.0.1:{nginx} http2;
    http2_max_requests 100000000; http2_max_concurrent_streams 128;
    location / {{ grpc_pass grpc://be; }}
  }}
}}
"""

ISOBAR = """workers: 1
admin: {{ listen: "127.0.0.1:0" }}
load_balancers:
  - {{ name: lb, vip: 127.0.0.1, listeners: [ {{ port: {isobar}, default_target_group: g }} ] }}
target_groups:
  - {{ name: g, protocol: GRPC, health_check: {{ type: none }}, targets: [ {{ ip: 127.0.0.1, port: {target} }} ] }}
"""


def start(folder, isobar):
    values = {"folder": folder, "target": TARGET, **PORTS}
    commands = {
        "isobar": [isobar, "serve", "--config", write(f"{folder}/i.yaml", ISOBAR, **values)],
        "haproxy": ["haproxy", "-db", "-f", write(f"{folder}/h.cfg", HAPROXY, **values)],
        "nginx": ["nginx", "-c", write(f"{folder}/n.conf", NGINX, **values)],
    }
    target = begin(OTHER_CORE, "nghttpd", "--no-tls", "--echo-upload", "--trailer=grpc-status: 0", "-d", folder, str(TARGET))
    proxies = {name: begin(PROXY_CORE, *command) for name, command in commands.items() if shutil.which(command[0])}
    settle(target, *proxies.values())
    return target, proxies


def call(folder, port, calls):
    h2load(f"http://127.0.0.1:{port}/echo.Echo/Unary", calls, "-d", f"{folder}/call", "-H", "content-type: application/grpc",
           "-H", "te: trailers")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isobar", default=os.path.join(HERE, "../../build/src/cli/isobar"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=30000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # nginx's worker is another user
        with open(f"{folder}/call", "wb") as file:
            file.write(struct.pack(">BI", 0, 32) + b"x" * 32)
        target, proxies = start(folder, os.path.abspath(args.isobar))
        measured = {name: [] for name in proxies}
        try:
            for number in range(args.rounds + 1):
                for name, process in proxies.items():
                    before = cpu_us(process.pid)
                    call(folder, PORTS[name], args.calls)
                    if number:  # the first round warms up
                        measured[name].append((cpu_us(process.pid) - before) / args.calls)
        finally:
            end(target, *proxies.values())
        peers = [rows for name, rows in measured.items() if name != "isobar"]
        for name, rows in measured.items():
            ratio = ""
            if name == "isobar" and peers:
                best = [min(values) for values in zip(*peers)]
                ratio = "ratio %.2f" % statistics.median(mine / peer for mine, peer in zip(rows, best))
            print(f"{name:8} cpu us/call: least {min(rows):6.2f}  median {statistics.median(rows):6.2f}  {ratio}")


if __name__ == "__main__":
    main()
