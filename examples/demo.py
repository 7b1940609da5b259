#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Starts three sample backends and isobar in front of them, says what to open, and ends everything on Ctrl-C or TERM.
The configuration is examples/three-servers.yaml; a port of it that is taken is replaced by a free one.

    examples/demo.py ISOBAR
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("one", "two", "three")


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def usable(port, taken):
    """The port itself when it is free, else the next free one."""
    while port in taken or not is_free(port):
        port += 1
    taken.add(port)
    return port


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for(port, process, what):
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"{what} ended with status {process.returncode}")
        if answers(port):
            return
        time.sleep(0.05)
    sys.exit(f"{what} does not answer on port {port}")


def start(command):
    # A group of its own: Ctrl-C reaches this script only, which then ends the others in order.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def end(processes):
    for process in processes:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(35)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main():
    isobar = sys.argv[1]
    with open(os.path.join(HERE, "three-servers.yaml"), encoding="utf-8") as source:
        text = source.read()
    taken = set()
    ports = {port: usable(port, taken) for port in (8080, 8443, 9001, 9002, 9003)}
    for signal_number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signal_number, lambda number, _: sys.exit(0))
    processes = []
    with tempfile.TemporaryDirectory(prefix="isobar-demo-") as folder:
        file = os.path.join(folder, "three-servers.yaml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(re.sub(r"\b(8080|8443|900[123])\b", lambda match: str(ports[int(match[0])]), text))
        try:
            for number, name in enumerate(NAMES):
                port = ports[9001 + number]
                processes.insert(0, start([sys.executable, os.path.join(HERE, "backend.py"), name, str(port)]))
                wait_for(port, processes[0], f"backend {name}")
            processes.insert(0, start([isobar, "serve", "--config", file]))
            wait_for(ports[8080], processes[0], "isobar")
            print(f"""
Isobar runs in front of three sample backends ({', '.join(f'{n} on {ports[9001 + i]}' for i, n in enumerate(NAMES))}). Open:

    http://127.0.0.1:{ports[8080]}/            one of the backends; ask again and another answers
    http://127.0.0.1:{ports[8080]}/one/path    a rule: always backend one, /one/ taken off
    http://127.0.0.1:{ports[8080]}/hello       a fixed answer
    http://127.0.0.1:{ports[8443]}/api/health  states of the targets
    http://127.0.0.1:{ports[8443]}/metrics     Prometheus metrics

Its configuration is {file}: edit it, then `kill -HUP {processes[0].pid}` puts it in force.
Each request is logged below. Ctrl-C ends everything.
""", flush=True)
            status = processes[0].wait()
            sys.exit(f"isobar ended with status {status}")
        finally:
            end(processes)


if __name__ == "__main__":
    main()
