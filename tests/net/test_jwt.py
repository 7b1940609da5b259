# SPDX-License-Identifier: Apache-2.0
"""Rules whose requests must bring a JSON Web Token."""
import base64
import hashlib
import hmac
import json
import os
import subprocess
import time

import pytest

from harness.process import wait_until
from harness.tls import openssl

SECRET = b"0123456789abcdef0123456789abcdef"


def b64(data):
    if isinstance(data, dict):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Keys:
    """An RSA, a P-256 and a secret key, and tokens that they sign."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.rsa, self.ec = os.path.join(self.folder, "rsa.key"), os.path.join(self.folder, "ec.key")
        openssl("genrsa", "-out", self.rsa, "2048")
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.ec)
        modulus = openssl("rsa", "-in", self.rsa, "-noout", "-modulus").split("=")[1].strip()
        point = subprocess.run(["openssl", "ec", "-in", self.ec, "-pubout", "-outform", "DER"], capture_output=True, check=True).stdout
        self.jwks = {"keys": [
            {"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": "other"},
            {"kty": "RSA", "kid": "r", "alg": "RS256", "use": "sig", "n": b64(bytes.fromhex(modulus)), "e": "AQAB"},
            {"kty": "EC", "kid": "e", "crv": "P-256", "x": b64(point[-64:-32]), "y": b64(point[-32:])},
            {"kty": "oct", "kid": "h", "k": b64(SECRET)}]}
        self.file = os.path.join(self.folder, "jwks.json")
        self.write()

    def write(self):
        with open(self.file, "w", encoding="ascii") as out:
            json.dump(self.jwks, out)

    def sign(self, algorithm, data):
        if algorithm == "HS256":
            return hmac.new(SECRET, data, hashlib.sha256).digest()
        key = self.rsa if algorithm == "RS256" else self.ec
        der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=data, capture_output=True, check=True).stdout
        if algorithm == "RS256":
            return der
        r_len = der[3]
        r, s = der[4:4 + r_len], der[4 + r_len + 2:]
        return b"".join(n.lstrip(b"\0").rjust(32, b"\0") for n in (r, s))

    def token(self, algorithm="RS256", kid="r", head=None, **claims):
        body = {"sub": "alice", "exp": int(time.time()) + 600, **claims}
        data = b64({"alg": algorithm, "kid": kid, **(head or {})}) + "." + b64({k: v for k, v in body.items() if v is not None})
        return data + "." + b64(self.sign(algorithm, data.encode()))


def guarded(stand, keys, backend, **jwt):
    return stand.proxy(backend, listener={"rules": [
        {"match": {"path_prefix": "/in"}, "jwt": {"jwks_file": keys.file, **jwt}, "forward": [{"target_group": "web"}]}]})


def ask(stand, token=None, fields=(), target="/in"):
    return stand.ask(target=target, fields=list(fields) + ([("Authorization", "Bearer " + token)] if token else []))


@pytest.mark.parametrize("algorithm, kid", [("RS256", "r"), ("ES256", "e"), ("HS256", "h")])
def test_a_token_that_a_key_has_signed_is_good(stand, algorithm, kid):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend)
    token = keys.token(algorithm, kid)
    assert ask(stand, token).status == 200
    head, body, signature = token.split(".")
    forged = b64({"sub": "root", "exp": int(time.time()) + 600})
    for bad in (f"{head}.{forged}.{signature}", f"{head}.{body}.{signature[:-4]}AAAA", f"{head}.{body}."):
        response = ask(stand, bad)
        assert response.status == 401 and response.get("WWW-Authenticate") == 'Bearer error="invalid_token"'
    assert len(backend.requests) == 1


def test_without_a_token_the_answer_says_what_is_wanted(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend)
    for fields in ((), [("Authorization", "Basic YTpi")], [("Authorization", "Bearer")]):
        response = ask(stand, fields=list(fields) + [("Accept", "application/json")])
        assert response.status == 401 and response.get("WWW-Authenticate") == "Bearer"
        assert b"no-credentials" in response.body
    assert ask(stand, target="/out").status == 200


def test_a_token_cannot_choose_its_algorithm(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend)
    body = b64({"sub": "root", "exp": int(time.time()) + 600})
    none = b64({"alg": "none"}) + "." + body + "."
    with open(keys.rsa, "rb") as pem:
        public = subprocess.run(["openssl", "rsa", "-pubout"], input=pem.read(), capture_output=True, check=True).stdout
    data = b64({"alg": "HS256", "kid": "r"}) + "." + body
    confused = data + "." + b64(hmac.new(public, data.encode(), hashlib.sha256).digest())
    for token in (none, confused, keys.token("RS256", "e"), keys.token("RS256", "unknown"), keys.token("RS256", "r", head={"crit": ["x"]})):
        assert ask(stand, token).status == 401
    assert not backend.requests


def test_time_counts(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend, leeway_s=5)
    now = int(time.time())
    for claims, word in (({"exp": now - 60}, b"token-expired"), ({"nbf": now + 60}, b"token-expired"), ({"exp": None}, b"token-expired"),
                         ({"exp": "soon"}, b"token-expired")):
        response = ask(stand, keys.token(**claims), fields=[("Accept", "application/json")])
        assert response.status == 401 and word in response.body, claims
    assert ask(stand, keys.token(exp=now - 1)).status == 200  # within the leeway
    assert ask(stand, keys.token(nbf=now - 1)).status == 200


def test_issuer_and_audience(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend, issuer="https://id.example/", audience=["shop", "api"])
    good = {"iss": "https://id.example/", "aud": "shop"}
    assert ask(stand, keys.token(**good)).status == 200
    assert ask(stand, keys.token(**{**good, "aud": ["x", "api"]})).status == 200
    for bad in ({"iss": "https://evil.example/"}, {"iss": None}, {"aud": "other"}, {"aud": None}, {"aud": []}):
        assert ask(stand, keys.token(**{**good, **bad})).status == 401, bad


def test_claims_go_to_the_target_and_nothing_of_the_client_in_their_place(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend, claims={"X-User": "sub", "X-Level": "level", "X-Mail": "mail"})
    assert ask(stand, keys.token(sub="al\u00efce/1", level=7), fields=[("X-User", "root"), ("x-mail", "root@x")]).status == 200
    request = backend.requests[-1]
    assert request.get("X-User").encode("latin-1").decode() == "al\u00efce/1"
    assert request.get("X-Level") == "7" and request.get("X-Mail") is None
    assert ask(stand, keys.token(sub="a\r\nX-Evil: 1")).status == 200
    assert backend.requests[-1].get("X-User") is None and backend.requests[-1].get("X-Evil") is None


def test_a_cookie_may_bring_it(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend, cookie="session")
    assert ask(stand, fields=[("Cookie", "a=b; session=" + keys.token())]).status == 200
    assert ask(stand, keys.token()).status == 200


def test_malformed_tokens_do_no_harm(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    guarded(stand, keys, backend)
    for token in (".", "..", "a.b.c", "e30.e30.e30", "x" * 9000, b64(b"{" * 200) + ".e30.AA", "e30.e30.e30.e30", b64(b'{"alg":1}') + ".e30.AA",
                  b64(b'{"alg":"RS256","kid":5}') + ".e30.AAAA", "e30=.e30.AA"):
        assert ask(stand, token).status == 401, token
    assert not backend.requests


def test_new_keys_come_with_a_reload(stand):
    keys, backend = Keys(stand.folder), stand.backend()
    proxy = guarded(stand, keys, backend)
    old = keys.token()
    assert ask(stand, old).status == 200
    keys.jwks["keys"] = [key for key in keys.jwks["keys"] if key["kid"] != "r"]
    keys.write()
    proxy.reload()
    assert ask(stand, old).status == 401
    assert ask(stand, keys.token("ES256", "e")).status == 200
    with open(keys.file, "w", encoding="ascii") as out:
        out.write("{}")
    proxy.reload()
    assert ask(stand, keys.token("ES256", "e")).status == 200
    assert "has no key for RS256" in proxy.stderr


def test_a_file_that_is_not_there_is_named(stand):
    config = stand.config([{"ip": "127.0.0.1", "port": 9}], listener={"rules": [
        {"jwt": {"jwks_file": "/nowhere/jwks.json"}, "forward": [{"target_group": "web"}]}]})
    proxy = stand.serve(config, ready=False)
    assert proxy.process.wait(30) != 0
    assert "jwks_file /nowhere/jwks.json: cannot be read" in proxy.stderr
    stand.proxies.remove(proxy)


def test_a_token_that_is_known_still_expires_and_falls_with_its_key(stand):
    """What a worker remembers is that the signature was good, by these keys; nothing else."""
    keys, backend = Keys(stand.folder), stand.backend()
    proxy = guarded(stand, keys, backend, leeway_s=0, audience=["us"], claims={"X-User": "sub"})
    short = keys.token("RS256", "r", exp=int(time.time()) + 3, aud="us")
    long, elsewhere = (keys.token("RS256", "r", aud=aud) for aud in ("us", "them"))
    for _ in range(3):
        assert [ask(stand, token).status for token in (short, long, elsewhere)] == [200, 200, 401]
    assert [request.get("X-User") for request in backend.requests] == ["alice"] * 6
    body = b64({"sub": "root", "aud": "us", "exp": int(time.time()) + 600})
    head, _, signature = long.split(".")
    assert ask(stand, f"{head}.{body}.{signature}").status == 401
    assert wait_until(lambda: ask(stand, short).status == 401)
    assert ask(stand, long).status == 200
    keys.jwks["keys"] = [key for key in keys.jwks["keys"] if key["kid"] != "r"]
    keys.write()
    proxy.reload()
    assert ask(stand, long).status == 401
