# SPDX-License-Identifier: Apache-2.0
"""The windows that we open to HTTP/2 peers follow what a round trip delivers, and what waits for a slow reader (A7)."""
import threading
import time

import pytest
from hyperframe.frame import PingFrame, WindowUpdateFrame

from harness.far import far
from harness.h2client import H2Client, request
from harness.h2origin import H2Origin
from harness.process import wait_until
from harness.stand import address_of

KIB = 1024
STREAM, STREAM_MOST = 65535, 512 * KIB
CONNECTION_GROWTH = 3072 * KIB
TARGET, TARGET_MOST = 256 * KIB, 512 * KIB
PIECE = 16 * KIB


class Download:
    """An origin's answer of many pieces that watches the credit it is given."""

    def __init__(self, size):
        self.size, self.sent, self.widest = size, 0, 0
        self.credit = 0

    def __call__(self, stream):
        connection = stream.connection
        stream.head(200, [("content-length", str(self.size))])
        while self.sent < self.size:
            n = min(PIECE, self.size - self.sent)
            if not stream.send(b"x" * n, end=self.sent + n == self.size):
                return
            self.sent += n
            with connection.lock:
                if stream.number in connection.h2.streams:
                    self.credit = connection.h2.streams[stream.number].outbound_flow_control_window
            self.widest = max(self.widest, self.credit)


def h2c_front(stand, target):
    return stand.proxy(target, group={"protocol": "H2C", "outlier": {"consecutive_gateway_errors": 0}})


def test_A7_a_window_to_a_far_target_grows_by_what_a_round_trip_delivers(stand):
    download = Download(12_000_000)
    origin = H2Origin(download)
    stand.backends.append(origin)
    proxy = h2c_front(stand, {"ip": "127.0.0.1", "port": far(stand, origin.port)})
    assert len(stand.ask(target="/long").body) == download.size
    assert TARGET < download.widest <= TARGET_MOST
    assert sum(connection.n_pings for connection in origin.connections) >= 1
    assert proxy.metrics().total("worker_h2_window_growth_bytes") == 0, "a window ends with its stream"


def test_A7_a_short_answer_asks_a_target_for_no_sign(stand):
    origin = H2Origin(lambda stream: stream.answer(b"x" * 100_000))
    stand.backends.append(origin)
    h2c_front(stand, origin)
    for _ in range(3):
        assert len(stand.ask().body) == 100_000
    assert sum(connection.n_pings for connection in origin.connections) == 0


def test_A7_a_client_that_stops_reading_takes_the_window_of_its_target_back(stand):
    download = Download(100_000_000)
    origin = H2Origin(download)
    stand.backends.append(origin)
    proxy = h2c_front(stand, {"ip": "127.0.0.1", "port": far(stand, origin.port)})
    client = stand.client(timeout_s=60)
    client.request("GET", "/long")
    left = 12_000_000
    while left > 0:
        left -= len(client.sock.recv(1 << 20))
    assert download.widest > TARGET
    sent = 0
    until = time.monotonic() + 20
    while sent != download.sent and time.monotonic() < until:  # no more comes
        sent = download.sent
        time.sleep(0.5)
    # Beside the window: what the sockets on both sides hold.
    assert download.sent - (12_000_000 - left) < TARGET_MOST + 16_000_000

    def is_taken_back():
        client.sock.recv(1 << 16)
        return proxy.metrics().total("worker_h2_window_growth_bytes") == 0

    assert wait_until(is_taken_back, 30)
    client.close()


class Upload:
    """A request's body on a stream, as far as the windows let it."""

    def __init__(self, client):
        self.client, self.most = client, 0  # the largest credit at once, which is half a window or more
        self.stream = client.open(request("POST", "/"), end=False)
        self.seen = 0
        self.credit, self.connection, self.sent = STREAM, STREAM, 0

    def take_credit(self):
        for frame in self.client.frames[self.seen:]:
            if isinstance(frame, WindowUpdateFrame):
                if frame.stream_id == self.stream:
                    self.credit += frame.window_increment
                    self.most = max(self.most, frame.window_increment)
                elif frame.stream_id == 0:
                    self.connection += frame.window_increment
        self.seen = len(self.client.frames)

    def send(self, size, timeout_s=30):
        while size:
            self.take_credit()
            n = min(size, PIECE, self.credit, self.connection)
            if n == 0:
                if self.client.read_frame(timeout_s) is None:
                    return
                continue
            size -= n
            self.credit -= n
            self.sent += n
            self.connection -= n
            self.client.send(self.client.data_frame(self.stream, b"x" * n, end=size == 0))


def test_A7_the_window_of_a_far_client_grows_by_what_a_round_trip_delivers(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend)
    client = H2Client(("127.0.0.1", far(stand, address_of(proxy.config)[1])), timeout_s=60)
    stand.clients.append(client)
    upload = Upload(client)
    upload.send(5_000_000)
    assert client.read(upload.stream).status == 200
    assert len(backend.requests[0].body) == 5_000_000
    assert STREAM < upload.most < STREAM_MOST  # more at once than the first window was
    assert any(isinstance(frame, PingFrame) for frame in client.frames)


def test_A7_a_target_that_takes_nothing_keeps_the_window_of_its_client_small(stand):
    release = threading.Event()

    def script(wire):
        wire.read_request(body=False)
        release.wait(60)
        wire.read_exact(40_000_000)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    proxy = stand.proxy(stand.backend(script))
    client = H2Client(address_of(stand.proxies[0].config), timeout_s=60)
    stand.clients.append(client)
    upload = Upload(client)
    with pytest.raises(TimeoutError):
        upload.send(40_000_000, timeout_s=2)
    # What the sockets held was taken at once, so the windows may have grown meanwhile.
    assert upload.sent < 2 * STREAM_MOST + 16_000_000
    assert proxy.metrics().total("worker_h2_window_growth_bytes") <= CONNECTION_GROWTH
    release.set()
    client.close()
