# SPDX-License-Identifier: Apache-2.0
"""A5: files that the configuration names are read again when they change, without a reload."""
import os
import ssl
import time

from harness.process import wait_until
from harness.tls import Authority, shown_name, tls_wire


def replace(source, target):
    """As a client of a certificate authority does it: written aside, then renamed."""
    with open(source, "rb") as old, open(target + ".new", "wb") as new:
        new.write(old.read())
    os.rename(target + ".new", target)


def secure(stand, authority, watch_s):
    certificate = authority.issue("one", "t.example", subject="/CN=first")
    proxy = stand.proxy(stand.backend(), listener={"protocol": "HTTPS", "certificates": ["one"]}, certificates=[certificate],
                        watch_files_s=watch_s)
    return proxy, certificate, ("127.0.0.1", proxy.config["load_balancers"][0]["listeners"][0]["port"])


def shown(address, authority):
    wire = tls_wire(address, authority.context())
    name = shown_name(wire)
    wire.close()
    return name


def test_A5_a_new_certificate_is_shown_and_open_connections_go_on(stand):
    authority = Authority(stand.folder)
    proxy, certificate, address = secure(stand, authority, 0.2)
    open_one = tls_wire(address, authority.context())
    stand.clients.append(open_one)
    assert shown(address, authority) == "first"
    other = authority.issue("two", "t.example", subject="/CN=second")
    replace(other["key_file"], certificate["key_file"])
    replace(other["cert_file"], certificate["cert_file"])
    assert wait_until(lambda: shown(address, authority) == "second")
    open_one.request("GET", "/")
    assert open_one.read_response("GET").status == 200
    assert "have changed and are in force" in proxy.stderr


def test_A5_a_file_of_no_use_leaves_everything_as_it_is(stand):
    authority = Authority(stand.folder)
    proxy, certificate, address = secure(stand, authority, 0.2)
    with open(certificate["cert_file"], "rb") as good:
        kept = good.read()
    with open(certificate["cert_file"], "wb") as out:
        out.write(kept[:200])
    assert wait_until(lambda: "are of no use" in proxy.stderr)
    assert shown(address, authority) == "first"
    time.sleep(1.5)
    assert proxy.stderr.count("are of no use") == 1
    with open(certificate["cert_file"], "wb") as out:
        out.write(kept)
    assert wait_until(lambda: "are in force" in proxy.stderr)
    assert shown(address, authority) == "first"


def test_A5_without_watching_only_a_reload_reads_files(stand):
    authority = Authority(stand.folder)
    proxy, certificate, address = secure(stand, authority, 0)
    other = authority.issue("two", "t.example", subject="/CN=second")
    replace(other["key_file"], certificate["key_file"])
    replace(other["cert_file"], certificate["cert_file"])
    time.sleep(1.5)
    assert shown(address, authority) == "first"
    proxy.reload()
    assert shown(address, authority) == "second"


def test_nothing_is_built_while_nothing_changes(stand):
    authority = Authority(stand.folder)
    proxy, _, address = secure(stand, authority, 0.1)
    time.sleep(1.5)
    assert "have changed" not in proxy.stderr
    assert shown(address, authority) == "first"
    try:
        tls_wire(address, ssl.create_default_context())
        raise AssertionError("an unknown authority was accepted")
    except ssl.SSLError:
        pass
