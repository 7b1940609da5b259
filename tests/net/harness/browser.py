# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, told what to do over its DevTools pipe (one JSON message after the other, each with a NUL behind
it), so that nothing but the browser is needed. Every page is in a context of its own: cookies, connections and what the
browser remembers of hosts are not shared. Names that end in .example lead to 127.0.0.1."""
import base64
import hashlib
import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import threading

from .process import wait_until

# As root there is no sandbox to be had; the rest keeps the browser from looking for its maker's hosts, from turning http
# into https by itself, and from slowing down what it believes to be in the background.
OPTIONS = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
           "--disable-sync", "--disable-default-apps", "--disable-extensions", "--disable-quic", "--disable-breakpad",
           "--disable-dev-shm-usage", "--disable-background-timer-throttling", "--no-proxy-server",
           "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LocalNetworkAccessChecks,Translate",
           "--host-resolver-rules=MAP *.example 127.0.0.1"]


def find_browser():
    """Chromium's path; None where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def key_hash(certificate):
    """The hash of a certificate's public key, by which the browser is told to trust it."""
    public = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], capture_output=True, check=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, capture_output=True, check=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class BrowserError(AssertionError):
    """The browser, or the page's script, says that something failed."""


class Browser:
    """A running browser that trusts one certificate."""

    def __init__(self, folder, certificate):
        self.folder = str(folder)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # It reads from descriptor 3 and writes to 4; a small program of its own puts the pipes there.
        wiring = ("import os, sys; high = [os.dup2(int(fd), 100 + n) for n, fd in enumerate(sys.argv[1:3])]; "
                  "[os.dup2(fd, 3 + n) for n, fd in enumerate(high)]; os.closerange(5, 200); os.execv(sys.argv[3], sys.argv[3:])")
        options = OPTIONS + (["--no-sandbox"] if os.geteuid() == 0 else [])
        with open(os.path.join(self.folder, "browser.log"), "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", wiring, str(theirs_in), str(theirs_out), find_browser(), *options,
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder}/profile",
                 f"--ignore-certificate-errors-spki-list={key_hash(certificate)}", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(theirs_in, theirs_out), start_new_session=True,
                env={**os.environ, "HOME": self.folder, "XDG_CONFIG_HOME": self.folder, "XDG_CACHE_HOME": self.folder})
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output = os.fdopen(ours_out, "wb", buffering=0), os.fdopen(ours_in, "rb", buffering=0)
        self.numbers, self.lock, self.answers = itertools.count(1), threading.Lock(), {}
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.version = self.call("Browser.getVersion", timeout_s=120)["product"]

    def _read(self):
        pending = bytearray()
        while True:
            data = self.output.read(1 << 16)
            if not data:
                break
            pending += data
            *messages, rest = pending.split(b"\0")
            pending = bytearray(rest)
            for message in map(json.loads, messages):
                with self.lock:
                    waiting = self.answers.pop(message.get("id"), None)
                if waiting:
                    waiting.put(message)
        with self.lock:
            for waiting in self.answers.values():
                waiting.put({"error": {"message": "the browser ended"}})

    def call(self, method, session=None, timeout_s=60, **params):
        """A DevTools call and its result."""
        number, answer = next(self.numbers), queue.Queue()
        with self.lock:
            self.answers[number] = answer
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.input.write(json.dumps(message).encode() + b"\0")
        try:
            answer = answer.get(timeout=timeout_s)
        except queue.Empty:
            raise BrowserError(f"{method}: no answer in {timeout_s} s") from None
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def page(self):
        return Page(self)

    def stop(self):
        try:
            self.call("Browser.close", timeout_s=10)
            self.process.wait(20)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            pass
        # Its helpers are in its process group; none may outlive the test.
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.input.close()


class Page:
    """A tab in a context of its own."""

    def __init__(self, browser):
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, timeout_s=60, **params):
        return self.browser.call(method, session=self.session, timeout_s=timeout_s, **params)

    def open(self, url):
        """Goes to a page and waits until it is loaded; raises what the browser says when it cannot be."""
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise BrowserError(f"{url}: {failure}")
        assert wait_until(lambda: self.run("return document.readyState") == "complete", 60), f"{url} is never loaded"

    def run(self, script, timeout_s=60):
        """Runs the body of an async function in the page and returns what it returns."""
        result = self.call("Runtime.evaluate", timeout_s=timeout_s, expression="(async () => {" + script + "\n})()",
                           awaitPromise=True, returnByValue=True)
        failure = result.get("exceptionDetails")
        if failure:
            thrown = failure.get("exception", {})
            raise BrowserError(thrown.get("description") or repr(thrown.get("value", failure.get("text"))))
        return result["result"].get("value")

    def screenshot(self, file):
        """The page as a PNG."""
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        """Ends the context with all its connections."""
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)
