# SPDX-License-Identifier: Apache-2.0
"""The store in a SQLite file: what kill -9 leaves, damaged files, full disks, old schemas, two processes (H1)."""
import os
import random
import shutil
import sqlite3
import subprocess
import time

import pytest

from harness.store import Driver, rows


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "store.db")


def url(path):
    return "sqlite:" + path


def test_versions_and_tables_are_written_together(path):
    with Driver(url(path)) as store:
        assert store.ask("load")[0] == "not-found"
        assert store.commit(0, "one", weight=5) == ("done", "1")
        assert store.commit(1, "two", weight=7, targets=3) == ("done", "2")
        assert store.commit(1, "late") == ("conflict", "2")
        assert [version[0] for version in store.ask("list 2")[2]] == [1]
        assert store.ask("get 1")[2][0][3]["target_groups"][0]["targets"][0]["weight"] == 5
    assert rows(path, "SELECT backend_id, pool_id, host, port, weight, state FROM backends ORDER BY 1") == [
        (f"web/10.0.0.{i}:80", "web", f"10.0.0.{i}", 80, 7, "PENDING") for i in range(3)]
    assert rows(path, "SELECT check_type, failure_threshold FROM health_check_policy") == [("http", 3)]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_two_hundred_kills_lose_no_acknowledged_change_and_half_apply_none(path):
    """C-147: a version and the tables beside it are one."""
    chance = random.Random(147)
    version, kills_with_progress = 0, 0
    for turn in range(200):
        store = Driver(url(path))
        begun = version
        for step in range(12):
            store.send(f"commit {version + step} turn{turn} {turn * 12 + step + 1} 10")
        for _ in range(chance.randrange(0, 11)):
            word, rest, _ = store.answer()
            assert word == "done"
            version = int(rest)
        store.kill()
        if turn % 3 == 0:
            assert rows(path, "PRAGMA integrity_check") == [("ok",)] if os.path.exists(path) else True
        if not os.path.exists(path) or not rows(path, "SELECT name FROM sqlite_master WHERE name = 'backends'"):
            assert version == 0
            continue
        newest, count, least, most = rows(
            path, "SELECT (SELECT coalesce(max(number), 0) FROM versions), count(*), min(weight), max(weight) FROM backends")[0]
        assert newest >= version
        if newest:
            document = rows(path, f"SELECT document FROM versions WHERE number = {newest}")[0][0]
            assert count == 10 and least == most and f'"weight":{least}' in document
        kills_with_progress += newest > begun
        version = newest
    assert kills_with_progress > 100


def test_old_versions_are_dropped(path):
    with Driver(url(path)) as store:
        for version in range(45):
            assert store.commit(version, f"v{version + 1}") == ("done", str(version + 1))
        assert [version[0] for version in store.ask("list")[2]] == list(range(45, 25, -1))
        assert store.ask("get 25")[0] == "not-found"


@pytest.mark.parametrize("damage", ["header", "middle", "text"])
def test_a_damaged_file_is_refused_and_left_as_it_is(path, damage):
    with Driver(url(path)) as store:
        for version in range(30):
            store.commit(version, "x", targets=200)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        if damage == "text":
            file.truncate(0)
            file.write(b"this is no database, but somebody's letter " * 100)
        else:
            file.seek(0 if damage == "header" else 4096)
            file.write(os.urandom(100 if damage == "header" else size - 4096))
    with open(path, "rb") as file:
        before = file.read()
    with Driver(url(path)) as store:
        store.wait_event("down")
        assert "it is left as it is" in store.events[0] and path in store.events[0]
        assert store.commit(30)[0] == "unavailable"
    with open(path, "rb") as file:
        assert file.read() == before


def test_a_file_that_goes_away_or_is_replaced_takes_no_change(path):
    with Driver(url(path)) as store:
        assert store.commit(0) == ("done", "1")
        os.rename(path, path + ".moved")
        assert store.commit(1)[0] == "unavailable"
        time.sleep(0.5)  # attempts to open it again
        assert store.commit(1)[0] == "unavailable" and not os.path.exists(path)
        os.rename(path + ".moved", path)
        store.wait_event("up", after=2)
        assert store.commit(1) == ("done", "2")


def test_a_schema_of_version_1_is_brought_up_to_date(path):
    """Made by hand as the first release had it."""
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE store_migrations (number BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL);
        INSERT INTO store_migrations VALUES (1, 1700000000000);
        CREATE TABLE versions (number BIGINT PRIMARY KEY, created_at BIGINT NOT NULL, who TEXT NOT NULL,
          token TEXT NOT NULL UNIQUE, diff TEXT NOT NULL, document TEXT NOT NULL, bytes BIGINT NOT NULL);
        INSERT INTO versions VALUES (7, 1700000000000, 'old', 'abc', 'first', '{"target_groups":[]}', 20);
    """)
    database.commit()
    database.close()
    with Driver(url(path), known=7) as store:
        assert store.ask("load")[2][0] == (7, "old", "first", {"target_groups": []})
        assert store.commit(7, "new", weight=3) == ("done", "8")
    assert [number for number, in rows(path, "SELECT number FROM store_migrations")] == [1, 2, 3]
    assert rows(path, "SELECT count(*) FROM backends WHERE version = 8") == [(2,)]


def test_a_schema_of_a_newer_release_is_refused(path):
    with Driver(url(path)) as store:
        store.commit(0)
    database = sqlite3.connect(path)
    database.execute("INSERT INTO store_migrations VALUES (99, 0)")
    database.commit()
    database.close()
    with Driver(url(path)) as store:
        store.wait_event("down")
        assert "newer isobar" in store.events[0]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_refuses_changes_and_keeps_what_is_there(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        path = str(folder / "store.db")
        with Driver(url(path)) as store:
            version, word = 0, "done"
            while word == "done" and version < 200:
                word, rest = store.commit(version, "x", weight=version + 1, targets=500)
                version += word == "done"
            assert word == "unavailable" and "full" in rest
            loaded = store.ask("load")[2]
            assert loaded[0][0] == version
            subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
            store.wait_event("up")
            for _ in range(100):
                word, rest = store.commit(version, "room", targets=500)
                if word == "done":
                    break
            assert (word, rest) == ("done", str(version + 1))
        assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)


def test_a_commit_of_another_process_is_noticed_and_wins(path):
    with Driver(url(path)) as one, Driver(url(path)) as two:
        assert one.commit(0) == ("done", "1")
        two.wait_event("changed 1")
        assert two.commit(0) == ("conflict", "1")
        assert two.commit(1) == ("done", "2")
        one.wait_event("changed 2")


def test_another_process_that_holds_the_lock_costs_the_deadline_only(path):
    with Driver(url(path), timeout_ms=1000) as store:
        assert store.commit(0) == ("done", "1")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        word, reason = store.commit(1)
        assert word == "unavailable" and "locked" in reason
        holder.execute("ROLLBACK")
        holder.close()
        assert store.commit(1) == ("done", "2")


def test_fifty_thousand_targets_are_written_by_difference(path):
    with Driver(url(path), timeout_ms=60000) as store:
        assert store.commit(0, "many", targets=50000) == ("done", "1")
        assert store.commit(1, "many", targets=50001) == ("done", "2")
    assert rows(path, "SELECT version, count(*) FROM backends GROUP BY version ORDER BY 1") == [(1, 50000), (2, 1)]
