# SPDX-License-Identifier: Apache-2.0
"""A real redis-server of a test's own, and a client that speaks just enough RESP to look inside; and a scripted server
that answers what a test tells it to."""
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

from .ports import free_port
from .process import wait_until

SERVER = shutil.which("redis-server") or shutil.which("valkey-server")


def command(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class RedisError(Exception):
    """The server answered with an error."""


class Redis:
    """A redis-server process; `options` are command-line options without the dashes."""

    def __init__(self, folder, port=None, password=None, tls=None, **options):
        self.port, self.password, self.folder = port or free_port(), password, str(folder)
        self.tls, self.options, self.process = tls, options, None
        self.start()

    def start(self):
        listen = ["--port", "0", "--tls-port", str(self.port)] if self.tls else ["--port", str(self.port)]
        args = [SERVER, *listen, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder]
        if self.tls:
            args += ["--tls-cert-file", self.tls["cert_file"], "--tls-key-file", self.tls["key_file"], "--tls-auth-clients", "no"]
        if self.password:
            args += ["--requirepass", self.password]
        for name, value in self.options.items():
            args += ["--" + name.replace("_", "-"), *str(value).split()]
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():
            try:
                if self.tls:
                    socket.create_connection(("127.0.0.1", self.port), 5).close()
                    return True
                return self.ask("PING") == b"PONG"
            except OSError:
                return False

        assert wait_until(answers), "redis-server did not start"

    @property
    def url(self):
        secret = f":{self.password}@" if self.password else ""
        return f"{'rediss' if self.tls else 'redis'}://{secret}127.0.0.1:{self.port}/0"

    def ask(self, *words):
        """One command on a connection of its own; bytes, int, None or a list."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as sock:
            stream = sock.makefile("rb")
            if self.password:
                sock.sendall(command("AUTH", self.password))
                read_reply(stream)
            sock.sendall(command(*words))
            return read_reply(stream)

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self):
        """At once, and without saving anything."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def read_reply(stream):
    line = stream.readline()
    if not line:
        raise OSError("the server has closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"+":
        return rest
    if kind == b"-":
        raise RedisError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2]
    return None if rest == b"-1" else [read_reply(stream) for _ in range(int(rest))]


class ScriptedRedis:
    """Listens like a Redis and answers each command with script(words): bytes to send as they are, None for nothing, or
    a float: seconds to wait first. Commands of the greeting are answered as Redis does unless the script does."""

    def __init__(self, script=None):
        self.script = script or (lambda words: None)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.commands, self.n_connections, self.is_over = [], 0, False
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while not self.is_over:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            thread = threading.Thread(target=self.serve, args=(sock,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def serve(self, sock):
        stream = sock.makefile("rb")
        try:
            while not self.is_over:
                words = [word.decode("latin-1") for word in read_reply(stream)]
                self.commands.append(words)
                answer = self.script(words)
                if isinstance(answer, tuple):
                    time.sleep(answer[0])
                    answer = answer[1]
                if answer is None:
                    answer = self.default(words)
                sock.sendall(answer)
        except (OSError, ValueError, TypeError):
            pass
        finally:
            sock.close()

    @staticmethod
    def default(words):
        if words[0] == "PING":
            return b"+PONG\r\n"
        if words[0] == "SUBSCRIBE":
            return b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n" % (len(words[1]), words[1].encode())
        if words[0] in ("GET", "EVAL"):
            return b"$-1\r\n"
        if words[0] in ("DEL", "PUBLISH"):
            return b":0\r\n"
        return b"+OK\r\n"

    def stop(self):
        self.is_over = True
        self.listener.close()
