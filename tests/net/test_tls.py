# SPDX-License-Identifier: Apache-2.0
"""TLS with clients: certificates by name, versions, resumption, reloads, and what goes wrong."""
import json
import os
import re
import signal
import ssl
import subprocess
import time

import pytest

from harness.backend import replying, text_response
from harness.process import tls_library, wait_until
from harness.stand import address_of
from harness.tls import Authority, TlsBackend, openssl, shown_name, tls_wire
from harness.wire import connect


@pytest.fixture
def ca(tmp_path):
    folder = tmp_path / "certs"
    folder.mkdir()
    return Authority(folder)


def serve_tls(stand, backend, certificates, tls=None, listener=None, **top):
    """isobar with one HTTPS listener that shows these certificates, in this order."""
    config = stand.config(backend, listener={"protocol": "HTTPS", "certificates": [c["name"] for c in certificates],
                                             **({"tls": tls} if tls else {}), **(listener or {})},
                          certificates=certificates, **top)
    return stand.serve(config)


def client(stand, context, name="t.example", proxy=None, **options):
    wire = tls_wire(address_of((proxy or stand.proxies[0]).config), context, name, **options)
    stand.clients.append(wire)
    return wire


def handshakes(proxy, result):
    return proxy.metrics().total("listener_tls_handshakes_total", result=result)


def test_A5_a_request_over_tls_is_forwarded_as_https(stand, ca):
    backend = stand.backend()
    proxy = serve_tls(stand, backend, [ca.issue("t", "t.example")])
    wire = client(stand, ca.context())
    for n in range(3):
        wire.request("POST", f"/{n}", body=b"x" * 1000)
        assert wire.read_response().status == 200
    assert wire.sock.version() == "TLSv1.3" and shown_name(wire) == "t.example"
    assert len(backend.requests) == 3 and backend.requests[0].body == b"x" * 1000
    assert backend.requests[0].get("X-Forwarded-Proto") == "https"
    assert handshakes(proxy, "full") == 1


@pytest.mark.parametrize("size", [0, 1, 16000, 16384, 100_000, 3_000_000])
def test_A5_bodies_of_any_size_pass_both_ways(stand, ca, size):
    body = os.urandom(size)
    backend = stand.backend()
    backend.answer = lambda request: text_response(request.body)
    serve_tls(stand, backend, [ca.issue("t", "t.example")])
    wire = client(stand, ca.context(), timeout_s=60)
    for _ in range(2):
        wire.request("POST", body=body)
        assert wire.read_response().body == body


def test_A5_chunked_and_close_delimited_answers_pass(stand, ca):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(100):
            wire.send(b"400\r\n" + b"c" * 1024 + b"\r\n")
        wire.send(b"0\r\n\r\n")
        wire.read_request()
        wire.send(b"HTTP/1.0 200 OK\r\n\r\n" + b"d" * 200_000)

    stand_backend = stand.backend(script)
    serve_tls(stand, stand_backend, [ca.issue("t", "t.example")])
    wire = client(stand, ca.context())
    wire.request()
    assert wire.read_response().body == b"c" * 102_400
    wire.request(version="1.0", fields=[("Connection", "close")])
    assert wire.read_response().body == b"d" * 200_000  # a ragged end would raise: close_notify came


def test_A5_a_truncated_answer_is_no_good_end(stand, ca):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf")

    serve_tls(stand, stand.backend(script), [ca.issue("t", "t.example")])
    wire = client(stand, ca.context())
    wire.request()
    wire.read_until(b"\r\n\r\n")
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        wire.read_exact(100000)


def test_C_075_certificates_are_chosen_by_name(stand, ca):
    certs = [ca.issue("default", "default.example"), ca.issue("a", "a.example"), ca.issue("b", "*.b.example")]
    proxy = serve_tls(stand, stand.backend(), certs)
    context = ca.context(verify=False)

    def shown(name):
        text = openssl("s_client", "-connect", "%s:%d" % address_of(proxy.config),
                       *(["-servername", name] if name else ["-noservername"]), data=b"")
        return re.search(r"subject=CN ?= ?(\S+)", text)[1]

    expected = [(None, "default.example"), ("A.EXAMPLE", "a.example"), ("x.b.example", "*.b.example"),
                ("y.x.b.example", "default.example"), ("unknown.example", "default.example"),
                ("b.example", "default.example"), ("a.example.", "a.example")]
    for name, certificate in expected:
        assert shown(name) == certificate, name
    # Without a.example, and with another default.
    config = dict(proxy.config)
    config["certificates"] = [ca.issue("default", "new-default.example"), certs[2]]
    config["load_balancers"][0]["listeners"][0]["certificates"] = ["default", "b"]
    held = client(stand, context, "a.example")
    proxy.reload(config)
    assert shown(None) == shown("a.example") == shown("unknown.example") == "new-default.example"
    assert shown("x.b.example") == "*.b.example"
    held.request()  # what is open goes on
    assert held.read_response().status == 200


def test_A5_rsa_and_ecdsa_for_one_name(stand, ca):
    certs = [ca.issue("ec", "t.example"), ca.issue("rsa", "t.example", kind="rsa", subject="/CN=the-rsa-one")]
    proxy = serve_tls(stand, stand.backend(), certs)
    where = ["-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example"]
    assert "CN = t.example" in openssl("s_client", *where, data=b"").replace("CN=", "CN = ")
    for options in (["-sigalgs", "RSA-PSS+SHA256"], ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]):
        assert "the-rsa-one" in openssl("s_client", *where, *options, data=b"")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_A5_sessions_resume(stand, ca, version):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example"), ca.issue("u", "u.example")])
    context = ca.context()
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    first = client(stand, context)
    first.request()
    first.read_response()
    session = first.sock.session
    again = client(stand, context, session=session)
    again.request()
    assert again.read_response().status == 200 and again.sock.session_reused
    proxy.reload()  # a reload keeps the keys
    again = client(stand, context, session=session)
    again.request()
    assert again.read_response().status == 200 and again.sock.session_reused
    assert handshakes(proxy, "resumed") == 2
    # A session of one name is none of another.
    other = context.wrap_socket(connect(address_of(proxy.config)).sock, server_hostname="u.example", session=session)
    assert not other.session_reused
    other.close()


def test_A5_each_resumed_connection_brings_a_ticket_for_the_next(stand, ca, tmp_path):
    """RFC 8446 C.4: browsers use a ticket once. Without a new one they make every second handshake a full one."""
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    request = b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n"
    session = []
    for n in range(4):
        kept = str(tmp_path / f"session{n}")
        text = openssl("s_client", "-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example", "-ign_eof",
                       "-sess_out", kept, *session, data=request)
        assert ("Reused, TLSv1.3" in text) is (n > 0)
        session = ["-sess_in", kept]
    assert handshakes(proxy, "resumed") == 3


def test_A5_clients_without_tickets_resume_by_session_id(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    context = ca.context()
    context.options |= ssl.OP_NO_TICKET
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session = None
    for n in range(3):
        wire = client(stand, context, session=session)
        wire.request("GET")
        assert wire.read_response().status == 200
        session = wire.sock.session
        assert session.id and not session.has_ticket and wire.sock.session_reused == (n > 0)
        wire.close()
    assert handshakes(proxy, "resumed") == 2


def test_A5_another_handshake_is_refused_at_once_though_a_request_is_incomplete(stand, ca):
    """The refusal comes from the record behind the one with the request's beginning, and no answer takes it along."""
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    with subprocess.Popen(["openssl", "s_client", "-tls1_2", "-connect", "%s:%d" % address_of(proxy.config)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as asking:
        try:
            wait_until(lambda: handshakes(proxy, "full") == 1)
            proxy.process.send_signal(signal.SIGSTOP)
            for line in (b"GET / HTTP/1.1\r\n", b"R\n"):
                asking.stdin.write(line)
                asking.stdin.flush()
                time.sleep(0.5)
            proxy.process.send_signal(signal.SIGCONT)
            assert "no renegotiation" in asking.communicate(timeout=15)[0].decode(errors="replace")
        finally:
            proxy.process.send_signal(signal.SIGCONT)
            asking.kill()


def test_A5_ciphers_and_groups_are_the_configurations(stand, ca):
    certs = [ca.issue("t", "t.example")]
    suites = {} if tls_library() == "BoringSSL" else {"ciphersuites": "TLS_CHACHA20_POLY1305_SHA256"}
    proxy = serve_tls(stand, stand.backend(), certs, {"ciphers": "ECDHE+AESGCM", "groups": "P-384", "min_version": "1.2",
                                                      **suites})
    where = ("-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example")
    text = openssl("s_client", *where, data=b"")
    assert suites.get("ciphersuites", "New, TLSv1.3") in text and "secp384r1" in text
    assert "AES256-GCM" in openssl("s_client", *where, "-tls1_2", "-cipher", "AES256+AESGCM", data=b"")


def test_C_078_instances_that_share_ticket_keys_resume_each_others_sessions(stand, ca, tmp_path):
    old, new = tmp_path / "old.key", tmp_path / "new.key"
    old.write_bytes(os.urandom(80))
    new.write_bytes(os.urandom(48))
    certs = [ca.issue("t", "t.example")]
    listener = {"name": "shop"}
    one, two = (serve_tls(stand, stand.backend(), certs, {"ticket_key_files": [str(old)]}, listener) for _ in range(2))
    context = ca.context()
    session = None

    def visit(proxy, expect=True):
        nonlocal session
        wire = client(stand, context, proxy=proxy, session=session)
        wire.request()
        assert wire.read_response().status == 200
        if session is not None:
            assert wire.sock.session_reused is expect
        session = wire.sock.session
        wire.close()

    def set_keys(proxy, *files):
        proxy.config["load_balancers"][0]["listeners"][0]["tls"]["ticket_key_files"] = [str(f) for f in files]
        proxy.reload(proxy.config)

    for _ in range(3):
        visit(one)
        visit(two)
    for proxy in (one, two):  # the new key is accepted everywhere before it makes tickets anywhere
        set_keys(proxy, old, new)
        visit(one)
        visit(two)
    for proxy in (one, two):
        set_keys(proxy, new, old)
        visit(one)
        visit(two)
    set_keys(one, new)
    set_keys(two, new)
    visit(one)
    visit(two)
    three = serve_tls(stand, stand.backend(), certs, {"ticket_key_files": [str(new)]}, listener)  # "restarted"
    visit(three)


def test_C_080_early_data_is_off(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    where = ["-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example", "-ign_eof"]
    text = openssl("s_client", *where, data=b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n")
    assert "Post-Handshake New Session Ticket arrived" in text and "Max Early Data: 0" in text


def test_C_082_close_notify_is_a_half_close(stand, ca):
    body = os.urandom(3 << 20)
    backend = stand.backend(replying(text_response(body)))
    proxy = serve_tls(stand, backend, [ca.issue("t", "t.example")])
    # The memory BIOs show every byte: the request and close_notify go out, the socket stays open.
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ca.context().wrap_bio(incoming, outgoing, server_hostname="t.example")
    wire = stand.client(proxy)

    def step(function, *args):
        while True:
            try:
                return function(*args)
            except ssl.SSLWantReadError:
                wire.send(outgoing.read())
                data = wire.sock.recv(65536)
                if not data:
                    incoming.write_eof()
                incoming.write(data)

    step(tls.do_handshake)
    tls.write(b"GET / HTTP/1.1\r\nHost: t.example\r\n\r\n")
    wire.send(outgoing.read())
    with pytest.raises(ssl.SSLWantReadError):
        tls.unwrap()
    wire.send(outgoing.read())
    raw = wire.read_to_end()
    assert len(raw) > len(body), "the whole answer comes although the client has ended its direction"
    assert raw[-24:-19] == b"\x17\x03\x03\x00\x13", "and ends with a record of an alert's size: our close_notify"


def test_C_083_names_and_lists_of_any_shape(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    address = address_of(proxy.config)
    where = ["-connect", "%s:%d" % address]
    for name in ("t.example.", "127.0.0.1", "a" * 255, "x" * 63 + ".example", "-", "."):
        text = openssl("s_client", *where, "-servername", name, data=b"")
        assert "CN = t.example" in text.replace("CN=", "CN = "), name
    assert "No ALPN negotiated" in openssl("s_client", *where, data=b"")
    assert "ALPN protocol: h2" in openssl("s_client", *where, "-alpn", "http/1.1,h2", data=b"")
    assert "ALPN protocol: http/1.1" in openssl("s_client", *where, "-alpn", "h3,http/1.1", data=b"")
    assert "no application protocol" in openssl("s_client", *where, "-alpn", "h3", data=b"", ok=False)
    assert wait_until(lambda: handshakes(proxy, "failed") == 1)


def test_C_083_plain_text_on_a_tls_port_is_told_so(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    for n, text in enumerate((b"GET / HTTP/1.1\r\nHost: t.example\r\n\r\n", b"P", b"DELETE /x HTTP/1.1\r\n")):
        wire = stand.client()
        wire.send(text)
        answer = wire.read_response()
        assert answer.status == 400 and b"HTTPS" in answer.body and answer.closes
        wire.close()
        assert wait_until(lambda n=n: handshakes(proxy, "plain_text") == n + 1)


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"\x16\x03\x01\xff\xff" + b"\0" * 100, b"\x80\x2e\x01\x03\x01" + b"\0" * 43,
                                     b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x15\x03\x03\x00\x02\x02\x28"])
def test_C_083_garbage_ends_the_handshake(stand, ca, garbage):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    wire = stand.client()
    wire.send(garbage)
    wire.end_writing()
    wire.read_to_end()
    assert wait_until(lambda: handshakes(proxy, "failed") == 1)


def test_C_083_records_without_content_do_not_go_on_for_ever(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    wire = stand.client()
    try:
        for _ in range(1000):
            wire.send(b"\x16\x03\x01\x00\x00" * 100)
    except OSError:
        pass
    wire.read_to_end()
    assert wait_until(lambda: handshakes(proxy, "failed") == 1)


def test_C_085_old_versions_and_renegotiation_are_refused(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    where = ["-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example"]
    for version in ("-tls1", "-tls1_1"):
        text = openssl("s_client", *where, version, "-cipher", "ALL@SECLEVEL=0", data=b"", ok=False)
        assert "Cipher is (NONE)" in text, text
    client_ = subprocess.Popen(["openssl", "s_client", *where, "-tls1_2"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(0.5)
    client_.stdin.write(b"R\n")
    client_.stdin.flush()
    text = client_.communicate(timeout=20)[0].decode(errors="replace")
    assert "RENEGOTIATING" in text and re.search("no renegotiation|handshake failure|alert", text)
    assert "Compression: NONE" in text


def test_A5_versions_can_be_bounded(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")], {"min_version": "1.3"})
    context = ca.context()
    assert client(stand, context).sock.version() == "TLSv1.3"
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        client(stand, context)
    proxy.config["load_balancers"][0]["listeners"][0]["tls"] = {"max_version": "1.2"}
    proxy.reload(proxy.config)
    assert client(stand, ca.context()).sock.version() == "TLSv1.2"


def test_A12_a_handshake_has_a_deadline_however_slowly_it_goes_on(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")], listener={"timeouts": {"handshake_ms": 400}})
    wires = [stand.client() for _ in range(3)]
    wires[1].send(b"\x16")
    for byte in b"\x16\x03\x01\x02\x00":
        wires[2].send(bytes([byte]))
        time.sleep(0.05)
    for wire in wires:
        wire.expect_end()
    assert wait_until(lambda: handshakes(proxy, "timeout") == 3)


def test_A5_a_hello_in_single_bytes_is_understood(stand, ca):
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ca.context().wrap_bio(incoming, outgoing, server_hostname="t.example")
    wire = stand.client(proxy)

    def step(function, *args):
        while True:
            try:
                return function(*args)
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    wire.send(bytes([byte]))
                incoming.write(wire.sock.recv(7))

    step(tls.do_handshake)
    tls.write(b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n")
    assert step(tls.read, 100000).startswith(b"HTTP/1.1 200 OK")


def test_A5_many_connections_at_once_all_get_their_turn(stand, ca):
    # Sixty in turn take their time where the machine is busy and the build sanitized.
    proxy = serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")],
                      listener={"timeouts": {"handshake_ms": 120000, "header_ms": 120000}})
    context = ca.context()
    plain = [connect(address_of(proxy.config)) for _ in range(60)]
    wires = []
    for wire in plain:
        sock = context.wrap_socket(wire.sock, server_hostname="t.example", do_handshake_on_connect=False)
        sock.setblocking(False)
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            pass
        wires.append(sock)
    for sock in wires:
        sock.settimeout(20)
        sock.do_handshake()
        sock.sendall(b"GET / HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n")
        assert sock.recv(100000).startswith(b"HTTP/1.1 200 OK")
        sock.close()
    assert handshakes(proxy, "full") == 60


def test_A5_websockets_pass_over_tls(stand, ca):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello")
        while True:
            data = wire.sock.recv(65536)
            if not data:
                return
            wire.send(data)

    serve_tls(stand, stand.backend(script), [ca.issue("t", "t.example")])
    wire = client(stand, ca.context())
    wire.request(fields=[("Connection", "Upgrade"), ("Upgrade", "echo")])
    assert wire.read_response().status == 101
    assert wire.read_exact(5) == b"hello"
    data = os.urandom(300_000)
    for n in range(0, len(data), 30_000):
        wire.send(data[n:n + 30_000])
        assert wire.read_exact(len(data[n:n + 30_000])) == data[n:n + 30_000]


def test_E5_certificates_are_read_again_on_reload(stand, ca):
    certificate = ca.issue("t", "t.example")
    proxy = serve_tls(stand, stand.backend(), [certificate])
    held = client(stand, ca.context())
    serial = held.sock.getpeercert()["serialNumber"]
    ca.issue("t", "t.example")
    proxy.reload()
    fresh = client(stand, ca.context())
    assert fresh.sock.getpeercert()["serialNumber"] != serial
    held.request()
    assert held.read_response().status == 200
    with open(certificate["key_file"], "w", encoding="ascii") as text:
        text.write("broken")
    proxy.reload()  # refused: what was in force goes on
    assert client(stand, ca.context()).sock.getpeercert()["serialNumber"] == fresh.sock.getpeercert()["serialNumber"]
    assert proxy.reload_counts() == (1, 1)


def test_C_127_check_finds_what_is_wrong_with_certificates(stand, ca, tmp_path):
    good, other = ca.issue("good", "t.example"), ca.issue("other", "u.example")
    backend = stand.backend()

    def check(certificates, names=("c",), ok=False, **tls):
        config = stand.config(backend, listener={"protocol": "HTTPS", "certificates": list(names), "tls": tls},
                              certificates=certificates)
        (tmp_path / "check.json").write_text(json.dumps(config, indent=1))
        status, out, err = stand.isobar("check", str(tmp_path / "check.json"))
        assert (status == 0) is ok, out + err
        return out + err

    def cert(**keys):
        return [{"name": "c", "cert_file": good["cert_file"], "key_file": good["key_file"], **keys}]

    check(cert(), ok=True)
    text = check(cert(key_file=other["key_file"]))
    assert re.search(r"check.json:\d+:\d+: /certificates/0/key_file: .*is not the key of the certificate", text)
    assert "/certificates/0/cert_file: cannot read" in check(cert(cert_file="/nowhere.pem"))
    assert "no certificate in" in check(cert(cert_file=good["key_file"]))
    assert "no private key in" in check(cert(key_file=good["cert_file"]))
    assert "no certificate has that name; did you mean" in check(cert(), names=("d",))
    assert "/tls/ticket_key_files: cannot read" in check(cert(), ticket_key_files=["/nowhere.key"])
    assert "expected 80" in check(cert(), ticket_key_files=[good["key_file"]])
    assert '/tls/ciphers: is "NOSUCH"' in check(cert(), ciphers="NOSUCH")
    expected = '/tls/ciphersuites: is "TLS_NO"'
    if tls_library() == "BoringSSL":
        expected = "/tls/ciphersuites: cannot be chosen in this build: its TLS library, BoringSSL,"
    assert expected in check(cert(), ciphersuites="TLS_NO")
    assert '/tls/groups: is "P-1"' in check(cert(), groups="P-1")
    expired = ca.issue("old", "old.example", days=-1)
    assert "warning" in check([{**expired, "name": "c"}], ok=True)


def test_A5_a_redirect_keeps_https(stand, ca):
    serve_tls(stand, stand.backend(), [ca.issue("t", "t.example")], listener={
        "rules": [{"match": {"path": "/old"}, "redirect": {"path": "/new"}}]})
    wire = client(stand, ca.context())
    wire.request(target="/old")
    assert wire.read_response().get("Location").startswith("https://t.example")


# TLS towards targets


def serve_upstream(stand, backends, tls, listener=None, group=None):
    config = stand.config(backends, listener=listener, group={"protocol": "HTTPS", "tls": tls, **(group or {})})
    return stand.serve(config)


def tls_backend(stand, certificate, script=None, **options):
    backend = TlsBackend(certificate, script, **options)
    stand.backends.append(backend)
    return backend


def answer_in_plain_text(wire):
    """What a server without TLS does with a ClientHello."""
    wire.sock.recv(65536)
    wire.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def test_A5_targets_are_spoken_to_over_tls(stand, ca):
    backend = tls_backend(stand, ca.issue("target", "shop.internal"))
    backend.answer = lambda request: text_response(request.body)
    proxy = serve_upstream(stand, backend, {"ca_file": ca.file, "sni": "shop.internal"})
    wire = stand.client()
    for size in (0, 100, 50_000, 2_000_000):
        body = os.urandom(size)
        wire.request("POST", body=body)
        assert wire.read_response().body == body
    assert backend.n_connections == 1, "the connection is used again"
    assert backend.names == ["shop.internal"]
    assert proxy.metrics().total("target_tls_errors_total") == 0


def test_A5_tls_on_both_sides(stand, ca):
    backend = tls_backend(stand, ca.issue("target", "127.0.0.1"))
    backend.answer = lambda request: text_response(b"b" * 300_000)
    config = stand.config(backend, listener={"protocol": "HTTPS", "certificates": ["t"]},
                          group={"protocol": "HTTPS", "tls": {"ca_file": ca.file}},
                          certificates=[ca.issue("t", "t.example")])
    stand.serve(config)
    wire = client(stand, ca.context())
    for _ in range(3):
        wire.request()
        assert wire.read_response().body == b"b" * 300_000


@pytest.mark.parametrize("what", ["authority", "name", "address", "expired", "plain"])
def test_A5_a_target_that_is_not_the_one_expected_gets_nothing(stand, ca, what, tmp_path):
    tls = {"ca_file": ca.file, "sni": "shop.internal"}
    if what == "authority":
        (tmp_path / "other").mkdir()
        tls["ca_file"] = Authority(tmp_path / "other", "other").file
    if what == "address":
        del tls["sni"]
    name = "shop.internal" if what != "name" else "else.internal"
    if what == "plain":
        backend = stand.backend(answer_in_plain_text)
    else:
        backend = tls_backend(stand, ca.issue("target", name, days=-1 if what == "expired" else 30))
    proxy = serve_upstream(stand, backend, tls)
    response = stand.ask("POST", body=b"secret")
    assert response.status == 502 and b"TLS" in response.body
    assert backend.requests == [] and b"secret" not in backend.raw
    assert proxy.metrics().total("target_tls_errors_total") >= 1
    if what != "plain":
        proxy.config["target_groups"][0]["tls"] = {"verify": False}
        proxy.reload(proxy.config)
        assert stand.ask().status == 200


def test_A5_another_target_takes_what_failed_in_the_handshake(stand, ca):
    bad = tls_backend(stand, ca.issue("bad", "else.internal"))
    good = tls_backend(stand, ca.issue("good", "shop.internal"), name="good")
    serve_upstream(stand, [bad, good], {"ca_file": ca.file, "sni": "shop.internal"})
    for _ in range(4):
        assert stand.ask("POST", body=b"once").body == b"good"
    assert len(good.requests) == 4


def test_A5_we_show_a_certificate_to_targets_that_ask(stand, ca):
    ours = ca.issue("ours", "isobar.internal")
    backend = tls_backend(stand, ca.issue("target", "shop.internal"), client_ca=ca.file)
    tls = {"ca_file": ca.file, "sni": "shop.internal"}
    proxy = serve_upstream(stand, backend, tls)
    assert stand.ask().status == 502
    proxy.config["target_groups"][0]["tls"] = {**tls, "cert_file": ours["cert_file"], "key_file": ours["key_file"]}
    proxy.reload(proxy.config)
    assert stand.ask().status == 200
    assert dict(pair[0] for pair in backend.wires[-1].sock.getpeercert()["subject"])["commonName"] == "isobar.internal"


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_A5_sessions_with_targets_resume(stand, ca, version):
    reused = []

    def script(wire):
        wire.read_request()
        reused.append(wire.sock.session_reused)
        wire.send(text_response(close=True))

    backend = TlsBackend(ca.issue("target", "shop.internal"), script, listen=False)
    backend.context.minimum_version = backend.context.maximum_version = getattr(ssl.TLSVersion, version)
    backend.start()
    stand.backends.append(backend)
    serve_upstream(stand, backend, {"ca_file": ca.file, "sni": "shop.internal"})
    for _ in range(4):
        assert stand.ask().status == 200
    assert reused == [False, True, True, True]


def test_E5_a_reload_keeps_idle_connections_unless_their_tls_changed(stand, ca):
    backend = tls_backend(stand, ca.issue("target", "shop.internal"))
    proxy = serve_upstream(stand, backend, {"ca_file": ca.file, "sni": "shop.internal"})
    assert stand.ask().status == 200
    proxy.reload()
    assert stand.ask().status == 200 and backend.n_connections == 1
    proxy.config["target_groups"][0]["tls"] = {"verify": False}
    proxy.reload(proxy.config)
    assert stand.ask().status == 200 and backend.n_connections == 2


def test_A5_an_answer_that_ends_without_close_notify_is_cut(stand, ca):
    def script(wire):
        wire.read_request()
        wire.send(b"HTTP/1.0 200 OK\r\n\r\nhalf")
        # The socket is closed behind us: a FIN, no close_notify.

    backend = tls_backend(stand, ca.issue("target", "shop.internal"), script)
    serve_upstream(stand, backend, {"ca_file": ca.file, "sni": "shop.internal"})
    wire = stand.client()
    wire.request()
    wire.read_until(b"\r\n\r\n")
    with pytest.raises((AssertionError, ConnectionError)):
        wire.read_until(b"0\r\n\r\n")


@pytest.mark.parametrize("check", [{"type": "http", "path": "/healthz"}, {"type": "tcp"}])
def test_C_092_checks_speak_tls_with_the_name_of_the_group(stand, ca, check):
    good = tls_backend(stand, ca.issue("good", "shop.internal"), name="good")
    wrong = tls_backend(stand, ca.issue("wrong", "else.internal"))
    plain = stand.backend(answer_in_plain_text)
    proxy = serve_upstream(stand, [good, wrong, plain], {"ca_file": ca.file, "sni": "shop.internal"},
                           group={"health_check": {**check, "interval_s": 0.2, "unhealthy_threshold": 1}})
    assert wait_until(lambda: proxy.metrics().total("target_up", target=good.label) == 1)
    for backend in (wrong, plain):
        assert wait_until(lambda b=backend: proxy.metrics().total("target_health_last_check", target=b.label, reason="tls-failed"))
        assert proxy.metrics().total("target_up", target=backend.label) == 0
    assert set(good.names) == {"shop.internal"}
    assert [stand.ask().body for _ in range(3)] == [b"good"] * 3


# Certificates of clients


def client_cert_config(stand, ca, backend, tls=None, **extra):
    return serve_tls(stand, backend, [{**ca.issue("t", "t.example"), **extra}], tls)


def test_A5_clients_show_a_certificate_and_targets_learn_whose(stand, ca, tmp_path):
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other")
    ann = ca.issue("ann", subject="/O=Isobar, Ltd/CN=Ann \u00fc")
    backend = stand.backend()
    proxy = client_cert_config(stand, ca, backend, {"client_ca_file": ca.file})
    wire = client(stand, ca.context(client=ann))
    wire.request(fields=[("X-Client-Cert-Subject", "CN=forged"), ("X-Client-Cert-SHA256", "00"), ("x_client_cert_subject", "x")])
    assert wire.read_response().status == 200
    request = backend.requests[-1]
    assert request.get("X-Client-Cert-Subject") == r"CN=Ann \C3\BC,O=Isobar\, Ltd"
    fingerprint = openssl("x509", "-in", ann["cert_file"], "-noout", "-fingerprint", "-sha256").split("=")[1].strip()
    assert request.get("X-Client-Cert-SHA256") == fingerprint.replace(":", "").lower()
    assert request.get("x_client_cert_subject") is None
    # A resumed session is still Ann's.
    context = ca.context(client=ann)
    first = client(stand, context)
    first.request()
    first.read_response()
    again = client(stand, context, session=first.sock.session)
    again.request()
    assert again.read_response().status == 200 and again.sock.session_reused
    assert backend.requests[-1].get("X-Client-Cert-Subject").startswith("CN=Ann")
    before = handshakes(proxy, "failed")
    stranger = other.issue("bob")
    for context in (ca.context(), ca.context(client=stranger)):
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            wire = client(stand, context)  # TLS 1.3 tells of it with the first read
            wire.request()
            wire.read_response()
    assert wait_until(lambda: handshakes(proxy, "failed") == before + 2)


def test_A5_a_certificate_may_be_optional(stand, ca):
    backend = stand.backend()
    client_cert_config(stand, ca, backend, {"client_ca_file": ca.file, "client_auth": "optional"})
    wire = client(stand, ca.context())
    wire.request(fields=[("X-Client-Cert-Subject", "CN=forged")])
    assert wire.read_response().status == 200
    assert backend.requests[-1].get("X-Client-Cert-Subject") is None
    wire = client(stand, ca.context(client=ca.issue("ann")))
    wire.request()
    wire.read_response()
    assert backend.requests[-1].get("X-Client-Cert-Subject") == "CN=ann"


def test_A5_revoked_certificates_are_refused_and_old_sessions_too(stand, ca):
    ann = ca.issue("ann")
    crl, index, settings = ca.path("crl.pem"), ca.path("index.txt"), ca.path("ca.cnf")
    with open(settings, "w", encoding="ascii") as text:
        text.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={index}\ndefault_md=sha256\ndefault_crl_days=30\n")
    open(index, "w", encoding="ascii").close()

    def make_crl():
        openssl("ca", "-config", settings, "-gencrl", "-keyfile", ca.key, "-cert", ca.file, "-out", crl)

    make_crl()
    proxy = client_cert_config(stand, ca, stand.backend(), {"client_ca_file": ca.file, "crl_file": crl})
    context = ca.context(client=ann)

    def visit(session=None):
        wire = client(stand, context, session=session)
        wire.request()
        assert wire.read_response().status == 200
        return wire.sock

    session = visit().session
    assert visit(session).session_reused
    openssl("ca", "-config", settings, "-revoke", ann["cert_file"], "-keyfile", ca.key, "-cert", ca.file)
    make_crl()
    proxy.reload()
    for old in (None, session):
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            visit(old)


def test_A5_what_a_name_asks_of_clients_cannot_be_had_through_another_name(stand, ca):
    backend = stand.backend()
    certs = [ca.issue("open", "open.example"), {**ca.issue("closed", "closed.example"), "client_ca_file": ca.file},
             {**ca.issue("old", "old.example"), "max_version": "1.2"}]
    proxy = serve_tls(stand, backend, certs)
    context = ca.context()
    wire = client(stand, context, "open.example")
    wire.request(host="open.example")
    assert wire.read_response().status == 200
    session = wire.sock.session
    for host in ("closed.example", "CLOSED.example:443", "old.example"):
        wire.request(host=host)
        assert wire.read_response().status == 421
    wire.request(host="else.example")
    assert wire.read_response().status == 200
    # Nor by a session of the open name, nor without SNI.
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        sock = context.wrap_socket(connect(address_of(proxy.config)).sock, server_hostname="closed.example", session=session)
        assert not sock.session_reused
        sock.sendall(b"GET / HTTP/1.1\r\nHost: closed.example\r\n\r\n")
        assert sock.recv(1000) == b""
        raise ConnectionError
    with_cert = client(stand, ca.context(client=ca.issue("ann")), "closed.example")
    with_cert.request(host="closed.example")
    assert with_cert.read_response().status == 200
    assert client(stand, context, "old.example").sock.version() == "TLSv1.2"
    assert {request.get("Host") for request in backend.requests} == {"open.example", "else.example", "closed.example"}


def test_A5_an_ocsp_answer_is_stapled(stand, ca):
    certificate = ca.issue("t", "t.example")
    proxy = serve_tls(stand, stand.backend(), [{**certificate, "ocsp_file": ca.ocsp_answer(certificate)}])
    where = ["-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example"]
    assert "OCSP Response Status: successful" in openssl("s_client", *where, "-status", data=b"")
    assert "OCSP response" not in openssl("s_client", *where, data=b"").replace("OCSP response: no response sent", "")


def test_A5_expiry_is_in_the_metrics_and_warned_of(stand, ca):
    soon, later = ca.issue("soon", "t.example", days=5), ca.issue("later", "u.example", days=100)
    proxy = serve_tls(stand, stand.backend(), [soon, later])
    metrics = proxy.metrics()
    for name, days in (("soon", 5), ("later", 100)):
        left_s = metrics.total("certificate_expiry_timestamp_seconds", certificate=name) - time.time()
        assert abs(left_s - days * 86400) < 3600
    # 5 days when it is checked in the very second in which it was made
    assert any(f"certificate soon expires in {days} days" in proxy.stderr for days in (4, 5)), proxy.stderr
    assert "certificate later" not in proxy.stderr
