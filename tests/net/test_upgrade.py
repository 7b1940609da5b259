# SPDX-License-Identifier: Apache-2.0
"""Upgrades: tunnels, WebSockets, and offers that are not taken."""
import asyncio
import threading
import time

import pytest

from harness.backend import replying, text_response


def test_C_027_426_with_an_upgrade_field_is_an_ordinary_response(stand):
    backend = stand.backend(replying(
        b"HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n"))
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request()
        response = client.read_response()
        assert response.status == 426
        assert response.get("Upgrade") == "websocket"
        assert "upgrade" in response.tokens("Connection")


def test_C_028_an_h2c_offer_is_ignored(stand):
    backend = stand.backend()
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request(fields=[("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"),
                               ("HTTP2-Settings", "AAMAAABk")])
        response = client.read_response()
        assert response.status == 200 and response.version == "HTTP/1.1"
    for request in backend.requests:
        assert request.all("Upgrade") == [] and request.all("HTTP2-Settings") == []
        assert "upgrade" not in request.tokens("Connection")


def tunnel(wire):
    """Accepts an upgrade and then answers 4 bytes with 8."""
    request = wire.read_request()
    assert "upgrade" in request.tokens("Connection") and request.get("Upgrade") == "tcp"
    wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    while True:
        data = wire.read_exact(4)
        wire.send(data + b"\0\0\xff\0")


def test_C_030_a_post_upgrade_becomes_a_tunnel_that_outlives_the_http_timeouts(stand):
    backend = stand.backend(tunnel)
    proxy = stand.proxy(backend, listener={"timeouts": {"idle_ms": 300, "body_ms": 300, "header_ms": 300, "tunnel_ms": 20000}},
                        group={"timeouts": {"response_ms": 300, "idle_ms": 300}})
    client = stand.client()
    client.send(b"POST /exec HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    response = client.read_response("POST")
    assert response.status == 101 and response.get("Upgrade") == "tcp"
    client.send(b"\x00\x01\x02\xff")
    assert client.read_exact(8) == b"\x00\x01\x02\xff\0\0\xff\0"
    assert proxy.metrics().total("listener_active_tunnels") == 1
    time.sleep(1.2)
    client.send(b"more")
    assert client.read_exact(8) == b"more\0\0\xff\0"


def test_bytes_sent_with_the_upgrade_request_reach_the_tunnel(stand):
    backend = stand.backend(tunnel)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"GET /t HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nfast")
    assert client.read_response().status == 101
    assert client.read_exact(8) == b"fast\0\0\xff\0"


def test_an_idle_tunnel_ends_after_its_time(stand):
    backend = stand.backend(tunnel)
    stand.proxy(backend, listener={"timeouts": {"tunnel_ms": 400}})
    client = stand.client()
    client.send(b"GET /t HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    assert client.read_response().status == 101
    client.expect_end()


def test_a_tunnel_passes_half_closes_on(stand):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
        got = wire.read_to_end()
        wire.send(b"%d bytes" % len(got))

    backend = stand.backend(script)
    stand.proxy(backend)
    client = stand.client()
    client.send(b"GET /t HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
    assert client.read_response().status == 101
    client.send(b"x" * 300000)
    client.end_writing()
    assert client.read_to_end() == b"300000 bytes"


def test_a_refused_upgrade_is_an_ordinary_answer(stand):
    backend = stand.backend()
    backend.answer = lambda request: text_response(b"no", "403 Forbidden")
    stand.proxy(backend)
    client = stand.client()
    for _ in range(2):
        client.request(fields=[("Connection", "Upgrade"), ("Upgrade", "websocket")])
        assert client.read_response().status == 403


def test_an_upgrade_is_not_retried_nor_pooled(stand):
    backend = stand.backend(tunnel)
    stand.proxy(backend)
    for _ in range(2):
        client = stand.client()
        client.send(b"GET /t HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
        assert client.read_response().status == 101
        client.close()
    assert backend.n_connections == 2


def run_echo_server(port, stop):
    import websockets

    async def echo(socket):
        async for message in socket:
            await socket.send(message)

    async def main():
        async with websockets.serve(echo, "127.0.0.1", port, max_size=None, compression=None):
            while not stop.is_set():
                await asyncio.sleep(0.02)

    asyncio.run(main())


def test_real_websockets_echo_through(stand):
    import websockets

    from harness.ports import free_port
    from harness.process import wait_until
    from harness.stand import address_of
    from harness.wire import connect

    port, stop = free_port(), threading.Event()
    server = threading.Thread(target=run_echo_server, args=(port, stop), daemon=True)
    server.start()

    def listens():
        try:
            connect(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False

    assert wait_until(listens)
    proxy = stand.proxy({"ip": "127.0.0.1", "port": port})
    host, listen_port = address_of(proxy.config)

    async def one(number):
        async with websockets.connect(f"ws://{host}:{listen_port}/chat", max_size=None, compression=None) as socket:
            for size in (0, 1, 125, 126, 65535, 65536, 1 << 20):
                message = bytes([number]) * size
                await socket.send(message)
                assert await socket.recv() == message

    async def main():
        await asyncio.gather(*[one(number) for number in range(20)])

    asyncio.run(main())
    assert proxy.metrics().total("listener_upgrades_total") == 20
    stop.set()
    server.join()


@pytest.mark.parametrize("upgrade", ["", "Upgrade: h2c\r\n"])
def test_a_101_that_does_not_say_to_what_is_502(stand, upgrade):
    """RFC 9110 15.2.2: the server must say which protocols it switches to; h2c is none that was offered (C-028)."""
    backend = stand.backend(replying(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{upgrade}\r\n".encode()))
    stand.proxy(backend)
    client = stand.client()
    client.send(b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert client.read_response().status == 502
