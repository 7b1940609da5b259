# SPDX-License-Identifier: Apache-2.0
"""How HTTP/2 connections end: GOAWAY in two steps (C-057), drains, tunnels by extended CONNECT (RFC 8441)."""
import base64
import signal
import threading
import time

from hyperframe.frame import SettingsFrame

from harness.backend import text_response
from harness.h2client import NO_ERROR, PROTOCOL_ERROR, H2Client, request
from harness.process import wait_until
from harness.stand import address_of

EVERYTHING = 2**31 - 1


def h2(stand, **options):
    client = H2Client(address_of(stand.proxies[0].config), **options)
    stand.clients.append(client)
    return client


def gate(path="/slow"):
    """A script that answers requests for `path` only once the event is set."""
    event = threading.Event()

    def script(wire):
        while (seen := wire.read_request()) is not None:
            if seen.target == path:
                event.wait(30)
            wire.send(text_response(seen.target.encode()))

    return event, script


def see_the_connection_out(client, event, slow):
    """The notice refuses nothing; what comes behind it is served; then the real last stream, and the end."""
    client.wait(lambda: client.goaways)
    assert client.goaways[0].last_stream_id == EVERYTHING and client.goaways[0].error_code == NO_ERROR
    between = client.open(request(path="/between"))
    client.wait(lambda: len(client.goaways) == 2)
    assert slow <= client.goaways[1].last_stream_id <= between and client.goaways[1].error_code == NO_ERROR
    if client.goaways[1].last_stream_id == between:
        assert client.read(between).body == b"/between"
    event.set()
    assert client.read(slow).body == b"/slow"
    client.read_to_end()


def test_C_057_a_process_that_ends_says_so_twice_and_serves_what_it_has(stand):
    event, script = gate()
    proxy = stand.proxy(stand.backend(script), shutdown_s=20)
    client = h2(stand)
    slow = client.open(request(path="/slow"))
    assert client.ask(request(path="/fast")).body == b"/fast"
    proxy.signal(signal.SIGTERM)
    see_the_connection_out(client, event, slow)
    assert proxy.process.wait(20) == 0


def test_C_057_lame_ducks_say_so_at_once(stand):
    event, script = gate()
    proxy = stand.proxy(stand.backend(script), shutdown_s=20, lame_duck_s=2)
    client, idle = h2(stand), h2(stand)
    idle.wait(lambda: idle.settings)
    slow = client.open(request(path="/slow"))
    client.drain(0.1)
    proxy.signal(signal.SIGTERM)
    see_the_connection_out(client, event, slow)
    idle.read_to_end()
    assert [goaway.last_stream_id for goaway in idle.goaways] == [EVERYTHING, 0]
    assert proxy.process.wait(20) == 0


def test_C_057_a_listener_that_leaves_the_configuration_says_so(stand):
    event, script = gate()
    config = stand.config(stand.backend(script))
    proxy = stand.serve(config)
    client = h2(stand)
    slow = client.open(request(path="/slow"))
    client.drain(0.1)
    other = stand.config(stand.backends[0])
    other["admin"] = config["admin"]
    proxy.reload(other)
    see_the_connection_out(client, event, slow)


def test_C_057_no_request_fails_while_the_process_ends(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, shutdown_s=20, lame_duck_s=1)
    failed, served, stop = [], [0], threading.Event()

    def run():
        while not stop.is_set():
            try:
                client = H2Client(address_of(proxy.config))
            except OSError:
                return
            try:
                while not stop.is_set() and len(client.goaways) < 2:
                    stream = client.open()
                    answer = client.answers[stream]
                    while not answer.ended and answer.reset is None:
                        if client.read_frame() is None:
                            break
                    refused = client.goaways and stream > client.goaways[-1].last_stream_id
                    if answer.ended and answer.status == 200:
                        served[0] += 1
                    elif not refused:
                        failed.append((stream, answer.reset, [goaway.last_stream_id for goaway in client.goaways]))
                    time.sleep(0.005)
            except OSError as error:
                failed.append(error)
            finally:
                client.close()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    proxy.signal(signal.SIGTERM)
    assert proxy.process.wait(30) == 0
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed and served[0] > 50


def test_E1_a_target_that_is_removed_cuts_streams_at_its_deadline(stand):
    event, script = gate()
    config = stand.config(stand.backend(script), group={"deregistration_delay_s": 0.5})
    proxy = stand.serve(config)
    client = h2(stand)
    slow = client.open(request(path="/slow"))
    client.drain(0.2)
    other = {**config, "target_groups": [{**config["target_groups"][0], "targets": [stand.backend().target]}]}
    proxy.reload(other)
    assert client.read(slow).status == 503
    assert client.ask().status == 200
    event.set()


def echo(wire):
    seen = wire.read_request()
    assert seen.method == "GET" and seen.get("Upgrade") == "websocket" and "upgrade" in seen.tokens("Connection")
    assert len(base64.b64decode(seen.get("Sec-WebSocket-Key"))) == 16 and seen.get("Sec-WebSocket-Version") == "13"
    assert seen.length is None and not seen.is_chunked
    wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n")
    while data := wire.sock.recv(65536):
        wire.send(data)


def connect_request(path="/chat", protocol="websocket"):
    return [(":method", "CONNECT"), (":protocol", protocol), (":scheme", "http"), (":authority", "t.example"),
            (":path", path), ("sec-websocket-version", "13")]


def test_A8_an_extended_connect_becomes_an_upgrade(stand):
    backend = stand.backend(echo)
    proxy = stand.proxy(backend)
    client = h2(stand)
    client.wait(lambda: client.settings.get(SettingsFrame.ENABLE_CONNECT_PROTOCOL) == 1)
    stream = client.open(connect_request(), end=False)
    answer = client.answers[stream]
    client.wait(lambda: answer.heads)
    assert answer.status == 200 and answer.get("sec-websocket-protocol") == "chat"
    assert answer.get("upgrade") is None and answer.get("sec-websocket-accept") is None
    frame = b"\x82\x84\0\0\0\0abcd"
    for n in range(3):
        client.send(client.data_frame(stream, frame))
        client.wait(lambda n=n: answer.body == frame * (n + 1))
    big = b"\x82\xff" + (300000).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 300000
    sent = 0
    while sent < len(big):
        client.send(client.data_frame(stream, big[sent:sent + 16000]))
        sent += 16000
        client.wait(lambda: len(answer.body) >= min(sent, len(big)) - 16000)  # within the window
    client.wait(lambda: answer.body == frame * 3 + big)
    assert proxy.metrics().total("listener_active_tunnels") == 1
    assert backend.requests[0].target == "/chat" and backend.requests[0].get("Host") == "t.example"
    client.send(client.data_frame(stream, b"", True))
    client.wait(lambda: answer.ended)
    assert wait_until(lambda: proxy.metrics().total("listener_active_tunnels") == 0)
    assert not client.goaways


def test_A8_either_side_may_break_a_tunnel(stand):
    ended = threading.Event()

    def script(wire):
        seen = wire.read_request()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        if seen.target == "/breaks":
            return
        try:
            while wire.sock.recv(100):
                pass
        except OSError:
            pass
        ended.set()

    proxy = stand.proxy(stand.backend(script))
    client = h2(stand)
    stream = client.open(connect_request("/kept"), end=False)
    client.wait(lambda: client.answers[stream].heads)
    client.reset(stream)
    assert ended.wait(20)
    stream = client.open(connect_request("/breaks"), end=False)
    client.wait(lambda: client.answers[stream].ended or client.answers[stream].reset is not None)
    assert client.answers[stream].status == 200
    client.send(client.data_frame(stream, b"", True))
    assert wait_until(lambda: proxy.metrics().total("listener_active_tunnels") == 0)


def test_A8_a_connect_that_no_target_takes_fails(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = h2(stand)
    assert client.ask([(":method", "CONNECT"), (":authority", "t.example:443")]).status == 501
    stream = client.open(connect_request(), end=False)
    answer = client.read(stream)
    assert answer.status == 502 and answer.ended, "a 200 would say that the tunnel is there"
    client.drain(1.5)
    assert answer.reset in (None, NO_ERROR)
    backend.answer = lambda seen: text_response(b"no", "403 Forbidden")
    answer = client.read(client.open(connect_request(), end=False))
    assert answer.status == 403 and answer.body == b"no"
    assert client.ask([(":method", "GET"), (":protocol", "websocket"), *request()[1:]]).reset == PROTOCOL_ERROR


