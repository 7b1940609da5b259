# SPDX-License-Identifier: Apache-2.0
"""A store at the end of a pipe (tests/unit/store/driver.c): commands in, answers and events out."""
import json
import os
import queue
import sqlite3
import subprocess
import threading
import time

from .process import ISOBAR

DRIVER = os.path.abspath(os.path.join(os.path.dirname(ISOBAR), "../../tests/unit/store/store_driver"))


def rows(path, sql):
    """What a query says of the SQLite file at `path`."""
    database = sqlite3.connect(path)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


class Driver:
    """Use as a context manager; its end is judged: it exits with 0 and its sanitizer is silent."""

    def __init__(self, url, known=0, last_good="off", timeout_ms=3000):
        self.process = subprocess.Popen([DRIVER, url, str(known), last_good, str(timeout_ms)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.events, self.answers, self.log = [], queue.Queue(), []
        self._changed = threading.Condition()
        threading.Thread(target=self._read_out, daemon=True).start()
        threading.Thread(target=self._read_log, daemon=True).start()

    def _read_out(self):
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith("event "):
                with self._changed:
                    self.events.append(line[6:])
                    self._changed.notify_all()
            else:
                self.answers.put(line)
        self.answers.put(None)

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self, timeout_s=60):
        """(word, rest, versions): of the next command that was sent."""
        versions = []
        while True:
            line = self.answers.get(timeout=timeout_s)
            if line is None:
                return None, "", versions
            word, _, rest = line.partition(" ")
            if word != "version":
                return word, rest, versions
            number, who, diff, document = rest.split(" ", 3)
            versions.append((int(number), who, diff, json.loads(document) if document else None))

    def ask(self, command):
        self.send(command)
        return self.answer()

    def commit(self, expected, word="x", weight=1, targets=2):
        return self.ask(f"commit {expected} {word} {weight} {targets}")[:2]

    def wait_event(self, begins, after=0, timeout_s=60):
        """The position behind the first event from `after` that begins so."""
        end = time.monotonic() + timeout_s
        with self._changed:
            while True:
                for at in range(after, len(self.events)):
                    if self.events[at].startswith(begins):
                        return at + 1
                left = end - time.monotonic()
                assert left > 0, f"no event {begins!r} in {self.events[after:]}; log: {''.join(self.log)[-2000:]}"
                self._changed.wait(left)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            status = self.process.wait(60)
            assert status == 0, f"the driver ended with {status}: {''.join(self.log)[-3000:]}"

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
        else:
            self.close()
