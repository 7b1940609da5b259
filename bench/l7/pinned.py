# SPDX-License-Identifier: Apache-2.0
"""What h2bench.py and grpcbench.py measure with: proxies on core 0, target and load on core 1, h2load with 8 connections of 32
streams, and the CPU time that a proxy took."""
import os
import re
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROXY_CORE, OTHER_CORE = "0", "1"


def write(path, text, **values):
    with open(path, "w", encoding="ascii") as file:
        file.write(text.format(**values))
    return path


def begin(core, *command):
    return subprocess.Popen(["taskset", "-c", core, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def settle(*processes):
    """Waits until they serve; one that has ended (a port in use, a setting that it does not know) would be measured as 0."""
    time.sleep(1.5)
    for process in processes:
        assert process.poll() is None, f"{process.args} has ended with {process.returncode}"


def end(*processes):
    for process in processes:
        process.terminate()
        process.wait()


def h2load(url, requests, *more):
    """Sends so many requests; all of them must be answered well."""
    done = subprocess.run(["taskset", "-c", OTHER_CORE, "h2load", "-n", str(requests), "-c", "8", "-m", "32", *more, url],
                          capture_output=True, text=True, check=True)
    assert int(re.search(r"(\d+) 2xx", done.stdout).group(1)) == requests, done.stdout


def tree(pid):
    """The process and its descendants: nginx has a worker of its own."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [pid, *(each for child in file.read().split() for each in tree(int(child)))]


def cpu_us(pid):
    """By the scheduler's nanosecond clock."""
    total = 0
    for process in tree(pid):
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
    return total / 1000
