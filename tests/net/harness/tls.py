# SPDX-License-Identifier: Apache-2.0
"""Certificates made by the openssl command, and TLS clients and backends on the usual wires."""
import os
import ssl
import subprocess

from .backend import Backend, RecordingWire
from .wire import Wire, connect


def openssl(*args, data=None, ok=True):
    """The openssl command's output, both streams."""
    done = subprocess.run(["openssl", *args], input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          check=False)
    assert not ok or done.returncode == 0, done.stdout.decode(errors="replace")
    return done.stdout.decode(errors="replace")


class Authority:
    """A CA in a folder, and what it signs."""

    def __init__(self, folder, name="ca"):
        self.folder = str(folder)
        self.name = name
        self.file, self.key = self.path(name + ".pem"), self.path(name + ".key")
        openssl("req", "-x509", *self.key_options("ec"), "-nodes", "-keyout", self.key, "-out", self.file, "-days", "30",
                "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def key_options(kind):
        return ["-newkey", "rsa:2048"] if kind == "rsa" else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

    def issue(self, name, *hosts, kind="ec", days=30, subject=None, usage="serverAuth,clientAuth"):
        """A certificate with its key: {name, cert_file, key_file} for the configuration."""
        cert, key, request, extensions = (self.path(name + suffix) for suffix in (".pem", ".key", ".csr", ".ext"))
        openssl("req", "-utf8", *self.key_options(kind), "-nodes", "-keyout", key, "-out", request,
                "-subj", subject or f"/CN={hosts[0] if hosts else name}")
        with open(extensions, "w", encoding="ascii") as text:
            names = ",".join(("IP:" if host[0].isdigit() else "DNS:") + host for host in hosts)
            text.write((f"subjectAltName={names}\n" if hosts else "") + f"extendedKeyUsage={usage}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-out", cert,
                "-days", str(days), "-extfile", extensions)
        return {"name": name, "cert_file": cert, "key_file": key}

    def ocsp_answer(self, certificate):
        """A file with our word that the certificate is good."""
        index, answer = self.path("index.txt"), self.path(certificate["name"] + ".der")
        serial = openssl("x509", "-in", certificate["cert_file"], "-noout", "-serial").split("=")[1].strip()
        with open(index, "w", encoding="ascii") as text:
            text.write(f"V\t351231235959Z\t\t{serial}\tunknown\t/CN=t.example\n")
        openssl("ocsp", "-index", index, "-rsigner", self.file, "-rkey", self.key, "-CA", self.file, "-issuer", self.file,
                "-cert", certificate["cert_file"], "-respout", answer, "-ndays", "7")
        return answer

    def context(self, client=None, verify=True):
        """A client's context that trusts this authority; `client` is a certificate of its own."""
        context = ssl.create_default_context(cafile=self.file)
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if client:
            context.load_cert_chain(client["cert_file"], client["key_file"])
        return context


def tls_wire(address, context, name="t.example", session=None, timeout_s=20):
    """A Wire over TLS; raises ssl.SSLError when the handshake fails."""
    plain = connect(address, timeout_s)
    try:
        sock = context.wrap_socket(plain.sock, server_hostname=name, session=session, suppress_ragged_eofs=False)
    except BaseException:
        plain.close()
        raise
    return Wire(sock, timeout_s)


def shown_name(wire):
    """The common name of the certificate that the peer showed."""
    return dict(pair[0] for pair in wire.sock.getpeercert()["subject"])["commonName"]


class TlsBackend(Backend):
    """A backend that speaks TLS with a certificate; `context` may be changed before it starts."""

    def __init__(self, certificate, script=None, client_ca=None, **options):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate["cert_file"], certificate["key_file"])
        if client_ca:
            self.context.load_verify_locations(client_ca)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.names = []
        self.context.sni_callback = lambda sock, name, context: self.names.append(name)
        super().__init__(script, **options)

    def wire(self, sock):
        # The handshake is made by the first read, in the connection's own thread.
        return RecordingWire(self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False,
                                                      suppress_ragged_eofs=False), self)
