#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets WebSocket clients of HTTP/1.1 meet a proxy's HTTP/2 side: each upgrade becomes an extended CONNECT (RFC 8441) on an
HTTP/2 connection of its own, and the frames pass as DATA, as far as the windows allow.
  h2bridge.py LISTEN-PORT PROXY-PORT [tls]"""
import asyncio
import base64
import hashlib
import ssl
import sys

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset, WindowUpdated
from h2.settings import SettingCodes

HOST = "127.0.0.1"


class Bridge:
    def __init__(self, client_in, client_out, proxy_in, proxy_out):
        self.client_in, self.client_out, self.proxy_in, self.proxy_out = client_in, client_out, proxy_in, proxy_out
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.settled, self.answered, self.window = asyncio.Event(), asyncio.get_running_loop().create_future(), asyncio.Event()

    def flush(self):
        self.proxy_out.write(self.h2.data_to_send())

    async def from_proxy(self):
        while data := await self.proxy_in.read(65536):
            for event in self.h2.receive_data(data):
                if isinstance(event, RemoteSettingsChanged):
                    self.settled.set()
                elif isinstance(event, ResponseReceived):
                    self.answered.set_result(dict(event.headers))
                elif isinstance(event, DataReceived):
                    self.client_out.write(event.data)
                    await self.client_out.drain()
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, (StreamEnded, StreamReset)):
                    self.flush()
                    return
                self.window.set()
            self.flush()

    async def from_client(self):
        while data := await self.client_in.read(65536):
            while data:
                room = min(self.h2.local_flow_control_window(1), self.h2.max_outbound_frame_size)
                if room == 0:
                    self.window.clear()
                    await self.window.wait()
                    continue
                self.h2.send_data(1, data[:room])
                data = data[room:]
                self.flush()
            await self.proxy_out.drain()
        self.h2.end_stream(1)
        self.flush()

    async def run(self):
        head = (await self.client_in.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        self.h2.initiate_connection()
        self.flush()
        reading = asyncio.create_task(self.from_proxy())
        await self.settled.wait()
        assert self.h2.remote_settings.get(SettingCodes.ENABLE_CONNECT_PROTOCOL) == 1, "no extended CONNECT offered"
        kept = [(name, value) for name, value in fields.items() if name.startswith("sec-websocket-") and name != "sec-websocket-key"]
        self.h2.send_headers(1, [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"),
                                 (":path", head[0].split(" ")[1]), (":authority", fields["host"]), *kept])
        self.flush()
        answer = await self.answered
        assert answer[":status"] == "200", answer
        accept = base64.b64encode(hashlib.sha1((fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        lines = [f"{name}: {value}" for name, value in answer.items() if name.startswith("sec-websocket-")]
        self.client_out.write("\r\n".join(["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                                           "Sec-WebSocket-Accept: " + accept.decode(), *lines, "", ""]).encode())
        writing = asyncio.create_task(self.from_client())
        await reading  # the proxy's end is the end of both
        writing.cancel()


async def serve(client_in, client_out, port, tls):
    proxy_out = None
    try:
        proxy_in, proxy_out = await asyncio.open_connection(HOST, port, ssl=tls)
        await Bridge(client_in, client_out, proxy_in, proxy_out).run()
    except (OSError, asyncio.IncompleteReadError):
        pass  # one side ended early: so does the other
    finally:
        for out in (client_out, proxy_out):
            if out:
                out.close()


async def main():
    listen, port, *more = sys.argv[1:]
    tls = None
    if more == ["tls"]:
        tls = ssl._create_unverified_context()
        tls.set_alpn_protocols(["h2"])
    server = await asyncio.start_server(lambda i, o: serve(i, o, int(port), tls), HOST, int(listen))
    await server.serve_forever()


asyncio.run(main())
