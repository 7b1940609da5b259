# SPDX-License-Identifier: Apache-2.0
"""Rules whose requests must bring a name and a password."""
import base64
import os
import subprocess
import threading
import time

import pytest

from harness.process import wait_until


def hashed(password, kind="-6"):
    """A hash by the openssl command; `-6` is SHA-512 of crypt(3), `-apr1` Apache's own."""
    return subprocess.run(["openssl", "passwd", kind, "-stdin"], input=password.encode(), capture_output=True, check=True).stdout.decode().strip()


USERS = {"alice": "wonder land", "bob": "b:o:b", "\u00e9va": "gar\u00e7on"}


def password_file(stand, lines=None):
    path = os.path.join(stand.folder, "passwords")
    with open(path, "w", encoding="utf-8") as out:
        out.write("# users\n\n" + "\n".join(lines if lines is not None else [f"{name}:{hashed(word)}" for name, word in USERS.items()]) + "\n")
    return path


def guarded(stand, backend, path=None, listener=None, **options):
    return stand.proxy(backend, listener={"rules": [
        {"match": {"path_prefix": "/in"}, "basic_auth": {"password_file": path or password_file(stand), **options},
         "forward": [{"target_group": "web"}]}], **(listener or {})})


def credentials(name, word):
    return ("Authorization", "Basic " + base64.b64encode(f"{name}:{word}".encode()).decode())


def test_names_with_their_passwords_pass(stand):
    backend = stand.backend()
    guarded(stand, backend)
    for name, word in USERS.items():
        for _ in range(2):
            assert stand.ask(target="/in", fields=[credentials(name, word)]).status == 200
    assert len(backend.requests) == 6


@pytest.mark.parametrize("fields, word", [
    ([], b"no-credentials"), ([("Authorization", "Bearer x")], b"no-credentials"), ([("Authorization", "Basic ???")], b"no-credentials"),
    ([("Authorization", "Basic " + base64.b64encode(b"nocolon").decode())], b"no-credentials"),
    ([("Authorization", "Basic " + base64.b64encode(b"alice:wonder land\0").decode())], b"no-credentials"),
    ([credentials("alice", "x" * 300)], b"no-credentials"), ([credentials("alice", "wrong")], b"bad-credentials"),
    ([credentials("alice", "")], b"bad-credentials"), ([credentials("nobody", "wonder land")], b"bad-credentials"),
    ([credentials("Alice", "wonder land")], b"bad-credentials"), ([credentials("", "wonder land")], b"bad-credentials"),
])
def test_all_others_get_401(stand, fields, word):
    backend = stand.backend()
    guarded(stand, backend, realm="back-office")
    response = stand.ask(target="/in", fields=fields + [("Accept", "application/json")])
    assert response.status == 401 and word in response.body
    assert response.get("WWW-Authenticate") == 'Basic realm="back-office", charset="UTF-8"'
    assert not backend.requests
    assert stand.ask(target="/out").status == 200


def test_a_known_pair_is_not_compared_again(stand):
    backend = stand.backend()
    slow = hashed("word").replace("$6$", "$6$rounds=400000$", 1)
    salt = slow.split("$")[3]
    made = subprocess.run([os.sys.executable, "-W", "ignore", "-c",
                           f"import crypt; print(crypt.crypt('word', '$6$rounds=400000${salt}$'))"], capture_output=True, text=True, check=True)
    guarded(stand, backend, password_file(stand, ["a:" + made.stdout.strip()]))
    started = time.monotonic()
    assert stand.ask(target="/in", fields=[credentials("a", "word")]).status == 200
    first = time.monotonic() - started
    started = time.monotonic()
    for _ in range(10):
        assert stand.ask(target="/in", fields=[credentials("a", "word")]).status == 200
    assert (time.monotonic() - started) / 10 < first / 2
    assert stand.ask(target="/in", fields=[credentials("a", "Word")]).status == 401


def test_comparing_delays_nobody_else(stand):
    backend = stand.backend()
    made = subprocess.run([os.sys.executable, "-W", "ignore", "-c", "import crypt; print(crypt.crypt('w', '$6$rounds=2000000$saltsalt$'))"],
                          capture_output=True, text=True, check=True)
    guarded(stand, backend, password_file(stand, ["a:" + made.stdout.strip()]))
    thread = threading.Thread(target=lambda: stand.ask(target="/in", fields=[credentials("a", "w")]))
    thread.start()
    time.sleep(0.05)
    started = time.monotonic()
    assert stand.ask(target="/out").status == 200
    quick = time.monotonic() - started
    thread.join()
    slow = time.monotonic() - started
    assert quick < slow
    assert len(backend.requests) == 2


def test_a_body_waits_with_its_request(stand):
    backend = stand.backend()
    guarded(stand, backend)
    body = os.urandom(200000)
    assert stand.ask("POST", "/in", [credentials("bob", "b:o:b")], body).status == 200
    assert backend.requests[-1].body == body
    assert stand.ask("POST", "/in", [credentials("bob", "wrong")], body).status == 401
    assert len(backend.requests) == 1


def test_a_client_that_goes_away_while_it_waits_leaves_nothing(stand):
    backend = stand.backend()
    proxy = guarded(stand, backend)
    for _ in range(10):
        client = stand.client()
        client.request("GET", "/in", [credentials("alice", "x%d" % _)])
        client.close()
    assert wait_until(lambda: proxy.metrics().total("listener_active_requests") == 0)
    assert not backend.requests


def test_the_connection_goes_on_after_a_refusal(stand):
    backend = stand.backend()
    guarded(stand, backend)
    client = stand.client()
    for word, status in (("wrong", 401), ("wonder land", 200), ("wrong", 401), ("wonder land", 200)):
        client.request("GET", "/in", [credentials("alice", word)])
        assert client.read_response("GET").status == status


def test_the_target_learns_the_name(stand):
    backend = stand.backend()
    guarded(stand, backend, user_field="X-User")
    for _ in range(2):
        assert stand.ask(target="/in", fields=[credentials("alice", "wonder land"), ("x-user", "root")]).status == 200
        assert backend.requests[-1].all("X-User") == ["alice"]


def test_a_reload_reads_the_file_again(stand):
    backend = stand.backend()
    proxy = guarded(stand, backend)
    assert stand.ask(target="/in", fields=[credentials("alice", "wonder land")]).status == 200
    password_file(stand, ["alice:" + hashed("new")])
    proxy.reload()
    assert stand.ask(target="/in", fields=[credentials("alice", "wonder land")]).status == 401
    assert stand.ask(target="/in", fields=[credentials("alice", "new")]).status == 200
    config = proxy.config
    config["load_balancers"][0]["listeners"][0]["rules"] = []
    config["load_balancers"][0]["listeners"][0]["default_target_group"] = "web"
    proxy.reload(config)
    assert stand.ask(target="/in").status == 200


@pytest.mark.parametrize("lines, words", [
    ([], "has no users"), (["alice"], "line 3: expected NAME:HASH"), (["alice:plain"], "line 3: expected NAME:HASH"),
    (["alice:" + "$apr1$abc$abcdefghijklmnopqrstuv"], "line 3: an MD5 or SHA-1 hash"),
])
def test_a_file_that_is_of_no_use_is_refused(stand, lines, words):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], listener={"rules": [
        {"basic_auth": {"password_file": password_file(stand, lines)}, "forward": [{"target_group": "web"}]}]})
    proxy = stand.serve(config, ready=False)
    assert proxy.process.wait(30) != 0
    assert words in proxy.stderr
    stand.proxies.remove(proxy)


def test_the_process_ends_while_passwords_wait(stand):
    backend = stand.backend()
    proxy = guarded(stand, backend)
    clients = [stand.client() for _ in range(20)]
    for i, client in enumerate(clients):
        client.request("GET", "/in", [credentials("alice", str(i))])
    assert proxy.stop() == 0
