# SPDX-License-Identifier: Apache-2.0
"""What HTTP/2 lets a client do cheaply and often: bounded, counted by name, and of no harm to others."""
import struct
import time

import pytest
from hyperframe.frame import (ContinuationFrame, DataFrame, HeadersFrame, PingFrame, PriorityFrame, RstStreamFrame,
                              SettingsFrame, WindowUpdateFrame)

from harness.backend import text_response
from harness.h2client import ENHANCE_YOUR_CALM, H2Client, request
from harness.process import is_sanitized, wait_until
from harness.stand import address_of


def h2(stand, **options):
    client = H2Client(address_of(stand.proxies[0].config), **options)
    stand.clients.append(client)
    return client


def floods(proxy, kind):
    return proxy.metrics().total("listener_h2_floods_total", kind=kind)


def told_to_calm_down(client):
    client.read_to_end()
    return bool(client.goaways) and client.goaways[-1].error_code == ENHANCE_YOUR_CALM


def push(client, data):
    """Sends as much as the other side takes."""
    try:
        client.send_raw(data)
    except OSError:
        pass


@pytest.mark.parametrize("how", ["reset", "window_overflow", "window_of_0", "data_behind_the_end"])
def test_C_051_rapid_resets_end_the_connection(stand, how):
    """Streams that the client resets, or that it makes us reset, as fast as it can."""
    wrong = {
        "reset": lambda stream: RstStreamFrame(stream, 8).serialize(),
        "window_overflow": lambda stream: WindowUpdateFrame(stream, 2**31 - 1).serialize() * 2,
        "window_of_0": lambda stream: b"\0\0\4\x08\0" + struct.pack(">II", stream, 0),
        "data_behind_the_end": lambda stream: DataFrame(stream, b"x").serialize(),
    }[how]
    backend = stand.backend(lambda wire: (wire.read_request(), time.sleep(1)))
    proxy = stand.proxy(backend)
    client = h2(stand)
    push(client, b"".join(client.headers_frame(stream, request(path="/r")).serialize() + wrong(stream)
                          for stream in range(1, 40000, 2)))
    client.read_to_end()
    assert client.goaways
    assert max(goaway.last_stream_id for goaway in client.goaways) <= 2 * 1000, "a bounded number of requests"
    if how in ("reset", "window_overflow"):
        assert client.goaways[-1].error_code == ENHANCE_YOUR_CALM and floods(proxy, "resets") == 1
    assert backend.n_connections <= 1200


def test_C_051_a_client_that_resets_now_and_then_is_not_punished(stand):
    stand.proxy(stand.backend())
    client = h2(stand)
    for _ in range(60):
        client.reset(client.open())
        assert client.ask().status == 200
        time.sleep(1 / 30)
    assert not client.goaways


@pytest.mark.parametrize("kind,frame", [
    ("pings", PingFrame(0, b"12345678").serialize()),
    ("settings", SettingsFrame(0).serialize()),
    ("priorities", PriorityFrame(3, depends_on=1).serialize()),
])
def test_C_053_floods_of_control_frames_end_the_connection(stand, kind, frame):
    proxy = stand.proxy(stand.backend())
    client = h2(stand)
    before = proxy.rss_kb()
    push(client, frame * 50000)
    assert told_to_calm_down(client)
    assert floods(proxy, kind) == 1
    assert proxy.rss_kb() < before + 8192
    assert stand.ask().status == 200


def test_C_053_empty_data_frames_end_the_connection(stand):
    proxy = stand.proxy(stand.backend())
    client = h2(stand)
    stream = client.open(request("POST"), end=False)
    push(client, DataFrame(stream, b"").serialize() * 50000)
    assert told_to_calm_down(client)
    assert floods(proxy, "empty_data") == 1


def test_a_flood_of_continuations_ends_the_connection(stand):
    proxy = stand.proxy(stand.backend())
    client = h2(stand)
    head = HeadersFrame(1, client.encoder.encode(request()), flags=["END_STREAM"])
    push(client, head.serialize() + ContinuationFrame(1, b"").serialize() * 10000)
    assert told_to_calm_down(client)
    assert floods(proxy, "continuations") == 1


def test_a_header_list_that_unpacks_to_much_ends_the_connection(stand):
    proxy = stand.proxy(stand.backend(), listener={"limits": {"header_bytes": 4096, "uri_bytes": 3500}})
    client = h2(stand)
    block = client.encoder.encode(request(fields=[("x-bomb", "a" * 3000)]))
    assert client.encoder.header_table.dynamic_entries[0] == (b"x-bomb", b"a" * 3000)
    block += b"\xbe" * 12000  # the newest entry of the table, again and again
    frame = HeadersFrame(1, block, flags=["END_HEADERS", "END_STREAM"])
    before = proxy.rss_kb()
    client.send(frame)
    assert told_to_calm_down(client)
    assert floods(proxy, "headers") == 1 and proxy.rss_kb() < before + 4096


def test_a_head_over_the_limit_is_answered_431(stand):
    backend = stand.backend()
    proxy = stand.proxy(backend, listener={"limits": {"header_bytes": 4096, "uri_bytes": 3500, "headers": 20}})
    client = h2(stand)
    client.wait(lambda: client.settings.get(SettingsFrame.MAX_HEADER_LIST_SIZE) == 4096)
    assert client.ask(request(fields=[("x-a", "a" * 5000)])).status == 431
    assert client.ask(request(fields=[(f"x-{n}", "a") for n in range(25)])).status == 431
    assert client.ask(request(path="/" + "a" * 3000)).status == 200
    assert proxy.metrics().total("listener_rejected_total") == 2 and len(backend.requests) == 1


def test_C_053_streams_on_a_large_object_without_a_window_keep_memory_flat(stand):
    backend = stand.backend()
    body = b"x" * (4 << 20)
    backend.answer = lambda seen: text_response(body)
    proxy = stand.proxy(backend, listener={"timeouts": {"body_ms": 1000}})
    client = h2(stand, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0})
    before = proxy.rss_kb()
    streams = [client.open() for _ in range(100)]
    client.drain(0.5)
    assert proxy.rss_kb() < before + 100 * (256 if is_sanitized() else 64)  # KiB, of 4 MiB each
    client.wait(lambda: all(client.answers[stream].reset is not None for stream in streams))
    assert proxy.metrics().total("listener_h2_stalled_streams_total") == 100


def test_a_client_that_never_ends_its_head_is_let_go(stand):
    stand.proxy(stand.backend(), listener={"timeouts": {"header_ms": 500}})
    client = h2(stand)
    assert client.ask().status == 200
    client.send(HeadersFrame(3, client.encoder.encode(request())))
    begun = time.monotonic()
    client.read_to_end()
    assert client.goaways and time.monotonic() - begun < 10


def test_an_idle_connection_ends_with_a_goaway(stand):
    proxy = stand.proxy(stand.backend(), listener={"timeouts": {"idle_ms": 500}})
    client = h2(stand)
    assert client.ask().status == 200
    client.read_to_end()
    assert client.goaways[-1].error_code == 0 and client.goaways[-1].last_stream_id == 1
    assert wait_until(lambda: proxy.metrics().total("listener_active_connections") == 0)


def test_a_window_update_flood_is_just_served(stand):
    stand.proxy(stand.backend())
    client = h2(stand, window=0)
    push(client, WindowUpdateFrame(0, 1).serialize() * 50000)
    assert client.ask().status == 200
