# SPDX-License-Identifier: Apache-2.0
"""WebSocket frames by hand, and a client that has asked for a WebSocket."""
import base64
import hashlib
import os
import struct


def frame(payload, opcode=0x2, masked=False):
    head = bytes([0x80 | opcode])
    mask = 0x80 if masked else 0
    if len(payload) < 126:
        head += bytes([mask | len(payload)])
    else:
        head += bytes([mask | 126]) + struct.pack(">H", len(payload))
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + bytes(b ^ key[i % 4] for i, b in enumerate(payload))


def read_frame(wire):
    """(opcode, payload) of the next frame, unmasked."""
    first, second = wire.read_exact(2)
    length = second & 0x7F
    if length == 126:
        length = struct.unpack(">H", wire.read_exact(2))[0]
    key = wire.read_exact(4) if second & 0x80 else b"\0\0\0\0"
    payload = wire.read_exact(length)
    return first & 0x0F, bytes(b ^ key[i % 4] for i, b in enumerate(payload))


def accept_of(key):
    """What a server answers to a client's key."""
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def open_websocket(stand):
    client = stand.client()
    key = base64.b64encode(os.urandom(16)).decode()
    client.send(f"GET /ws HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    head = client.read_until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 "), head
    return client
