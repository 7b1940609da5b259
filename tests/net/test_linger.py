# SPDX-License-Identifier: Apache-2.0
"""A connection that ends while its client still sends: the last answer must not be destroyed by a reset (RFC 9112 9.6)."""
import signal
import time

from harness.backend import text_response
from harness.judge import first_response

CHUNK = b"u" * 65536


def test_C_048_a_client_that_sends_all_before_it_reads_gets_the_early_answer(stand):
    def script(wire):
        wire.read_request(body=False)
        wire.send(text_response(b"too much", "413 Content Too Large"))
        wire.read_to_end()

    stand.proxy(stand.backend(script))
    client = stand.client()
    client.send(b"POST /up HTTP/1.1\r\nHost: t.example\r\nContent-Length: %d\r\n\r\n" % (400 * len(CHUNK)))
    for _ in range(400):
        client.send(CHUNK)  # a reset would end this loop
    assert client.read_response().status == 413
    client.expect_end()


def test_a_refused_head_is_answered_although_bytes_keep_coming(stand):
    stand.proxy(stand.backend())
    client = stand.client()
    client.send(b"POST / HTTP/1.1\r\nHost: t.example\r\nContent-Length: +1\r\n\r\n")
    for _ in range(30):
        client.send(CHUNK)
        time.sleep(0.1)
    response = first_response(client.read_to_end())
    assert response.status == 400 and response.closes


def test_pipelined_requests_do_not_destroy_the_last_answer_of_a_process_that_stops(stand):
    body = b"L" * (1 << 20)

    def script(wire):
        wire.read_request()
        proxy.signal(signal.SIGTERM)
        time.sleep(0.5)
        wire.send(text_response(body))

    proxy = stand.proxy(stand.backend(script))
    client = stand.client()
    client.send(b"GET / HTTP/1.1\r\nHost: t.example\r\n\r\n")
    time.sleep(0.1)
    client.send(b"GET /next HTTP/1.1\r\nHost: t.example\r\n\r\n" * 3000)
    time.sleep(1.5)
    response = client.read_response()
    assert response.body == body and response.closes
    client.expect_end()
