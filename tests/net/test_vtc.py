# SPDX-License-Identifier: Apache-2.0
"""The black-box rules of tests/conformance/vtc, run by Debian's varnishtest: it plays both the client and the origin."""
import os
import shutil
import subprocess

import pytest

from harness.ports import free_port
from harness.process import ROOT

FOLDER = os.path.join(ROOT, "tests/conformance/vtc")


@pytest.mark.parametrize("rule", sorted(name[:-4] for name in os.listdir(FOLDER) if name.endswith(".vtc")))
def test_vtc(stand, rule):
    if not shutil.which("varnishtest"):
        pytest.skip("varnishtest is not installed (package varnish)")
    origin = free_port()
    proxy = stand.proxy({"ip": "127.0.0.1", "port": origin})
    port = proxy.config["load_balancers"][0]["listeners"][0]["port"]
    done = subprocess.run(
        ["varnishtest", "-t", "60", "-D", f"proxy=127.0.0.1:{port}", "-D", "phost=127.0.0.1", "-D", f"pport={port}",
         "-D", f"origin=127.0.0.1:{origin}", os.path.join(FOLDER, rule + ".vtc")],
        capture_output=True, text=True, timeout=120, env={**os.environ, "TMPDIR": stand.folder})
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if line.startswith("----")) or done.stdout
