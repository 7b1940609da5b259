# SPDX-License-Identifier: Apache-2.0
"""What `./run` without arguments starts, and that nothing of it is left behind."""
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from harness.process import ISOBAR, ROOT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_serves_and_ends_with_everything_it_started(number):
    demo = subprocess.Popen([sys.executable, os.path.join(ROOT, "examples/demo.py"), ISOBAR], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True)
    try:
        text = ""
        while "Ctrl-C ends" not in text:
            line = demo.stdout.readline()
            assert line, text
            text += line
        urls = re.findall(r"http://\S+", text)
        assert len(urls) == 5
        for url in urls:
            assert urllib.request.urlopen(url, timeout=20).status == 200
        with open(f"/proc/{demo.pid}/task/{demo.pid}/children", encoding="ascii") as children:
            pids = children.read().split()
        assert len(pids) == 4
        demo.send_signal(number)
        assert demo.wait(40) == 0
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    finally:
        demo.kill()
        demo.wait()
