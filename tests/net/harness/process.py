# SPDX-License-Identifier: Apache-2.0
"""isobar as a process: started with a configuration, watched, asked for metrics, and ended with SIGTERM."""
import http.client
import json
import os
import re
import signal
import subprocess
import time

from .wire import connect

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
ISOBAR = os.environ.get("ISOBAR", os.path.join(ROOT, "build/src/cli/isobar"))
REPORTS = re.compile(r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|WARNING: ThreadSanitizer|"
                     r"assertion failed|Sanitizer:DEADLYSIGNAL")


def is_sanitized():
    """Was isobar built with a sanitizer? Its memory is then the sanitizer's, not its own."""
    with open(ISOBAR, "rb") as binary:
        data = binary.read()
    return b"__asan_init" in data or b"__tsan_init" in data


def tls_library():
    """The library that isobar speaks TLS with: OpenSSL, BoringSSL or AWS-LC."""
    text = subprocess.run([ISOBAR, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"\((\S+?)[ ,)]", text)[1]


def wait_until(condition, timeout_s=20, every_s=0.02):
    """Polls until `condition()` is true and returns its value; the last (false) value after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(every_s)


class Metrics:
    """One scrape. `types` and `helps` by family; `samples` as (name, {label: value}, number)."""

    LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
    LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')

    def __init__(self, text):
        self.text, self.types, self.helps, self.samples = text, {}, {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, family, kind = line.split(" ")
                assert family not in self.types, f"{family} is declared twice"
                self.types[family] = kind
            elif line.startswith("# HELP "):
                _, _, family, words = line.split(" ", 3)
                self.helps[family] = words
            elif line and not line.startswith("#"):
                match = self.LINE.match(line)
                assert match, f"not a sample: {line!r}"
                labels = dict(self.LABEL.findall(match[2] or ""))
                assert self.LABEL.sub("", match[2] or "") == "", f"bad labels: {line!r}"
                self.samples.append((match[1], labels, float(match[3])))

    def select(self, name, **labels):
        name = name if name.startswith(("isobar_", "process_")) else "isobar_" + name
        return [(have, value) for sample, have, value in self.samples
                if sample == name and all(have.get(key) == str(want) for key, want in labels.items())]

    def total(self, name, **labels):
        """The sum over all series of a name that have these labels."""
        return sum(value for _, value in self.select(name, **labels))


class Isobar:
    """A running `isobar serve`. `config` is the document as a dict; the admin address is filled in by the stand."""

    def __init__(self, folder, config, args=None, env=None, cwd=None):
        self.folder, self.config = folder, config
        self.file = os.path.join(folder, "isobar.json")
        self.admin = None
        self.token = None  # sent along with requests to the admin listener
        self.admin_tls = None  # the ssl context of an admin listener that speaks TLS
        if config is not None:
            self.write(config)
            host, port = config["admin"]["listen"].rsplit(":", 1)
            self.admin = (host, int(port))
        self.args = args if args is not None else ["serve", "--config", self.file]
        self.stdout_file, self.stderr_file = os.path.join(folder, "stdout"), os.path.join(folder, "stderr")
        with open(self.stdout_file, "wb") as out, open(self.stderr_file, "wb") as err:
            self.process = subprocess.Popen([ISOBAR] + self.args, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            cwd=cwd or folder, env=env)
        self.pid = self.process.pid
        self.baseline = None
        self.is_stopping = False  # the test has asked it to end

    def write(self, config):
        """Replaces the configuration file as an editor would: written aside, then renamed."""
        self.config = config
        with open(self.file + ".new", "w", encoding="utf-8") as out:
            json.dump(config, out, indent=1)
        os.rename(self.file + ".new", self.file)

    @property
    def stderr(self):
        with open(self.stderr_file, encoding="utf-8", errors="replace") as text:
            return text.read()

    @property
    def stdout(self):
        with open(self.stdout_file, encoding="utf-8", errors="replace") as text:
            return text.read()

    def is_alive(self):
        return self.process.poll() is None

    def ready(self, address=None, timeout_s=30):
        """Waits until the admin listener, or `address`, answers; says what isobar said when it never does."""

        def answers():
            if not self.is_alive():
                return "dead"
            try:
                if address is None:
                    return self.get("/healthz")[0] == 200
                connect(address, 5).close()
                return True
            except OSError:
                return False

        if wait_until(answers, timeout_s) is not True:
            self.kill()
            raise AssertionError(f"isobar did not start (status {self.process.returncode}):\n{self.stderr}")
        self.baseline = self.sockets()
        return self

    def get(self, path, timeout_s=20):
        """GET on the admin listener: (status, body)."""
        status, _, body = self.admin_request("GET", path, timeout_s=timeout_s)
        return status, body.decode()

    def admin_request(self, method, path, fields=(), timeout_s=20, body=None):
        """A request to the admin listener: (status, fields, body)."""
        if self.admin_tls:
            connection = http.client.HTTPSConnection("localhost", self.admin[1], timeout=timeout_s, context=self.admin_tls)
        else:
            connection = http.client.HTTPConnection(*self.admin, timeout=timeout_s)
        fields = dict(fields)
        if self.token and "Authorization" not in fields:
            fields["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, body=body, headers=fields)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def metrics(self):
        status, text = self.get("/metrics")
        assert status == 200, text
        return Metrics(text)

    def descriptors(self):
        """What every open descriptor is, as the kernel names it."""
        found = []
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                found.append(os.readlink(f"/proc/{self.pid}/fd/{fd}"))
            except OSError:
                pass
        return found

    def sockets(self):
        return sum(name.startswith("socket:") for name in self.descriptors())

    def rss_kb(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def cpu_s(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as text:
            numbers = text.read().rsplit(")", 1)[1].split()
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    def signal(self, number):
        self.is_stopping |= number in (signal.SIGTERM, signal.SIGINT)
        self.process.send_signal(number)

    def reload(self, config=None, wait=True):
        """SIGHUP, with a new configuration when one is given; waits until isobar says that it took or refused it."""
        before = self.reload_counts()
        if config is not None:
            self.write(config)
        self.signal(signal.SIGHUP)
        if wait:
            changed = wait_until(lambda: self.reload_counts() != before)
            assert changed, f"no word about the reload:\n{self.stderr}"

    def reload_counts(self):
        metrics = self.metrics()
        return (metrics.total("config_reloads_total", result="success"), metrics.total("config_reloads_total", result="failure"))

    def stop(self, timeout_s=30):
        """SIGTERM; returns the exit status."""
        # A second SIGTERM would cut what the first one lets finish.
        if self.is_alive() and not self.is_stopping:
            self.signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"isobar did not stop in {timeout_s} s:\n{self.stderr}") from None

    def kill(self):
        if self.is_alive():
            self.process.kill()
            self.process.wait()

    def settles(self):
        """Nothing is left of the work: gauges at zero, sockets as after the start. Clients and backends are gone by now."""
        gauges = ("listener_active_connections", "listener_active_requests", "listener_active_tunnels",
                  "target_open_connections", "target_idle_connections", "target_in_flight", "target_group_pending")
        state = {}

        def is_settled():
            metrics = self.metrics()
            state.update({name: metrics.total(name) for name in gauges if metrics.total(name)})
            for name in list(state):
                if not metrics.total(name):
                    del state[name]
            state["sockets"] = self.sockets()
            return len(state) == 1 and state["sockets"] <= self.baseline

        assert wait_until(is_settled, 15, 0.05), f"left over (started with {self.baseline} sockets): {state}"

    def assert_clean(self):
        """No sanitizer's report and no failed assertion in what it printed."""
        found = REPORTS.search(self.stderr)
        assert not found, self.stderr
