# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests on real processes. ISOBAR names the binary; without it build/src/cli/isobar is used."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
# Proxies of the surroundings have no business between a test and 127.0.0.1.
for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
    os.environ.pop(name, None)

from harness.process import ISOBAR  # noqa: E402
from harness.stand import Stand  # noqa: E402
from harness.redis import Redis  # noqa: E402


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    setattr(item, "failed_" + report.when, report.failed)
    if report.failed and report.when == "call" and "stand" in item.funcargs:
        for proxy in item.funcargs["stand"].proxies:
            text = proxy.stderr
            if text:
                report.sections.append(("stderr of isobar", text[-6000:]))


@pytest.fixture
def stand(request, tmp_path):
    """A Stand that is judged when the test passed and only ended when it failed."""
    if not os.access(ISOBAR, os.X_OK):
        pytest.fail(f"{ISOBAR} is not there: build first, or name another with ISOBAR")
    here = Stand(tmp_path)
    yield here
    if getattr(request.node, "failed_call", False):
        here.abandon()
    else:
        try:
            here.part()
        finally:
            here.abandon()


@pytest.fixture
def servers():
    """Stores that a test starts; they end with it."""
    started = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture
def redis(tmp_path, servers):
    servers.append(Redis(tmp_path))
    return servers[0]
