# SPDX-License-Identifier: Apache-2.0
"""UDP backends that answer each datagram, and clients that send them."""
import socket
import threading

from .ports import free_port


class UdpBackend:
    """`answer(data, peer)` gives the bytes to send back, a list of them, or None. Remembers (data, peer) of all it got."""

    def __init__(self, answer=None, name="udp", port=None, family=socket.AF_INET):
        self.name, self.got, self.errors = name, [], []
        self.answer = answer or (lambda data, peer: self.name.encode() + b":" + data)
        self.family = family
        self.host = "127.0.0.1" if family == socket.AF_INET else "::1"
        self.port = port or free_port()
        self.sock = None
        self.start()

    @property
    def target(self):
        return {"ip": self.host, "port": self.port}

    @property
    def label(self):
        return f"{self.host}:{self.port}" if self.family == socket.AF_INET else f"[{self.host}]:{self.port}"

    @property
    def peers(self):
        return {peer for _, peer in self.got}

    def start(self):
        self.sock = socket.socket(self.family, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind((self.host, self.port))
        threading.Thread(target=self._run, args=(self.sock,), daemon=True).start()

    def _run(self, sock):
        while True:
            try:
                data, peer = sock.recvfrom(65536)
            except OSError:
                return
            if data == b"" and self.sock is not sock:
                return
            self.got.append((data, peer))
            answers = self.answer(data, peer)
            for one in answers if isinstance(answers, list) else [answers]:
                if one is not None:
                    try:
                        sock.sendto(one, peer)
                    except OSError:
                        pass

    def stop(self):
        """Datagrams are refused from now on (ICMP port unreachable)."""
        sock, self.sock = self.sock, None
        if sock:
            try:
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread
            except OSError:
                pass
            sock.close()


class UdpClient:
    def __init__(self, address, timeout_s=20, source=None):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        self.sock.settimeout(timeout_s)
        if source:
            self.sock.bind(source)
        self.sock.connect(address)

    @property
    def port(self):
        return self.sock.getsockname()[1]

    def send(self, data):
        self.sock.send(data)

    def read(self, timeout_s=20):
        self.sock.settimeout(timeout_s)
        return self.sock.recv(65536)

    def ask(self, data, timeout_s=20):
        self.send(data)
        return self.read(timeout_s)

    def hears_nothing(self, for_s=0.3):
        try:
            self.read(for_s)
        except TimeoutError:
            return True
        return False

    def close(self):
        self.sock.close()
