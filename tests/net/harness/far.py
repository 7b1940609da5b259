# SPDX-License-Identifier: Apache-2.0
"""A long way: a process that relays connections to a port of this machine with a delay in each direction, and has as much
under way as comes. Run as `-m harness.far LISTEN_PORT PORT DELAY_S`."""
import asyncio
import collections
import os
import socket
import sys

from .ports import free_port
from .process import wait_until
from .wire import connect


async def relay(reader, writer, delay_s):
    under_way = collections.deque()

    def arrive():
        data = under_way.popleft()
        if writer.is_closing():
            return
        if data:
            writer.write(data)
        else:
            writer.close()

    data = b"?"
    while data:
        try:
            data = await reader.read(1 << 18)
        except OSError:
            data = b""
        under_way.append(data)
        asyncio.get_running_loop().call_later(delay_s, arrive)


async def main(listen_port, port, delay_s):
    async def on_connection(near_reader, near_writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        for writer in (near_writer, far_writer):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(relay(near_reader, far_writer, delay_s), relay(far_reader, near_writer, delay_s))

    server = await asyncio.start_server(on_connection, "127.0.0.1", listen_port, limit=1 << 20)
    await server.serve_forever()


def far(stand, port, delay_s=0.04):
    """The port by which a port of this machine is reached over a long way, until the stand ends."""
    listen_port = free_port()
    stand.run([sys.executable, "-m", "harness.far", str(listen_port), str(port), str(delay_s)],
              env={"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))})

    def listens():
        try:
            connect(("127.0.0.1", listen_port)).close()
            return True
        except OSError:
            return False

    assert wait_until(listens)
    return listen_port


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
