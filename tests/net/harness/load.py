# SPDX-License-Identifier: Apache-2.0
"""Clients that keep asking while something else happens."""
import threading
import time

from .stand import address_of
from .wire import WireError, connect


class Load:
    """Clients that ask all the time, keep-alive and one connection a request; every failure is kept."""

    def __init__(self, stand, proxy, n_keepalive=4, n_single=2, pause_s=0.002):
        self.address = address_of(proxy.config)
        self.failures, self.n_ok, self.stop = [], 0, threading.Event()
        self.lock = threading.Lock()
        self.pause_s = pause_s
        self.threads = [threading.Thread(target=self.run, args=(True,)) for _ in range(n_keepalive)]
        self.threads += [threading.Thread(target=self.run, args=(False,)) for _ in range(n_single)]
        for thread in self.threads:
            thread.start()

    def run(self, keepalive):
        wire = None
        while not self.stop.is_set():
            try:
                wire = wire or connect(self.address)
                wire.request(fields=[] if keepalive else [("Connection", "close")])
                response = wire.read_response()
                if response.status != 200:
                    raise WireError(response.start)
                with self.lock:
                    self.n_ok += 1
                if not keepalive or response.closes:
                    wire.close()
                    wire = None
            except (OSError, WireError) as error:
                self.failures.append(repr(error))
                wire = None
            time.sleep(self.pause_s)
        if wire:
            wire.close()

    def finish(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert self.failures == [], self.failures[:5]
        return self.n_ok
