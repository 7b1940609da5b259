# SPDX-License-Identifier: Apache-2.0
"""What may differ with the TLS library that isobar was built with, and must not: -Dtls=openssl, boringssl or aws-lc."""
import json
import re

import pytest

from harness.process import tls_library
from harness.stand import address_of
from harness.tls import Authority, openssl


@pytest.fixture
def ca(tmp_path):
    folder = tmp_path / "certs"
    folder.mkdir()
    return Authority(folder)


def serve(stand, certificates, **tls):
    return stand.serve(stand.config(
        stand.backend(), listener={"protocol": "HTTPS", "certificates": [c["name"] for c in certificates],
                                   **({"tls": tls} if tls else {})}, certificates=certificates))


def test_two_libraries_never_share_their_names(stand, ca):
    """libpq brings OpenSSL: another library with the same names may then be inside the program only."""
    proxy = serve(stand, [ca.issue("t", "t.example")])
    with open(f"/proc/{proxy.process.pid}/maps", encoding="utf-8") as maps:
        loaded = set(re.findall(r"/(lib(?:ssl|crypto)\.so\S*)$", maps.read(), re.M))
    by_name = {name.split(".")[0]: {n for n in loaded if n.startswith(name)} for name in ("libssl.", "libcrypto.")}
    assert all(len(found) <= 1 for found in by_name.values()), loaded
    if tls_library() == "OpenSSL":
        assert loaded == {"libssl.so.3", "libcrypto.so.3"}


@pytest.mark.parametrize("options, kind", [
    ([], "ec"),
    (["-sigalgs", "ECDSA+SHA256"], "ec"),
    (["-sigalgs", "RSA-PSS+SHA256"], "rsa"),
    (["-sigalgs", "ECDSA+SHA384:RSA-PSS+SHA256"], "rsa"),  # no signature of the key's own curve
    (["-tls1_2"], "ec"),
    (["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], "rsa"),
    (["-tls1_2", "-sigalgs", "RSA+SHA256"], "rsa"),
    (["-tls1_2", "-curves", "P-384", "-sigalgs", "ECDSA+SHA384:RSA+SHA256"], "rsa"),  # a curve that is not the key's
], ids=str)
def test_A5_of_two_kinds_of_certificates_a_client_gets_the_one_it_can_use(stand, ca, options, kind):
    certs = [ca.issue("rsa", "t.example", kind="rsa", subject="/CN=the-rsa-one"),
             ca.issue("ec", "t.example", subject="/CN=the-ec-one")]
    proxy = serve(stand, certs)
    text = openssl("s_client", "-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example", *options, data=b"")
    assert f"CN = the-{kind}-one" in text


def test_A5_each_kind_of_certificate_has_its_own_staple(stand, ca):
    certs = [ca.issue("rsa", "t.example", kind="rsa"), ca.issue("ec", "t.example")]
    proxy = serve(stand, [{**cert, "ocsp_file": ca.ocsp_answer(cert)} for cert in certs])
    for cert, scheme in zip(certs, ("RSA-PSS+SHA256", "ECDSA+SHA256")):
        text = openssl("s_client", "-connect", "%s:%d" % address_of(proxy.config), "-servername", "t.example", "-status",
                       "-sigalgs", scheme, data=b"")
        serial = openssl("x509", "-in", cert["cert_file"], "-noout", "-serial").split("=")[1].strip()
        assert re.search(r"Serial Number: (\S+)", text)[1] == serial


def test_C_127_a_list_of_ciphers_that_the_library_has_not_is_refused(stand, ca, tmp_path):
    cert = ca.issue("t", "t.example")

    def check(**tls):
        config = stand.config(stand.backend(), listener={"protocol": "HTTPS", "certificates": ["t"], "tls": tls},
                              certificates=[cert])
        (tmp_path / "check.json").write_text(json.dumps(config))
        return stand.isobar("check", str(tmp_path / "check.json"))
    status, _, err = check(ciphers="ECDHE-ECDSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384")
    if tls_library() == "OpenSSL":
        assert status == 0
    else:
        assert status == 1 and f"expected a list of names that {tls_library()} knows, all of them" in err
    assert check(ciphers="HIGH:!aNULL")[0] == 0


def test_H2_a_store_that_the_build_cannot_open_is_refused_by_check(stand, tmp_path):
    config = stand.config(stand.backend(), store={"url": "postgresql://db.example/isobar"})
    (tmp_path / "check.json").write_text(json.dumps(config))
    status, out, err = stand.isobar("check", str(tmp_path / "check.json"))
    if tls_library() == "BoringSSL" and status:
        assert "/store/url: is of PostgreSQL, which this build is without" in err and "BoringSSL" in err
    else:
        assert status == 0, out + err
