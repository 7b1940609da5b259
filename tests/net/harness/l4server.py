# SPDX-License-Identifier: Apache-2.0
"""The server behind the packet tier in tests: l4server.py NAME PORT ADDRESS... A connection takes lines: `who` answers
the name, `put N` takes N bytes and answers their SHA-256, `get N` sends N bytes and then their SHA-256. A datagram is
answered with the name and itself."""
import asyncio
import hashlib
import os
import sys


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            words = line.split()
            if words[0] == b"who":
                writer.write(NAME + b"\n")
            elif words[0] == b"put":
                digest, left = hashlib.sha256(), int(words[1])
                while left:
                    piece = await reader.read(min(left, 65536))
                    if not piece:
                        return
                    digest.update(piece)
                    left -= len(piece)
                writer.write(digest.hexdigest().encode() + b"\n")
            elif words[0] == b"get":
                digest, left, data = hashlib.sha256(), int(words[1]), os.urandom(65536)
                while left:
                    piece = data[:min(left, len(data))]
                    digest.update(piece)
                    writer.write(piece)
                    await writer.drain()
                    left -= len(piece)
                writer.write(digest.hexdigest().encode() + b"\n")
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


class Datagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.transport.sendto(NAME + b" " + data, addr)


async def main():
    loop = asyncio.get_running_loop()
    for address in sys.argv[3:]:
        await asyncio.start_server(serve, address, int(sys.argv[2]), backlog=1024)
        await loop.create_datagram_endpoint(Datagrams, local_addr=(address, int(sys.argv[2])))
    print("ready", flush=True)
    await asyncio.Event().wait()


NAME = sys.argv[1].encode()
asyncio.run(main())
