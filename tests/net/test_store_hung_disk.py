# SPDX-License-Identifier: Apache-2.0
"""A disk that does not answer: changes are told that nobody knows, traffic goes on, and the end of the process is not put off
without bound (H3)."""
import signal
import time

import pytest

from harness.disk import HungDisk
from harness.process import wait_until
from harness.store import rows


@pytest.fixture
def disk(stand):
    return HungDisk(stand.folder)


def serve(stand, disk, tmp_path, **store):
    config = stand.config(stand.backend(name="A"), store={"url": f"sqlite:{tmp_path}/store.db", "timeout_ms": 500, **store})
    proxy = stand.serve(config, env=disk.environment)
    assert wait_until(lambda: proxy.metrics().total("store_version_in_force") == 1)
    return config, proxy


def change(proxy, seconds):
    return proxy.admin_request("PATCH", "/v1/target-groups/web", {"Content-Type": "application/json"},
                               body='{"deregistration_delay_s": %d}' % seconds)


def test_a_change_is_in_doubt_and_the_process_ends_all_the_same(stand, disk, tmp_path):
    config, proxy = serve(stand, disk, tmp_path)
    disk.hang("store.db")
    status, _, body = change(proxy, 7)
    assert status == 503 and b"in_doubt" in body
    assert stand.ask().status == 200
    begun = time.monotonic()
    assert proxy.stop() == 0
    assert time.monotonic() - begun < 15
    assert "store.db has not answered for 500 ms and is not waited for: version 2 may be missing there" in proxy.stderr
    disk.release()
    again = stand.serve(config)
    version, = rows(f"{tmp_path}/store.db", "SELECT max(number) FROM versions")[0]
    assert wait_until(lambda: again.metrics().total("store_version_in_force") == version) and version in (1, 2)


def test_a_disk_that_comes_back_in_time_loses_nothing(stand, disk, tmp_path):
    _, proxy = serve(stand, disk, tmp_path, timeout_ms=20000)
    disk.hang("store.db")
    proxy.signal(signal.SIGTERM)
    time.sleep(0.3)
    disk.release()
    assert proxy.stop() == 0
    assert "not waited for" not in proxy.stderr


def test_a_last_good_copy_that_cannot_be_written_is_named(stand, disk, tmp_path):
    _, proxy = serve(stand, disk, tmp_path, last_good=f"{tmp_path}/good.json")
    disk.hang("good.json")
    for seconds in (7, 8):
        assert change(proxy, seconds)[0] == 200
    begun = time.monotonic()
    assert proxy.stop() == 0
    assert time.monotonic() - begun < 15
    assert "good.json has not answered for 3000 ms and is not waited for: it may be of a version before 3" in proxy.stderr
