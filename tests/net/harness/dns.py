# SPDX-License-Identifier: Apache-2.0
"""A name server that answers what the test says, over UDP and TCP on 127.0.0.1, and remembers what it was asked. Names map to lists
of records; a name that is not there is NXDOMAIN, one without records of the type has an empty answer."""
import socket
import struct
import threading

from .ports import free_port

A, AAAA, SRV = 1, 28, 33
SERVFAIL, NXDOMAIN = 2, 3


def encode_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split(".") if label) + b"\0"


def a(address, ttl=60):
    return (A, ttl, socket.inet_pton(socket.AF_INET, address))


def aaaa(address, ttl=60):
    return (AAAA, ttl, socket.inet_pton(socket.AF_INET6, address))


def srv(host, port, priority=0, weight=1, ttl=60):
    return (SRV, ttl, struct.pack("!HHH", priority, weight, port) + encode_name(host))


class NameServer:
    def __init__(self):
        self.port = free_port()
        self.names = {}
        self.broken = None  # an RCODE that everything is answered with
        self.is_silent = False
        self.truncates = False  # UDP answers say that the whole is to be had over TCP
        self.questions, self.n_tcp = [], 0
        self.lock = threading.Lock()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.sock.bind(("127.0.0.1", self.port))
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def resolver(self):
        """As the configuration names it."""
        return {"servers": [f"127.0.0.1:{self.port}"]}

    def set(self, name, *records):
        with self.lock:
            self.names[name] = list(records)

    def remove(self, name):
        with self.lock:
            self.names.pop(name, None)

    def n_questions(self, name, kind=A):
        with self.lock:
            return self.questions.count((name, kind))

    def close(self):
        self.sock.close()
        self.listener.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_tcp, args=(sock,), daemon=True).start()

    def _serve_tcp(self, sock):
        """Questions and answers with their length in front (RFC 1035 4.2.2), sent in pieces as a slow network would."""
        def read(n):
            data = b""
            while len(data) < n:
                piece = sock.recv(n - len(data))
                if not piece:
                    raise OSError("closed")
                data += piece
            return data

        with sock:
            try:
                while True:
                    answer = self._answer(read(struct.unpack("!H", read(2))[0]))
                    self.n_tcp += 1
                    data = struct.pack("!H", len(answer)) + answer
                    for at in range(0, len(data), 700):
                        sock.sendall(data[at:at + 700])
            except OSError:
                return

    def _serve(self):
        while True:
            try:
                data, peer = self.sock.recvfrom(4096)
            except OSError:
                return
            if len(data) > 12 and not self.is_silent:
                try:
                    answer = self._answer(data)
                    if self.truncates:
                        answer = answer[:2] + bytes([answer[2] | 0x02]) + answer[3:6] + b"\0\0" + answer[8:12] + data[12:]
                    self.sock.sendto(answer, peer)
                except OSError:
                    return

    def _answer(self, data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode().lower())
            at += 1 + data[at]
        end = at + 5
        kind = struct.unpack("!H", data[at + 1:at + 3])[0]
        name = ".".join(labels)
        with self.lock:
            self.questions.append((name, kind))
            known = name in self.names
            records = [record for record in self.names.get(name, ()) if record[0] == kind]
            rcode = self.broken if self.broken is not None else 0 if known else NXDOMAIN
        if rcode:
            records = []
        # RFC 1035 4.1: QR, RD, RA; the names of the records point at the question's.
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, len(records), 0, 0)
        body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", record[0], 1, record[1], len(record[2])) + record[2]
                        for record in records)
        return head + data[12:end] + body
