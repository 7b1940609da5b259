# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of its own for a test: made by initdb in a folder of its own, as an unprivileged user, and
stopped, paused, killed and started again at will."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from .ports import free_port


def _bin(name):
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    if not found:
        raise FileNotFoundError(f"{name}: Debian's postgresql is needed")
    return found[-1]


def _as_nobody():
    """postgres refuses to run as root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class Postgres:
    """`settings` go into postgresql.conf. The superuser is "isobar", with a password that hba() may ask for."""

    PASSWORD = "s3cret"

    def __init__(self, settings=(), start=True):
        self.folder = tempfile.mkdtemp(prefix="isobar-pg-", dir="/tmp")
        os.chmod(self.folder, 0o777)
        self.data = os.path.join(self.folder, "data")
        self.port = free_port()
        self.log = os.path.join(self.folder, "log")
        self.process = None
        password = os.path.join(self.folder, "password")
        with open(password, "w", encoding="utf-8") as out:
            out.write(self.PASSWORD)
        os.chmod(password, 0o644)
        subprocess.run([_bin("initdb"), "-D", self.data, "-U", "isobar", "--no-sync", "-A", "trust", "--pwfile", password,
                        "-E", "UTF8", "--locale=C"], check=True, stdout=subprocess.DEVNULL, cwd=self.folder,
                       **_as_nobody())
        self.configure(settings)
        if start:
            self.start()

    def configure(self, settings):
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a", encoding="utf-8") as out:
            for line in settings:
                out.write(line + "\n")

    def hba(self, lines):
        with open(os.path.join(self.data, "pg_hba.conf"), "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")

    def use_certificate(self, cert_file, key_file):
        """TLS, which clients may use from the next start on."""
        for source, name, mode in ((cert_file, "server.crt", 0o644), (key_file, "server.key", 0o600)):
            target = os.path.join(self.data, name)
            shutil.copy(source, target)
            os.chmod(target, mode)
            if os.getuid() == 0:
                os.chown(target, _as_nobody()["user"], _as_nobody()["group"])
        self.configure(["ssl = on", "ssl_cert_file = 'server.crt'", "ssl_key_file = 'server.key'"])

    @property
    def url(self):
        return f"postgresql://isobar@127.0.0.1:{self.port}/postgres"

    def start(self, wait=True):
        # Durability against a power cut is not what these tests can show.
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [_bin("postgres"), "-D", self.data, "-p", str(self.port), "-k", self.folder, "-h", "127.0.0.1", "-F",
                 "-c", "shared_buffers=16MB", "-c", "max_connections=40"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **_as_nobody())
        if wait:
            self.wait()

    def wait(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                self.query("SELECT 1")
                return
            except Exception:  # psycopg2 is imported late, so its classes have no names here
                if self.process.poll() is not None:
                    with open(self.log, encoding="utf-8", errors="replace") as log:
                        raise RuntimeError("postgres ended:\n" + log.read()[-2000:]) from None
                time.sleep(0.05)
        raise RuntimeError("postgres does not answer")

    def query(self, sql, *values):
        """Rows of a statement, or None."""
        import psycopg2
        connection = psycopg2.connect(f"postgresql://isobar:{self.PASSWORD}@127.0.0.1:{self.port}/postgres",
                                      connect_timeout=10)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql, values or None)
                return cursor.fetchall() if cursor.description else None
        finally:
            connection.close()

    def _group(self):
        """The postmaster and its children, which have sessions of their own."""
        pids = [self.process.pid]
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="utf-8") as stat:
                        if int(stat.read().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                            pids.append(int(entry))
                except (OSError, ValueError):
                    continue
        return pids

    def signal_all(self, number):
        for pid in self._group():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def pause(self):
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def stop(self, how=signal.SIGINT):
        """SIGINT: a fast shutdown; SIGQUIT: an immediate one, as after a crash."""
        self.resume()
        self.process.send_signal(how)
        self.process.wait(60)

    def close(self):
        if self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)
