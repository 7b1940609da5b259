# SPDX-License-Identifier: Apache-2.0
"""Clients that take an answer slowly or not at all (slowhttptest's slow read), and those that only seem to."""
import socket
import time

from harness.backend import text_response
from harness.process import wait_until
from harness.wire import Wire

LOG = {"file": "stdout", "format": "{reason}"}
BIG = 24 << 20  # more than the kernel's buffers of both connections hold


def narrow_client(stand, window=4096):
    """A client whose kernel takes a few KB of an answer, however long it does not read."""
    proxy = stand.proxies[0]
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    sock.settimeout(20)
    sock.connect(("127.0.0.1", proxy.config["load_balancers"][0]["listeners"][0]["port"]))
    wire = Wire(sock)
    stand.clients.append(wire)
    return wire


def was_cut(proxy, timeout_s=20):
    """Waits until the access log names a client that reads slowly."""
    return wait_until(lambda: "client-reads-slowly" in proxy.stdout, timeout_s)


def bytes_until_reset(wire):
    """What comes until the connection is reset; None when it ends in order."""
    got = 0
    try:
        while True:
            data = wire.sock.recv(1 << 20)
            if not data:
                return None
            got += len(data)
    except ConnectionResetError:
        return got


def test_an_answer_that_is_not_read_is_dropped_with_the_kernels_part_of_it(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"B" * BIG)
    proxy = stand.proxy(backend, listener={"timeouts": {"body_ms": 500}}, access_log=LOG)
    client = narrow_client(stand)
    client.request()
    assert was_cut(proxy)
    got = bytes_until_reset(client)
    assert got is not None, "a close in order leaves megabytes in the kernel for a peer that does not read"
    assert got < 1 << 20


def test_bytes_of_a_client_that_reads_nothing_win_no_time(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"B" * BIG)
    proxy = stand.proxy(backend, listener={"timeouts": {"body_ms": 500}}, access_log=LOG)
    client = narrow_client(stand)
    client.request()
    end = time.monotonic() + 20
    while not was_cut(proxy, 0.05) and time.monotonic() < end:
        try:
            client.send(b"\r\n")
        except OSError:
            break
        time.sleep(0.1)
    assert was_cut(proxy, 2)


def test_an_answer_read_below_the_minimum_rate_is_dropped(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"B" * BIG)
    proxy = stand.proxy(backend, listener={"limits": {"min_rate_bytes_per_s": 100000}}, access_log=LOG)
    client = narrow_client(stand)
    client.request()
    try:
        while not was_cut(proxy, 0.2):
            assert client.sock.recv(512)
    except ConnectionResetError:
        pass
    assert was_cut(proxy, 2)


def test_the_end_of_an_answer_waits_for_a_steady_reader(stand):
    # The rest is queued when the target is done; a client that makes progress gets it, though it takes longer than body_ms.
    body = b"E" * (5 << 20)

    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    stand.proxy(stand.backend(script), listener={"timeouts": {"body_ms": 400}})
    client = narrow_client(stand, 65536)
    client.request(version="1.0")
    got = bytearray()
    while data := client.sock.recv(200000):
        got += data
        if len(got) < len(body):
            time.sleep(0.05)
    assert got.endswith(b"\r\n\r\n" + body)


def test_a_connection_whose_answer_was_queued_stays_open_between_requests(stand):
    body = b"K" * (8 << 20)
    backend = stand.backend()
    backend.answer = lambda request: text_response(body if request.target == "/big" else b"small")
    stand.proxy(backend, listener={"timeouts": {"body_ms": 500}})
    client = narrow_client(stand, 65536)
    client.request(target="/big")
    time.sleep(0.3)
    assert client.read_response().body == body
    time.sleep(1.2)
    client.request(target="/small")
    assert client.read_response().body == b"small"
