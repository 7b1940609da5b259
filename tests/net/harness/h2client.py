# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 client that sends what a test says and nothing on its own but the acknowledgement of SETTINGS: frames are made and
read with hyperframe, header lists with hpack, so that a test can say wrong things and sees every frame that comes."""
import socket
import time

import hpack
from hyperframe.frame import (DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame,
                              WindowUpdateFrame)

from .wire import Closed, connect

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED = 0, 1, 2, 3, 5
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11
INITIAL_WINDOW = SettingsFrame.INITIAL_WINDOW_SIZE


def request(method="GET", path="/", authority="t.example", scheme="http", fields=()):
    return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *fields]


class Answer:
    """What came on one stream: `heads` (interim ones first), `body`, `trailers`, how it ended."""

    def __init__(self):
        self.heads, self.body, self.trailers = [], b"", None
        self.ended, self.reset = False, None

    @property
    def status(self):
        return int(dict(self.heads[-1])[":status"])

    def get(self, name):
        values = [value for key, value in self.heads[-1] if key == name]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None


class H2Client:
    def __init__(self, address, timeout_s=20, settings=None, window=2**20, sock=None):
        self.sock = sock or connect(address, timeout_s).sock
        self.timeout_s = timeout_s
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.frames, self.answers = [], {}
        self.goaways, self.settings, self.pongs = [], {}, 0
        self.buffer, self.is_closed, self.next_id = b"", False, 1
        self.auto_window = True  # give back what DATA took
        self.sock.sendall(PREFACE + SettingsFrame(0, settings=settings or {}).serialize())
        if window:
            self.send(WindowUpdateFrame(0, window))

    # Sending

    def send(self, *frames):
        self.send_raw(b"".join(frame.serialize() for frame in frames))

    def send_raw(self, data):
        self.sock.settimeout(self.timeout_s)
        self.sock.sendall(data)

    def headers_frame(self, stream, fields, end=True):
        frame = HeadersFrame(stream, self.encoder.encode(fields))
        frame.flags.add("END_HEADERS")
        if end:
            frame.flags.add("END_STREAM")
        return frame

    def data_frame(self, stream, data, end=False):
        frame = DataFrame(stream, data)
        if end:
            frame.flags.add("END_STREAM")
        return frame

    def open(self, fields=None, end=True, stream=None):
        """Begins a stream and returns its number."""
        stream = stream or self.next_id
        self.next_id = stream + 2
        self.answers[stream] = Answer()
        self.send(self.headers_frame(stream, fields or request(), end))
        return stream

    def reset(self, stream, code=CANCEL):
        self.send(RstStreamFrame(stream, code))

    # Receiving

    def _take(self, frame):
        self.frames.append(frame)
        answer = self.answers.setdefault(frame.stream_id, Answer()) if frame.stream_id else None
        if isinstance(frame, SettingsFrame):
            if "ACK" not in frame.flags:
                self.settings.update(frame.settings)
                self.send(SettingsFrame(0, flags=["ACK"]))
        elif isinstance(frame, HeadersFrame):
            assert "END_HEADERS" in frame.flags, "the tests' heads fit one frame"
            fields = self.decoder.decode(frame.data)
            if not answer.heads or dict(answer.heads[-1])[":status"].startswith("1"):
                answer.heads.append(fields)
            else:
                answer.trailers = fields
        elif isinstance(frame, DataFrame):
            answer.body += frame.data
            if frame.flow_controlled_length and self.auto_window:
                self.send(WindowUpdateFrame(0, frame.flow_controlled_length))
                if "END_STREAM" not in frame.flags:
                    self.send(WindowUpdateFrame(frame.stream_id, frame.flow_controlled_length))
        elif isinstance(frame, RstStreamFrame):
            answer.reset = frame.error_code
        elif isinstance(frame, GoAwayFrame):
            self.goaways.append(frame)
        elif isinstance(frame, PingFrame):
            if "ACK" in frame.flags:
                self.pongs += 1
            else:
                self.send(PingFrame(0, frame.opaque_data, flags=["ACK"]))
        if answer is not None and "END_STREAM" in frame.flags:
            answer.ended = True

    def read_frame(self, timeout_s=None):
        """The next frame; None when the connection has ended, TimeoutError when nothing comes."""
        until = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            if len(self.buffer) >= 9:
                frame, length = Frame.parse_frame_header(memoryview(self.buffer[:9]))
                if len(self.buffer) >= 9 + length:
                    frame.parse_body(memoryview(self.buffer[9:9 + length]))
                    self.buffer = self.buffer[9 + length:]
                    try:
                        self._take(frame)
                    except (BrokenPipeError, ConnectionResetError):
                        pass  # what we would have answered is of no use any more
                    return frame
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(1 << 16)
            except socket.timeout:
                raise TimeoutError from None
            except ConnectionResetError:
                data = b""
            if not data:
                self.is_closed = True
                return None
            self.buffer += data

    def wait(self, condition, timeout_s=None):
        """Reads frames until the condition holds."""
        until = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while not condition():
            if self.read_frame(max(0, until - time.monotonic())) is None:
                assert condition(), "the connection ended"

    def read(self, stream, timeout_s=None):
        """The whole answer of a stream, or as much as came before it was reset."""
        answer = self.answers[stream]
        self.wait(lambda: answer.ended or answer.reset is not None, timeout_s)
        return answer

    def read_to_end(self, timeout_s=None):
        until = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while self.read_frame(max(0, until - time.monotonic())) is not None:
            pass

    def drain(self, seconds):
        """Reads what comes within a time."""
        until = time.monotonic() + seconds
        try:
            while self.read_frame(max(0, until - time.monotonic())) is not None:
                pass
        except TimeoutError:
            pass

    def ask(self, fields=None, body=None, **options):
        """One request and its answer."""
        stream = self.open(fields, end=body is None, **options)
        if body is not None:
            self.send_body(stream, body)
        return self.read(stream)

    def send_body(self, stream, body, end=True):
        """A body as far as the windows that SETTINGS promise; the test sees to larger ones."""
        for at in range(0, len(body), 16384):
            self.send(self.data_frame(stream, body[at:at + 16384], end and at + 16384 >= len(body)))
        if not body and end:
            self.send(self.data_frame(stream, b"", True))

    def close(self):
        self.sock.close()


__all__ = ["Answer", "Closed", "H2Client", "request"]
