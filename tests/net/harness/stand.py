# SPDX-License-Identifier: Apache-2.0
"""One test's stand: isobar, backends and clients, all on ports of their own. At the end clients and backends go first;
then isobar must be alive, hold nothing of the work, and stop with status 0 on SIGTERM."""
import json
import os
import subprocess

from .backend import Backend
from .ports import free_port
from .process import ISOBAR, ROOT, Isobar
from .wire import connect


class Stand:
    def __init__(self, folder):
        self.folder = str(folder)
        self.backends, self.clients, self.proxies, self.processes = [], [], [], []

    # Parts

    def backend(self, script=None, **options):
        backend = Backend(script, **options)
        self.backends.append(backend)
        return backend

    def backends_named(self, *names, **options):
        """Backends that answer with their name."""
        return [self.backend(name=name, **options) for name in names]

    def config(self, targets, listener=None, group=None, **top):
        """A document with one listener and one target group; `targets` are backends or target dicts."""
        targets = targets if isinstance(targets, (list, tuple)) else [targets]
        return {
            "admin": {"listen": f"127.0.0.1:{free_port()}"},
            "workers": 1,
            "load_balancers": [{
                "name": "lb", "vip": "127.0.0.1",
                "listeners": [{"port": free_port(), "protocol": "HTTP", "default_target_group": "web",
                               **(listener or {})}],
            }],
            "target_groups": [{
                "name": "web", "protocol": "HTTP", "algorithm": "round_robin", "health_check": {"type": "none"},
                "targets": [t.target if isinstance(t, Backend) else t for t in targets],
                **(group or {}),
            }],
            **top,
        }

    def serve(self, config, ready=True, **options):
        """Starts isobar with a configuration and waits until it is ready."""
        folder = os.path.join(self.folder, f"isobar{len(self.proxies)}")
        os.mkdir(folder)
        proxy = Isobar(folder, config, **options)
        self.proxies.append(proxy)
        return proxy.ready() if ready else proxy

    def proxy(self, targets, listener=None, group=None, **top):
        """isobar in front of backends, with the defaults of config()."""
        return self.serve(self.config(targets, listener, group, **top))

    def client(self, proxy=None, timeout_s=20, listener=0):
        """A connection to the proxy's listener."""
        proxy = proxy or self.proxies[0]
        wire = connect(address_of(proxy.config, listener), timeout_s)
        self.clients.append(wire)
        return wire

    def ask(self, method="GET", target="/", fields=(), body=None, proxy=None, **options):
        """One request on a connection of its own, and its response."""
        wire = self.client(proxy, listener=options.pop("listener", 0))
        wire.request(method, target, list(fields) + [("Connection", "close")], body, **options)
        response = wire.read_response(method)
        wire.close()
        return response

    def exchange(self, data, proxy=None, timeout_s=20):
        """Sends bytes on a connection of its own and returns everything that comes until the other side closes."""
        wire = self.client(proxy, timeout_s)
        wire.send(data)
        return wire.read_to_end()

    def run(self, command, **options):
        """A helper process that is ended with the stand (a real backend, a client)."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd=self.folder, **options)
        self.processes.append(process)
        return process

    def isobar(self, *args, timeout_s=30, text=None, **options):
        """Runs an isobar command to its end: (status, stdout, stderr)."""
        done = subprocess.run([ISOBAR, *args], input=text, capture_output=True, text=True, timeout=timeout_s,
                              cwd=options.pop("cwd", self.folder), **options)
        return done.returncode, done.stdout, done.stderr

    def refuses(self, config):
        """What `isobar check` says of a configuration that it must not take."""
        path = os.path.join(self.folder, "refused.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(config, out)
        status, _, err = self.isobar("check", path)
        assert status == 1, err
        return err

    # The end

    def part(self):
        """Ends clients and backends, then judges and ends isobar."""
        for wire in self.clients:
            wire.close()
        for backend in self.backends:
            backend.stop()
        for process in self.processes:
            process.terminate()
            process.wait()
        for proxy in self.proxies:
            if proxy.process.returncode is None:
                if not proxy.is_stopping:
                    assert proxy.is_alive(), f"isobar ended by itself ({proxy.process.returncode}):\n{proxy.stderr}"
                    if proxy.admin:
                        proxy.settles()
                status = proxy.stop()
                assert status == 0, f"status {status} after SIGTERM:\n{proxy.stderr}"
            proxy.assert_clean()
        for backend in self.backends:
            assert not backend.errors, f"{backend.name}: {backend.errors[0]!r}"

    def abandon(self):
        """After a failed test: nothing is judged, everything ends."""
        for wire in self.clients:
            wire.close()
        for backend in self.backends:
            backend.stop()
        for process in self.processes:
            process.kill()
            process.wait()
        for proxy in self.proxies:
            proxy.kill()


def address_of(config, listener=0, load_balancer=0):
    """Where a listener of a configuration is reached."""
    balancer = config["load_balancers"][load_balancer]
    chosen = balancer["listeners"][listener]
    return chosen["unix"] if "unix" in chosen else (balancer.get("vip", "127.0.0.1"), chosen["port"])


__all__ = ["ROOT", "Stand", "address_of"]
