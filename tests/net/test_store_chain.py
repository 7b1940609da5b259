# SPDX-License-Identifier: Apache-2.0
"""Large documents of which a version keeps only what changed (src/store/chain.h): read back whole, in SQLite and PostgreSQL,
after kill -9, after retention, and never put on top of another document than they were made for."""
import os
import random
import sqlite3
import time

import pytest

from harness.postgres import Postgres
from harness.store import Driver

OTHERS = 2200  # groups that stay the same: a document of 143 KB


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """(URL, a function that asks SQL)"""
    if request.param == "postgres":
        server = Postgres()
        request.addfinalizer(server.close)
        return server.url, server.query
    path = str(tmp_path / "store.db")

    def query(sql):
        connection = sqlite3.connect(path, timeout=10)
        try:
            with connection:
                return connection.execute(sql).fetchall()
        finally:
            connection.close()
    return "sqlite:" + path, query


@pytest.fixture
def url(database):
    return database[0]


@pytest.fixture
def query(database):
    return database[1]


def commit(store, expected, word, weight=1):
    return store.ask(f"commit {expected} {word} {weight} 10 {OTHERS}")[:2]


def check(document, word):
    web, others = document["target_groups"][0], document["target_groups"][1:]
    assert web["health_check"]["path"] == "/" + word
    assert [group["name"] for group in others] == [f"other-{i}" for i in range(OTHERS)]


def test_a_version_keeps_what_changed_and_is_read_whole(url, query):
    with Driver(url) as store:
        for version in range(10):
            assert commit(store, version, f"w{version + 1}") == ("done", str(version + 1))
        for version in range(10):
            check(store.ask(f"get {version + 1}")[2][0][3], f"w{version + 1}")
        check(store.ask("load")[2][0][3], "w10")
        assert [version[3] for version in store.ask("list")[2]] == [None] * 10
    sizes = [int(size) for size, in query("SELECT bytes FROM versions ORDER BY number")]
    assert sizes[0] > 90000 and max(sizes[1:]) < 2000
    assert query("SELECT number FROM versions WHERE head IS NULL") == [(1,)]
    with Driver(url, known=10) as store:
        check(store.ask("load")[2][0][3], "w10")
        assert commit(store, 10, "w11") == ("done", "11")
    assert query("SELECT number FROM versions WHERE head IS NULL ORDER BY number") == [(1,), (11,)], \
        "after a start the first one is whole"


def test_retention_keeps_the_whole_document_that_others_need(url, query):
    """The driver keeps 20 versions."""
    with Driver(url) as store:
        for version in range(90):
            assert commit(store, version, f"w{version + 1}") == ("done", str(version + 1))
        wholes = [number for number, in query("SELECT number FROM versions WHERE head IS NULL ORDER BY number")]
        kept = [number for number, in query("SELECT number FROM versions ORDER BY number")]
        assert wholes == [66] and kept == list(range(66, 91)), "a chain has 64 rows behind its first"
        for version in (66, 71, 90):
            check(store.ask(f"get {version}")[2][0][3], f"w{version}")
        assert store.ask("get 65")[0] == "not-found"
        assert store.ask("get 91")[0] == "not-found"


def test_a_commit_of_another_node_in_between_is_built_on_by_neither(url):
    with Driver(url) as one, Driver(url) as other:
        assert commit(one, 0, "a") == ("done", "1") and commit(one, 1, "b") == ("done", "2")
        assert commit(other, 1, "c") == ("conflict", "2")
        assert commit(other, 2, "d") == ("done", "3")
        assert commit(one, 2, "e") == ("conflict", "3")
        assert commit(one, 3, "f") == ("done", "4") and commit(one, 4, "g") == ("done", "5")
        for version, word in enumerate("abdfg", 1):
            check(other.ask(f"get {version}")[2][0][3], word)


def test_another_document_with_the_same_number_is_a_conflict(url, query):
    """As after a failover to a standby that had not heard of the last change."""
    with Driver(url) as store:
        assert commit(store, 0, "a") == ("done", "1") and commit(store, 1, "b") == ("done", "2")
        query("UPDATE versions SET token = 'another', document = '{}', head = NULL WHERE number = 2")
        assert commit(store, 2, "c") == ("conflict", "2")
        assert store.ask("get 2")[2][0][3] == {}
        assert commit(store, 2, "d") == ("done", "3")
        check(store.ask("load")[2][0][3], "d")


def test_a_chain_that_lost_a_row_is_not_put_together(url, query):
    with Driver(url) as store:
        for version in range(4):
            assert commit(store, version, f"w{version + 1}") == ("done", str(version + 1))
        query("DELETE FROM versions WHERE number = 3")
        word, reason, _ = store.ask("load")
        assert word == "unavailable" and "version 4 is what changed in version 3" in reason
        check(store.ask("get 2")[2][0][3], "w2")
        assert store.ask("get 3")[0] == "not-found"


def test_kills_lose_no_acknowledged_change_of_a_chain(url, query):
    """C-147: what is read back is the last version that was answered, or the one that was under way."""
    chance = random.Random(4)
    version, weight, middles = 0, 0, 0
    for turn in range(25):
        store = Driver(url, known=version, timeout_ms=20000)
        store.wait_event("up")
        for step in range(chance.randrange(1, 8)):
            assert commit(store, version, f"t{turn}-{step}", weight + 1) == ("done", str(version + 1))
            version, weight = version + 1, weight + 1
        store.send(f"commit {version} t{turn}-last {weight + 1} 10 {OTHERS}")
        time.sleep(chance.random() * 0.02)
        store.kill()
        with Driver(url, known=version, timeout_ms=20000) as reader:
            reader.wait_event("up")
            number, _, word, document = reader.ask("load")[2][0]
        assert number in (version, version + 1)
        check(document, word)
        newest = document["target_groups"][0]["targets"][0]["weight"]
        assert newest == weight + (number - version)
        assert query("SELECT min(weight), max(weight) FROM backends WHERE pool_id = 'web'") == [(newest, newest)]
        version, weight = number, newest
        middles = query("SELECT count(*) FROM versions WHERE head IS NOT NULL")[0][0]
    assert middles > 5


def test_a_commit_writes_little(tmp_path):
    path = str(tmp_path / "store.db")
    with Driver("sqlite:" + path) as store:
        for version in range(60):
            assert commit(store, version, f"w{version + 1}")[0] == "done"
    assert os.path.getsize(path) < 1 << 20, "60 whole documents are 6 MiB"
