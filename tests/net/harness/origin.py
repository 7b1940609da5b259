# SPDX-License-Identifier: Apache-2.0
"""An origin with what pages ask for: /who, /fields, /bytes/N, /upload, /trickle with /arrived, /late, /events, /ws; anything
else is a page that has the backend's name as its title. It is a Backend's script, and keeps what tests want to know."""
import base64
import hashlib
import json
import struct
import threading
import time

from .backend import text_response

PATTERN = bytes(range(251))


class Origin:
    """What the pages ask for."""

    def __init__(self, backend):
        self.backend, self.cancelled, self.arrived = backend, threading.Event(), bytearray()
        self.last_event_ids, self.late, self.go = [], [], threading.Event()

    def __call__(self, wire):
        while (request := wire.read_request(body=False)) is not None:
            name, _, rest = request.target.partition("?")[0][1:].partition("/")
            answer = getattr(self, "answer_" + name, self.answer_name)(wire, request, rest)
            if answer is None:
                return
            wire.send(answer)

    def answer_name(self, wire, request, rest):
        wire.read_request_body(request)
        html = f"<!doctype html><title>{self.backend.name}</title><h1>{self.backend.name}</h1>".encode()
        return text_response(html, fields=[("Content-Type", "text/html"), ("Cache-Control", "no-store")])

    def answer_who(self, wire, request, rest):
        wire.read_request_body(request)
        return text_response(self.backend.name.encode(), fields=[("Cache-Control", "no-store")])

    def answer_late(self, wire, request, rest):
        self.late.append(rest)
        self.go.wait(30)
        return text_response(rest.encode())

    def answer_fields(self, wire, request, rest):
        return text_response(json.dumps(request.fields).encode())

    def answer_bytes(self, wire, request, rest):
        size = int(rest)
        wire.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nCache-Control: no-store\r\n\r\n".encode())
        block = PATTERN * 1000
        try:
            for start in range(0, size, len(block)):
                wire.send(block[:size - start])
        except OSError:
            self.cancelled.set()
            raise
        return b""

    def answer_upload(self, wire, request, rest):
        wire.read_request_body(request)
        told = {"length": len(request.body), "sha256": hashlib.sha256(request.body).hexdigest(), "chunked": request.is_chunked}
        return text_response(json.dumps(told).encode())

    def answer_trickle(self, wire, request, rest):
        """A body in chunks; what has come so far is told by /arrived."""
        while (size := int(wire.read_until(b"\r\n"), 16)) > 0:
            self.arrived += wire.read_exact(size)
            wire.read_exact(2)
        wire.read_exact(2)
        return text_response(bytes(self.arrived))

    def answer_arrived(self, wire, request, rest):
        return text_response(str(len(self.arrived)).encode(), fields=[("Cache-Control", "no-store")])

    def answer_events(self, wire, request, rest):
        """Three events, and the end; the browser comes back and says which it saw last."""
        seen = request.get("Last-Event-ID")
        self.last_event_ids.append(seen)
        first = int(seen or 0) + 1
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(first, first + 3):
            event = f"retry: 50\nid: {number}\ndata: {self.backend.name} {number}\n\n".encode()
            wire.send(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            time.sleep(0.05)
        return b"0\r\n\r\n"

    def answer_ws(self, wire, request, rest):
        """Echoes messages, whatever frames they come in, until the close frame."""
        key = request.get("Sec-WebSocket-Key").encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key).digest())
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        while True:
            first, size = wire.read_exact(2)
            size &= 0x7F
            if size >= 126:
                size = int.from_bytes(wire.read_exact(2 if size == 126 else 8), "big")
            mask, data = wire.read_exact(4), wire.read_exact(size)
            data = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
            wire.send(bytes([first]) + (struct.pack(">BQ", 127, size) if size > 65535 else
                                        struct.pack(">BH", 126, size) if size > 125 else bytes([size])) + data)
            if first & 0x0F == 8:
                return None
