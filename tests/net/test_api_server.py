# SPDX-License-Identifier: Apache-2.0
"""The admin server itself: who may come in, what a client can cost, and that traffic does not notice (G6, G8, C-150)."""
import json
import os
import socket
import time

from harness.process import wait_until
from harness.tls import Authority

READ, OPERATE, ADMIN = "r" * 20, "o" * 20, "a" * 20


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def tokens(folder):
    path = os.path.join(str(folder), "tokens")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
        out.write(f"# ROLE TOKEN NAME\nread {READ} scraper\noperate {OPERATE} deployer\nadmin {ADMIN} root\n")
    return path


def guarded(stand, **admin):
    backend = stand.backend()
    config = stand.config(backend)
    config["admin"].update(token_file=tokens(stand.folder), **admin)
    return stand.serve(config)


def error(body):
    fault = json.loads(body)["error"]
    assert set(fault) >= {"code", "path", "message"}, fault
    return fault["code"]


def dial(proxy):
    sock = socket.create_connection(proxy.admin, 20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def everything(sock):
    data = b""
    try:
        while chunk := sock.recv(65536):
            data += chunk
    except (ConnectionError, socket.timeout):
        pass
    sock.close()
    return data


def test_tokens_open_what_their_role_allows_G8(stand):
    proxy = guarded(stand)
    assert proxy.admin_request("GET", "/healthz")[0] == 200
    status, fields, body = proxy.admin_request("GET", "/metrics")
    assert (status, error(body)) == (401, "unauthorized") and fields["WWW-Authenticate"].startswith("Bearer")
    assert proxy.admin_request("GET", "/metrics", bearer("x" * 20))[0] == 401
    assert proxy.admin_request("GET", "/metrics", bearer(READ))[0] == 200
    assert proxy.admin_request("GET", "/metrics", bearer(ADMIN))[0] == 200
    assert proxy.admin_request("GET", "/nothing")[0] == 401, "what exists is nobody's business"
    assert proxy.admin_request("GET", "/nothing", bearer(READ))[0] == 404
    proxy.token = READ


def test_a_reload_brings_new_tokens_in_force(stand):
    proxy = guarded(stand)
    proxy.token = READ
    with open(proxy.config["admin"]["token_file"], "w", encoding="ascii") as out:
        out.write("read " + "n" * 20 + "\n")
    proxy.signal(1)
    assert wait_until(lambda: proxy.admin_request("GET", "/metrics", bearer("n" * 20))[0] == 200)
    assert proxy.admin_request("GET", "/metrics", bearer(READ))[0] == 401
    with open(proxy.config["admin"]["token_file"], "w", encoding="ascii") as out:
        out.write("nonsense\n")
    proxy.signal(1)
    assert wait_until(lambda: "token_file" in proxy.stderr)
    assert proxy.admin_request("GET", "/metrics", bearer("n" * 20))[0] == 200, "a faulty file changes nothing"
    proxy.token = "n" * 20


def test_the_api_over_tls_G8(stand, tmp_path):
    authority = Authority(tmp_path)
    config = stand.config(stand.backend())
    cert = authority.issue("admin", "localhost")
    config["admin"]["tls"] = {"cert_file": cert["cert_file"], "key_file": cert["key_file"]}
    proxy = stand.serve(config, ready=False)
    proxy.admin_tls = authority.context()
    proxy.ready()
    assert len(proxy.get("/metrics")[1]) > 10000
    sock = dial(proxy)
    sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"400" in everything(sock).split(b"\r\n")[0]


def test_pages_of_other_sites_reach_nothing(stand):
    proxy = stand.proxy(stand.backend())
    for fields in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        status, _, body = proxy.admin_request("GET", "/v1/config", fields)
        assert (status, error(body)) == (403, "forbidden"), fields


def test_bodies_have_a_limit_and_a_deadline_C_150(stand):
    proxy = stand.proxy(stand.backend())
    sock = dial(proxy)
    sock.sendall(b"PUT /v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
    assert b" 413 " in everything(sock).split(b"\r\n")[0]
    sock = dial(proxy)
    sock.sendall(b"PUT /v1/config HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    try:
        for _ in range(20):
            sock.sendall(piece)
    except OSError:
        pass
    assert everything(sock)[:12] in (b"HTTP/1.1 413", b"")


def test_a_body_is_asked_for_when_the_client_waits_for_it(stand):
    proxy = stand.proxy(stand.backend())
    sock = dial(proxy)
    sock.sendall(b"PUT /v1/config HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\n"
                 b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n")
    assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
    sock.sendall(b"{}")
    assert everything(sock).startswith(b"HTTP/1.1 ")


def test_garbage_and_half_requests_harm_nobody(stand):
    """Hostile clients of every kind at once; the API answers others meanwhile, and so does the traffic."""
    proxy = stand.proxy(stand.backend())
    hostile = []
    for data in (b"", b"G", b"GET /metrics HTTP/1.1\r\nHost", b"PUT /v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
                 b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000 + b"\0" * 1000,
                 b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 2000):
        for _ in range(7):
            sock = dial(proxy)
            sock.setblocking(False)
            try:
                sock.send(data)
            except BlockingIOError:
                pass
            hostile.append(sock)
    started = time.monotonic()
    for _ in range(20):
        assert proxy.get("/healthz")[0] == 200
        assert stand.ask().status == 200
    assert time.monotonic() - started < 15
    for sock in hostile:
        sock.close()
