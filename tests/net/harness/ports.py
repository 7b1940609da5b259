# SPDX-License-Identifier: Apache-2.0
"""Free loopback ports. They come from below the kernel's range for outgoing connections, so no connection takes one by
chance, and each is claimed by an abstract unix socket until this process ends, so tests that run at the same time, in
this run or another, never share one."""
import os
import random
import socket

FIRST, LAST = 12000, 31999
_claims = {}
_next = random.Random(os.getpid()).randrange(FIRST, LAST)


def _claim(port):
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0isobar-test-port-{port}")
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _claims[port] = claim
    return True


def free_port():
    """A port of 127.0.0.1 that nobody listens on and no other test gets."""
    global _next
    for _ in range(LAST - FIRST):
        _next = FIRST if _next >= LAST else _next + 1
        if _claim(_next):
            return _next
    raise RuntimeError("no free port")
