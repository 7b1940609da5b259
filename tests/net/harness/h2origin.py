# SPDX-License-Identifier: Apache-2.0
"""Scripted HTTP/2 backends, frame by frame on python3-h2. For each connection a thread reads; what a test wants done is
done by `origin.on_request(stream)`, called in a thread of its own when a request's head has come. A stream may be answered
from any thread. Nothing is validated on the way out, so that an origin may also misbehave."""
import socket
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame

from .backend import Backend

NO_ERROR, PROTOCOL_ERROR, REFUSED, CANCEL, ENHANCE_YOUR_CALM = 0, 1, 7, 8, 11


class Stream:
    """One request and the means to answer it."""

    def __init__(self, connection, number, fields):
        self.connection, self.number = connection, number
        self.fields = [(name.decode(), value.decode("latin-1")) for name, value in fields]
        self.body, self.trailers = bytearray(), None
        self.changed = threading.Condition(connection.lock)
        self.ended = False
        self.reset_code = None
        self.takes_body = connection.origin.takes_body  # gives credit for what it has read

    def get(self, name, default=None):
        return next((value for key, value in self.fields if key == name), default)

    @property
    def path(self):
        return self.get(":path")

    def wait(self, condition, timeout_s=30):
        """Until condition(self) holds; True when it does."""
        with self.changed:
            return self.changed.wait_for(lambda: condition(self), timeout_s)

    def read_body(self, timeout_s=30):
        assert self.wait(lambda stream: stream.ended or stream.reset_code is not None, timeout_s), "no end of the body"
        return self.body

    def give_credit(self):
        """From now on, and for what has come so far."""
        with self.connection.lock:
            self.takes_body = True
            self.connection.h2.acknowledge_received_data(len(self.body), self.number)
            self.connection.flush()

    def head(self, status=200, fields=(), end=False):
        self.connection.do(lambda h2c: h2c.send_headers(self.number, [(":status", str(status)), *fields], end_stream=end))

    def send(self, data, end=False):
        """Body bytes, as the windows allow; waits for credit."""
        data = bytes(data)
        while True:
            with self.changed:
                assert self.changed.wait_for(
                    lambda: not data or self.connection.is_closed or self.reset_code is not None or
                    self.connection.h2.local_flow_control_window(self.number) > 0, 30), "no credit"
                if self.connection.is_closed or self.reset_code is not None:
                    return False
                n = min(len(data), self.connection.h2.max_outbound_frame_size)
                if data:
                    n = min(n, self.connection.h2.local_flow_control_window(self.number))
                piece, data = data[:n], data[n:]
                self.connection.h2.send_data(self.number, piece, end_stream=end and not data)
                self.connection.flush()
            if not data:
                return True

    def end(self, trailers=None):
        if trailers is None:
            self.connection.do(lambda h2c: h2c.end_stream(self.number))
        else:
            self.connection.do(lambda h2c: h2c.send_headers(self.number, trailers, end_stream=True))

    def answer(self, body=b"ok", status=200, fields=(), trailers=None):
        self.head(status, fields, end=not body and trailers is None)
        if body:
            self.send(body, end=trailers is None)
        if trailers is not None:
            self.end(trailers)

    def reset(self, code=CANCEL):
        self.connection.do(lambda h2c: h2c.reset_stream(self.number, code))


class Connection:
    """One connection of an origin."""

    def __init__(self, origin, wire):
        self.origin, self.wire = origin, wire
        self.lock = threading.RLock()
        self.is_closed = False
        self.streams = {}
        self.n_pings = 0
        self.is_settled = False  # our last SETTINGS was acknowledged
        self.goaway_code = None
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False,
            validate_inbound_headers=True))

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            try:
                self.wire.sock.sendall(data)
            except OSError:
                self.is_closed = True

    def do(self, action):
        self.is_settled = False
        with self.lock:
            try:
                action(self.h2)
            except h2.exceptions.StreamClosedError:
                pass  # the proxy has reset it meanwhile: the test sees reset_code
            self.flush()

    def goaway(self, last=None, code=NO_ERROR):
        """Says that we leave; streams up to `last` are still answered."""
        last = max(self.streams, default=0) if last is None else last
        self.send_raw(hyperframe.frame.GoAwayFrame(0, last_stream_id=last, error_code=code).serialize())

    def send_raw(self, data):
        """Bytes as they are, such as frames that h2 would not make."""
        with self.lock:
            self.wire.sock.sendall(data)

    def close(self):
        self.is_closed = True
        try:
            self.wire.sock.shutdown(socket.SHUT_RDWR)  # a thread may be reading
        except OSError:
            pass

    def run(self):
        with self.lock:
            if self.origin.settings:
                self.h2.local_settings = h2.settings.Settings(client=False, initial_values=self.origin.settings)
            self.h2.initiate_connection()
            self.flush()
        while not self.is_closed:
            data = self.wire.sock.recv(65536)
            if not data:
                break
            with self.lock:
                if self.is_closed:
                    break
                for event in self.h2.receive_data(data):
                    self.take(event)
                self.flush()
        with self.lock:
            self.is_closed = True
            for stream in self.streams.values():
                stream.changed.notify_all()

    def take(self, event):
        stream = self.streams.get(getattr(event, "stream_id", 0))
        if isinstance(event, h2.events.RequestReceived):
            stream = self.streams[event.stream_id] = Stream(self, event.stream_id, event.headers)
            with self.origin.lock:
                self.origin.requests.append(stream)
            threading.Thread(target=self.origin.handle, args=(stream,), daemon=True).start()
        elif isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if stream.takes_body and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            stream.trailers = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = True
        elif isinstance(event, h2.events.StreamReset):
            if stream:
                stream.reset_code = event.error_code
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.is_settled = True
        elif isinstance(event, h2.events.PingReceived):
            self.n_pings += 1
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway_code = event.error_code
        for each in self.streams.values():
            each.changed.notify_all()


class H2Origin(Backend):
    """`on_request(stream)` answers; the default waits for the end of the request and answers with the origin's name."""

    def __init__(self, on_request=None, name="backend", settings=None, context=None, takes_body=True, **options):
        self.on_request = on_request or self.answer_by_name
        self.settings = settings or {}
        self.context = context  # of TLS; None: plain
        self.takes_body = takes_body
        self.connections = []
        super().__init__(self.speak, name=name, **options)

    def answer_by_name(self, stream):
        stream.read_body()
        stream.answer(self.name.encode(), fields=[("x-backend", self.name)])

    def handle(self, stream):
        try:
            self.on_request(stream)
        except (OSError, h2.exceptions.ProtocolError):
            pass  # the connection ended meanwhile
        except Exception as error:  # noqa: BLE001: what went wrong in a thread must reach the test
            self.errors.append(error)

    def speak(self, wire):
        if self.context:
            wire.sock = self.context.wrap_socket(wire.sock, server_side=True)
        wire.sock.settimeout(None)
        connection = Connection(self, wire)
        with self.lock:
            self.connections.append(connection)
        try:
            connection.run()
        except h2.exceptions.ProtocolError as error:
            self.errors.append(error)  # the proxy must never break the protocol
            connection.flush()
