#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPU per UDP echo through isobar and nginx's stream module, side by side, in interleaved rounds.

udpbench.py ISOBAR [--rounds N] [--seconds S] [--loads echo64,echo1200,bulk1200]
Needs nginx with its stream module, a C compiler, taskset and two cores: the proxy has one, load and origin the other.
Prints microseconds on CPU per echo (median over the rounds) and the median of the rounds' ratios to nginx."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LOADS = {"echo64": ("load", "256", "64"), "echo1200": ("load", "256", "1200"), "bulk1200": ("bulk", "1200", "64")}
NGINX = """{module}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error warn;
events {{ worker_connections 4096; }}
stream {{ upstream o {{ server 127.0.0.1:{origin}; }} server {{ listen 127.0.0.1:{port} udp; proxy_pass o; proxy_timeout 60s; }} }}
"""


def isobar_config(port, origin):
    return {"admin": {"listen": "off"}, "workers": 1,
            "load_balancers": [{"name": "lb", "vip": "127.0.0.1", "listeners": [
                {"port": port, "protocol": "UDP", "default_target_group": "o"}]}],
            "target_groups": [{"name": "o", "protocol": "UDP", "targets": [{"ip": "127.0.0.1", "port": origin}]}]}


def pinned(core, *command):
    return subprocess.Popen(["taskset", "-c", str(core), *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def worker_of(pid):
    """The nginx worker below its master; isobar's threads are in one process."""
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.split()[0] if done.stdout.split() else str(pid)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("isobar")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--base", type=int, default=17300)
    args = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        tool = os.path.join(folder, "udpload")
        subprocess.run(["cc", "-O2", "-o", tool, os.path.join(here, "udpload.c")], check=True)
        origin, ports = args.base, {"nginx": args.base + 1, "isobar": args.base + 2}
        module = "/usr/lib/nginx/modules/ngx_stream_module.so"
        with open(folder + "/nginx.conf", "w", encoding="utf-8") as out:
            out.write(NGINX.format(module=f"load_module {module};\n" if os.path.exists(module) else "", folder=folder,
                                   origin=origin, port=ports["nginx"]))
        with open(folder + "/isobar.json", "w", encoding="utf-8") as out:
            json.dump(isobar_config(ports["isobar"], origin), out)
        running = [pinned(1, tool, "echo", str(origin)),
                   pinned(0, "nginx", "-p", folder, "-e", folder + "/error", "-c", folder + "/nginx.conf"),
                   pinned(0, os.path.abspath(args.isobar), "serve", "--config", folder + "/isobar.json")]
        try:
            time.sleep(1)
            pids = {"nginx": worker_of(running[1].pid), "isobar": str(running[2].pid)}
            for load in args.loads.split(","):
                kind, *numbers = LOADS[load]
                costs = {name: [] for name in ports}
                rates, lost = {name: [] for name in ports}, dict.fromkeys(ports, 0)
                for _ in range(args.rounds):
                    for name, port in ports.items():
                        done = subprocess.run(["taskset", "-c", "1", tool, kind, str(port), *numbers, str(args.seconds), pids[name]],
                                              capture_output=True, text=True, check=True)
                        result = json.loads(done.stdout)
                        costs[name].append(result["cpu_ns"] / max(result["echoes"], 1) / 1000)
                        rates[name].append(result["echoes"] / result["seconds"])
                        lost[name] += result["lost"]
                ratios = [ours / theirs for ours, theirs in zip(costs["isobar"], costs["nginx"])]
                print(f"{load}: " + "; ".join(f"{name} {statistics.median(costs[name]):.2f} us/echo, "
                                              f"{statistics.median(rates[name]):.0f}/s, {lost[name]} lost" for name in ports)
                      + f"; ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
