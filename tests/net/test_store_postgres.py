# SPDX-License-Identifier: Apache-2.0
"""The store in a real PostgreSQL: versions, tables, two writers, news between nodes, and a server that stops, pauses,
crashes and comes back (H1, H3)."""
import signal
import threading
import time

import pytest

from harness.breaker import Breaker
from harness.postgres import Postgres
from harness.process import wait_until
from harness.store import Driver
from harness.tls import Authority


@pytest.fixture
def postgres():
    server = Postgres()
    yield server
    server.close()


def test_versions_and_tables_are_written_together(postgres):
    with Driver(postgres.url) as store:
        assert store.ask("load")[0] == "not-found"
        assert store.commit(0, "one", weight=5) == ("done", "1")
        assert store.commit(1, "two", weight=7, targets=3) == ("done", "2")
        assert store.ask("load")[2][0][3]["target_groups"][0]["health_check"]["path"] == "/two"
        assert [version[0] for version in store.ask("list")[2]] == [2, 1]
        assert store.ask("get 1")[2][0][3]["target_groups"][0]["targets"][0]["weight"] == 5
        assert store.ask("get 9")[0] == "not-found"
    assert postgres.query("SELECT backend_id, pool_id, host, port, weight, state FROM backends ORDER BY 1") == [
        (f"web/10.0.0.{i}:80", "web", f"10.0.0.{i}", 80, 7, "PENDING") for i in range(3)]
    assert postgres.query("SELECT pool_id, algorithm, health_check_policy_id, version FROM pools") == [
        ("web", "p2c_least_request", "web", 1)]
    assert postgres.query("SELECT check_type, failure_threshold FROM health_check_policy") == [("http", 3)]


def test_a_target_keeps_its_row_and_one_that_is_gone_loses_it(postgres):
    with Driver(postgres.url) as store:
        store.commit(0, targets=3)
        postgres.query("UPDATE backends SET state = 'ACTIVE'")
        since = postgres.query("SELECT registered_at FROM backends ORDER BY backend_id")
        time.sleep(0.01)
        store.commit(1, weight=9, targets=2)
    rows = postgres.query("SELECT backend_id, weight, state, registered_at FROM backends ORDER BY 1")
    assert rows == [(f"web/10.0.0.{i}:80", 9, "ACTIVE", since[i][0]) for i in range(2)]


def test_of_two_writers_one_wins_and_the_other_hears_the_version(postgres):
    with Driver(postgres.url) as one, Driver(postgres.url) as two:
        version = 0
        for turn in range(30):
            one.send(f"commit {version} one{turn} 1")
            two.send(f"commit {version} two{turn} 1")
            answers = sorted([one.answer()[:2], two.answer()[:2]])
            version += 1
            assert answers == [("conflict", str(version)), ("done", str(version))]


def test_a_commit_wakes_the_other_node_and_not_itself(postgres):
    with Driver(postgres.url) as one, Driver(postgres.url) as two:
        one.wait_event("up"), two.wait_event("up")
        began = time.monotonic()
        assert one.commit(0) == ("done", "1")
        two.wait_event("changed 1")
        assert time.monotonic() - began < 2.5, "the notification came, and not the next look"
        assert not [event for event in one.events if event.startswith("changed")]


def test_a_stopped_server_refuses_changes_at_once_and_is_found_again(postgres):
    with Driver(postgres.url) as store:
        assert store.commit(0) == ("done", "1")
        postgres.stop()
        store.wait_event("down")
        began = time.monotonic()
        word, reason = store.commit(1)
        assert word == "unavailable" and reason and time.monotonic() - began < 1
        postgres.start()
        at = store.wait_event("up", after=2)
        assert at and store.commit(1) == ("done", "2")
    assert postgres.query("SELECT count(*) FROM versions") == [(2,)]


def test_a_change_of_another_node_during_an_outage_is_noticed(postgres):
    with Driver(postgres.url) as one:
        assert one.commit(0) == ("done", "1")
        postgres.stop(signal.SIGQUIT)
        down = one.wait_event("down")
        postgres.start(wait=False)
        with Driver(postgres.url, timeout_ms=20000) as two:
            two.wait_event("up")
            assert two.commit(1) == ("done", "2")
            one.wait_event("changed 2", after=down)


def test_a_paused_server_is_left_after_the_deadline_and_nothing_changes(postgres):
    with Driver(postgres.url, timeout_ms=1000) as store:
        assert store.commit(0) == ("done", "1")
        postgres.pause()
        began = time.monotonic()
        word, _ = store.commit(1, "lost")
        took_s = time.monotonic() - began
        assert word == "unavailable" and 0.9 < took_s < 10
        assert store.commit(1, "lost")[0] == "unavailable"
        postgres.resume()
        store.wait_event("up", after=2)
        assert store.commit(1, "kept") == ("done", "2")
        assert [version[2] for version in store.ask("list")[2]] == ["kept", "x"]


def test_an_idle_connection_to_a_paused_server_is_noticed(postgres):
    with Driver(postgres.url, timeout_ms=1000) as store:
        store.wait_event("up")
        postgres.pause()
        store.wait_event("down it did not answer")
        postgres.resume()
        store.wait_event("up", after=2)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_no_acknowledged_change_is_lost_while_the_server_restarts(postgres, how):
    """A commit whose connection breaks is answered with the truth or as in doubt."""
    acknowledged, refused, doubted = [], [], []
    end = threading.Event()

    def write(store):
        expected = 0
        turn = 0
        while not end.is_set():
            turn += 1
            word, rest = store.commit(expected, f"turn{turn}")
            if word == "done":
                expected = int(rest)
                acknowledged.append((expected, f"turn{turn}"))
            elif word == "conflict":
                expected = int(rest)
            else:
                (doubted if word == "in-doubt" else refused).append(f"turn{turn}")
                time.sleep(0.02)

    with Driver(postgres.url, timeout_ms=10000) as store:
        writer = threading.Thread(target=write, args=(store,))
        writer.start()
        for _ in range(5):
            time.sleep(0.5)
            postgres.stop(how)
            postgres.start()
        time.sleep(0.5)
        end.set()
        writer.join(60)
    kept = dict(postgres.query("SELECT number, diff FROM versions"))
    assert len(acknowledged) > 20
    for version, word in acknowledged:
        if version in kept:  # retention drops old ones
            assert kept[version] == word
    newest = max(kept)
    assert newest >= acknowledged[-1][0]
    assert not set(kept.values()) & set(refused), "what was refused was not made"


def test_kill_9_of_the_node_at_random_leaves_no_half_change(postgres):
    """The version and its tables are one; what was acknowledged is there."""
    version = 0
    for turn in range(12):
        with Driver(postgres.url, timeout_ms=20000) as store:
            store.wait_event("up")
            for step in range(50):
                store.send(f"commit {version + step} turn{turn} {turn * 50 + step + 1} 20")
            for _ in range(turn * 3):
                word, rest, _ = store.answer()
                assert word == "done"
                version = int(rest)
            store.kill()
        deadline = time.monotonic() + 20
        while postgres.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'isobar'") != [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        rows = postgres.query("SELECT (SELECT max(number) FROM versions), count(*), min(weight), max(weight) FROM backends")
        newest, count, least, most = rows[0]
        if newest is None:
            assert version == 0 and count == 0
            continue
        assert newest >= version and count == 20 and least == most
        document = postgres.query("SELECT document FROM versions WHERE number = %s", newest)[0][0]
        assert f'"weight":{least}' in document
        version = newest


@pytest.fixture
def breaker(postgres):
    relay = Breaker(postgres.port, b"COMMIT\0")
    relay.url = f"postgresql://isobar@127.0.0.1:{relay.port}/postgres"
    yield relay
    relay.close()


def test_a_commit_whose_confirmation_is_lost_is_found_to_be_made(postgres, breaker):
    with Driver(breaker.url, timeout_ms=20000) as store:
        assert store.commit(0, "first") == ("done", "1")
        breaker.mode = "cut_after"
        assert store.commit(1, "second") == ("done", "2")
        assert breaker.triggered.is_set() and "down" in "".join(store.events)
        assert store.commit(2, "third") == ("done", "3")
    assert postgres.query("SELECT diff FROM versions ORDER BY number") == [("first",), ("second",), ("third",)]


def test_a_commit_that_never_arrived_is_found_not_to_be_made(postgres, breaker):
    with Driver(breaker.url, timeout_ms=20000) as store:
        assert store.commit(0, "first") == ("done", "1")
        breaker.mode = "cut"
        word, reason = store.commit(1, "lost")
        assert word == "unavailable" and "before the change was made" in reason
        assert store.commit(1, "second") == ("done", "2")
        assert not [event for event in store.events if event.startswith("changed")]
    assert postgres.query("SELECT diff FROM versions ORDER BY number") == [("first",), ("second",)]


def test_a_commit_that_nobody_can_tell_of_is_in_doubt_and_comes_by_when_it_was_made(postgres, breaker):
    with Driver(breaker.url, timeout_ms=1500) as store:
        assert store.commit(0, "first") == ("done", "1")
        breaker.mode = "hold"
        breaker.refuses = True
        word, _ = store.commit(1, "second")
        assert word == "in-doubt"
        assert store.commit(1, "third")[0] == "unavailable"
        breaker.refuses = False
        store.wait_event("changed 2")
        assert store.ask("load")[2][0][2] == "second"
        assert store.commit(1, "third") == ("conflict", "2")


def test_a_schema_of_version_1_is_brought_up_to_date_by_one_of_two(postgres):
    """Made by hand as the first release had it; both nodes find it at once."""
    postgres.query("CREATE TABLE store_migrations (number BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)")
    postgres.query("INSERT INTO store_migrations VALUES (1, 1700000000000)")
    postgres.query("CREATE TABLE versions (number BIGINT PRIMARY KEY, created_at BIGINT NOT NULL, who TEXT NOT NULL,"
                   " token TEXT NOT NULL UNIQUE, diff TEXT NOT NULL, document TEXT NOT NULL, bytes BIGINT NOT NULL)")
    postgres.query("INSERT INTO versions VALUES (7, 1700000000000, 'old', 'abc', 'first', '{}', 2)")
    with Driver(postgres.url, known=7) as one, Driver(postgres.url, known=7) as two:
        assert one.ask("load")[2][0][:3] == two.ask("load")[2][0][:3] == (7, "old", "first")
        assert one.commit(7, weight=3) == ("done", "8")
    assert postgres.query("SELECT number FROM store_migrations ORDER BY 1") == [(1,), (2,), (3,)]
    assert postgres.query("SELECT count(*) FROM backends WHERE version = 8") == [(2,)]


def test_a_lost_primary_is_followed_to_the_next_host(postgres):
    """Two hosts in the URL; the first becomes read-only, as a primary that was demoted, and the second takes over."""
    second = Postgres()
    try:
        url = f"postgresql://isobar@127.0.0.1:{postgres.port},127.0.0.1:{second.port}/postgres"
        with Driver(url) as store:
            assert store.commit(0, "first") == ("done", "1")
            row = postgres.query("SELECT number, created_at, who, token, diff, document, bytes, in_tables FROM versions")[0]
            with Driver(second.url) as other:
                other.wait_event("up")
            second.query("INSERT INTO versions VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", *row)
            at = len(store.events)
            postgres.query("ALTER SYSTEM SET default_transaction_read_only = on")
            postgres.query("SELECT pg_reload_conf()")
            assert wait_until(lambda: postgres.query("SHOW default_transaction_read_only") == [("on",)])
            postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'isobar'")
            store.wait_event("up", after=at)
            assert store.commit(1, "second") == ("done", "2")
        assert second.query("SELECT diff FROM versions ORDER BY number") == [("first",), ("second",)]
    finally:
        second.close()


def test_TLS_is_as_strict_as_the_url_says(tmp_path):
    authority = Authority(tmp_path)
    cert = authority.issue("pg", "localhost", "127.0.0.1")
    server = Postgres(start=False)
    try:
        server.use_certificate(cert["cert_file"], cert["key_file"])
        server.hba(["hostssl all all 127.0.0.1/32 trust"])
        server.start()
        with Driver(server.url + f"?sslmode=verify-full&sslrootcert={authority.file}") as store:
            assert store.commit(0) == ("done", "1")
        assert server.query("SELECT count(*) FROM versions") == [(1,)]
        stranger = Authority(tmp_path, "stranger")
        for options, reason in ((f"sslmode=verify-full&sslrootcert={stranger.file}", "certificate verify failed"),
                                ("sslmode=disable", "no encryption")):
            with Driver(f"{server.url}?{options}") as store:
                store.wait_event("down")
                assert reason in store.events[0] and store.commit(1)[0] == "unavailable"
    finally:
        server.close()


def test_a_password_is_asked_for_and_never_shown(postgres):
    postgres.hba(["host all all 127.0.0.1/32 scram-sha-256"])
    postgres.query("SELECT pg_reload_conf()")
    with Driver(postgres.url.replace("isobar@", "isobar:wr0ng@")) as store:
        store.wait_event("down")
        assert "password authentication failed" in store.events[0]
        assert store.commit(0)[0] == "unavailable"
        assert "wr0ng" not in "".join(store.log) + "".join(store.events)
    with Driver(postgres.url.replace("isobar@", f"isobar:{Postgres.PASSWORD}@")) as store:
        assert store.commit(0) == ("done", "1")


def test_a_server_that_takes_no_changes_is_not_available(postgres):
    with Driver(postgres.url) as store:
        assert store.commit(0) == ("done", "1")
        postgres.query("ALTER DATABASE postgres SET default_transaction_read_only = on")
        postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'isobar'")
        store.wait_event("down")
        assert wait_until(lambda: "read-only" in store.commit(1)[1])
