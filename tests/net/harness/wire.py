# SPDX-License-Identifier: Apache-2.0
"""HTTP/1 on a socket, byte by byte: what a test wants to send is sent as it is, what it reads is read strictly (lines end in
CRLF, one framing), so that a proxy's sloppiness is not forgiven by a friendly library. A Wire serves both sides:
tests use it as client, backends for the connections they accept."""
import re
import socket
import struct

TIMEOUT_S = 20  # generous: sanitized builds on a loaded machine; no test waits for it when things work


class WireError(AssertionError):
    """The peer sent something that is not HTTP/1, or ended too early."""


class Closed(WireError):
    """The connection ended where more was expected."""


class Message:
    """A request or response: `start` line, `fields` as (name, value) pairs in order, `body`, `trailers`; `head` is raw."""

    def __init__(self, head):
        self.head = head
        if not head.endswith(b"\r\n\r\n"):
            raise WireError(f"no complete head: {head!r}")
        lines = head[:-4].decode("latin-1").split("\r\n")
        for line in lines:
            if "\n" in line or "\r" in line or "\0" in line:
                raise WireError(f"a bare CR, LF or NUL in {line!r}")
        self.start = lines[0]
        self.fields = []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name):
                raise WireError(f"not a field line: {line!r}")
            self.fields.append((name, value.strip(" \t")))
        self.body = b""
        self.trailers = []

    def all(self, name):
        """Every value of a field, whatever the case of its name."""
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name):
        """The one value of a field; None when absent; more than one is an error."""
        values = self.all(name)
        if len(values) > 1:
            raise WireError(f"{name} came {len(values)} times: {values}")
        return values[0] if values else None

    def tokens(self, name):
        """The lower-case elements of a comma-separated field."""
        return [token.strip().lower() for value in self.all(name) for token in value.split(",") if token.strip()]

    @property
    def is_chunked(self):
        return self.get("Transfer-Encoding") is not None

    @property
    def length(self):
        value = self.get("Content-Length")
        if value is not None and not re.fullmatch("[0-9]+", value):
            raise WireError(f"Content-Length: {value!r}")
        return None if value is None else int(value)


class Request(Message):
    def __init__(self, head):
        super().__init__(head)
        match = re.fullmatch(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (\S+) (HTTP/1\.[01])", self.start)
        if not match:
            raise WireError(f"not a request line: {self.start!r}")
        self.method, self.target, self.version = match.groups()
        if self.is_chunked and self.length is not None:
            raise WireError(f"a request with two framings: {head!r}")


class Response(Message):
    def __init__(self, head):
        super().__init__(head)
        match = re.fullmatch(r"(HTTP/1\.[01]) ([1-5][0-9][0-9])(?: (.*))?", self.start)
        if not match:
            raise WireError(f"not a status line: {self.start!r}")
        self.version, self.status, self.reason = match[1], int(match[2]), match[3] or ""
        self.interim = []  # the 1xx responses before this one
        if self.is_chunked and self.length is not None:
            raise WireError(f"a response with two framings: {head!r}")

    @property
    def closes(self):
        return "close" in self.tokens("Connection")


class Wire:
    """One connection."""

    def __init__(self, sock, timeout_s=TIMEOUT_S):
        self.sock = sock
        self.sock.settimeout(timeout_s)
        self.pending = bytearray()
        self.received = bytearray()

    # Sending

    def send(self, data):
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def request(self, method="GET", target="/", fields=(), body=None, version="1.1", host="t.example"):
        """Sends a plain request; `fields` are pairs; a body gets a Content-Length."""
        lines = [f"{method} {target} HTTP/{version}"] + ([f"Host: {host}"] if host is not None else [])
        lines += [f"{name}: {value}" for name, value in fields]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))

    def end_writing(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass

    def reset(self):
        """Ends the connection with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # Reading

    def fill(self):
        """Reads once; False at the end of the stream."""
        data = self.sock.recv(65536)
        self.pending += data
        self.received += data
        return bool(data)

    @property
    def seen(self):
        """Every byte that was read."""
        return bytes(self.received)

    def take(self, n):
        """The first n bytes of what is pending."""
        data = bytes(self.pending[:n])
        del self.pending[:n]
        return data

    def read_until(self, mark, limit=1 << 20):
        while mark not in self.pending:
            if len(self.pending) > limit:
                raise WireError(f"no {mark!r} within {limit} bytes")
            if not self.fill():
                raise Closed(f"closed before {mark!r}; had {bytes(self.pending[:200])!r}")
        return self.take(self.pending.index(mark) + len(mark))

    def read_exact(self, n):
        while len(self.pending) < n:
            if not self.fill():
                raise Closed(f"closed {n - len(self.pending)} bytes too early")
        return self.take(n)

    def read_to_end(self):
        try:
            while self.fill():
                pass
        except ConnectionResetError:
            pass
        return self.take(len(self.pending))

    def read_chunked(self, message):
        """A chunked body with its trailers into `message`; returns the sizes of the chunks."""
        sizes = []
        while True:
            line = self.read_until(b"\r\n")
            if not re.fullmatch(rb"[0-9a-fA-F]{1,16}\r\n", line):
                raise WireError(f"not a clean chunk size: {line!r}")
            size = int(line, 16)
            sizes.append(size)
            if size == 0:
                break
            message.body += self.read_exact(size)
            if self.read_exact(2) != b"\r\n":
                raise WireError("chunk data without CRLF behind it")
        section = self.read_until(b"\r\n")
        while section != b"\r\n" and not section.endswith(b"\r\n\r\n"):
            section += self.read_until(b"\r\n")
        for line in section.decode("latin-1").split("\r\n"):
            if line:
                name, _, value = line.partition(":")
                message.trailers.append((name, value.strip()))
        return sizes

    def read_request(self, body=True):
        """The next request, with its body unless told otherwise; None when the client closed instead."""
        try:
            while not self.pending:
                if not self.fill():
                    return None
        except ConnectionResetError:
            return None
        request = Request(self.read_until(b"\r\n\r\n"))
        if body:
            self.read_request_body(request)
        return request

    def read_request_body(self, request):
        if request.is_chunked:
            self.read_chunked(request)
        elif request.length:
            request.body = self.read_exact(request.length)

    def read_response(self, method="GET"):
        """The next final response with its body; interim ones are in its `interim`."""
        interim = []
        while True:
            response = self.read_response_head()
            if response.status >= 200 or response.status == 101:
                break
            interim.append(response)
        response.interim = interim
        if method == "HEAD" or response.status in (101, 204, 304):
            return response
        if response.is_chunked:
            self.read_chunked(response)
        elif response.length is not None:
            response.body = self.read_exact(response.length)
        else:
            response.body = self.read_to_end()
        return response

    def read_response_head(self):
        return Response(self.read_until(b"\r\n\r\n"))

    def expect_end(self):
        """The peer must close now, having sent nothing more; a reset counts as closing."""
        rest = self.read_to_end()
        if rest:
            raise WireError(f"more bytes where the end was expected: {rest[:200]!r}")

    def is_quiet(self, for_s=0.3):
        """Nothing arrives and nobody closes for a while."""
        if self.pending:
            return False
        timeout = self.sock.gettimeout()
        self.sock.settimeout(for_s)
        try:
            self.fill()
            return False
        except (socket.timeout, TimeoutError):
            return True
        finally:
            self.sock.settimeout(timeout)


def connect(address, timeout_s=TIMEOUT_S):
    """A Wire to (host, port) or to a unix socket's path."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout_s)
        sock.connect(address)
    else:
        sock = socket.create_connection(address, timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Wire(sock, timeout_s)
