# SPDX-License-Identifier: Apache-2.0
"""Scripted backends. A Backend listens, runs `script(wire)` in a thread for every connection, and remembers what it saw: the
requests (those read through Wire.read_request), the raw bytes per connection, and any error of the script."""
import socket
import threading

from .ports import free_port
from .wire import Closed, Wire


def text_response(body=b"ok", status="200 OK", fields=(), close=False):
    """The bytes of a plain response with a Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"] + [f"{name}: {value}" for name, value in fields]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class RecordingWire(Wire):
    """A backend's side of a connection: requests read from it are kept by the backend."""

    def __init__(self, sock, backend):
        super().__init__(sock, timeout_s=60)
        self.backend = backend

    def read_request(self, body=True):
        request = super().read_request(body)
        if request is not None:
            with self.backend.lock:
                self.backend.requests.append(request)
        return request


class Backend:
    """`script(wire)` speaks on one connection and may just return; the connection is closed behind it."""

    def __init__(self, script=None, name="backend", port=None, path=None, listen=True):
        self.script = script or self.answer_all
        self.name = name
        self.port = port or (0 if path else free_port())
        self.path = path
        self.lock = threading.Lock()
        self.requests = []
        self.wires = []
        self.errors = []
        self.answer = lambda request: text_response(self.name.encode(), fields=[("X-Backend", self.name)])
        self.listener = None
        if listen:
            self.start()

    @property
    def target(self):
        """As the configuration names it."""
        return {"unix": self.path} if self.path else {"ip": "127.0.0.1", "port": self.port}

    @property
    def label(self):
        """As metrics and logs name it."""
        return f"unix:{self.path}" if self.path else f"127.0.0.1:{self.port}"

    @property
    def n_connections(self):
        return len(self.wires)

    @property
    def raw(self):
        """Every byte that any connection brought."""
        return b"".join(wire.seen for wire in self.wires)

    def start(self):
        if self.path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
        else:
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(1024)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def wire(self, sock):
        """Our side of an accepted connection."""
        return RecordingWire(sock, self)

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            if not self.path:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire = self.wire(sock)
            with self.lock:
                # A stop() between accept and here has not seen this one, and would leave it open.
                if self.listener is not listener:
                    wire.close()
                    return
                self.wires.append(wire)
            threading.Thread(target=self._run, args=(wire,), daemon=True).start()

    def _run(self, wire):
        try:
            self.script(wire)
        except (Closed, ConnectionError, TimeoutError):
            pass  # the proxy ended the connection: the test judges by what arrived
        except OSError:
            pass  # the backend was stopped meanwhile
        except Exception as error:  # noqa: BLE001: what went wrong in a thread must reach the test
            self.errors.append(error)
        finally:
            wire.close()

    def answer_all(self, wire):
        """The default script: reads requests and answers each with self.answer(request), which may be bytes or None."""
        while True:
            request = wire.read_request()
            if request is None:
                return
            answer = self.answer(request)
            if answer is None:
                return
            wire.send(answer)
            if b"\r\nConnection: close\r\n" in answer.split(b"\r\n\r\n", 1)[0] + b"\r\n":
                return

    def stop(self):
        """Listens no more and closes every connection; start() brings it back on the same port."""
        with self.lock:
            listener, self.listener = self.listener, None
            wires = list(self.wires)
        if listener:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()
        for wire in wires:
            try:
                wire.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            wire.close()


def replying(data):
    """A script that reads one request after the other and sends the same bytes for each."""

    def script(wire):
        while wire.read_request() is not None:
            wire.send(data)

    return script


def replying_once(data):
    """A script that reads one request, sends bytes, and closes."""

    def script(wire):
        if wire.read_request() is not None:
            wire.send(data)

    return script
