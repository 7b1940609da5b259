# SPDX-License-Identifier: Apache-2.0
"""isobar serve with a store: where the configuration comes from at a start, what the file may still say, how nodes
follow each other, and that traffic does not notice a store that is away (H1, H3, H5)."""
import copy
import json
import os
import stat
import time

import pytest

from harness.load import Load
from harness.ports import free_port
from harness.postgres import Postgres
from harness.process import wait_until
from harness.store import rows


@pytest.fixture
def postgres():
    server = Postgres()
    yield server
    server.close()


def served_by(stand, proxy):
    return stand.ask(proxy=proxy).body.decode()


def is_served_by(stand, proxy, name):
    return wait_until(lambda: served_by(stand, proxy) == name)


def figure(proxy, name, **labels):
    return proxy.metrics().total("store_" + name, **labels)


def in_force(proxy, version):
    return wait_until(lambda: figure(proxy, "version_in_force") == version)


def settled(proxy, version=1):
    """A connection to a server is one socket more than a process has that has just begun."""
    assert in_force(proxy, version), proxy.stderr
    assert wait_until(lambda: figure(proxy, "available") == 1)
    proxy.baseline = proxy.sockets()
    return proxy


def retarget(config, backend):
    """The same configuration with one target."""
    changed = copy.deepcopy(config)
    changed["target_groups"][0]["targets"] = [backend.target]
    return changed


def stored(config):
    return json.dumps({key: value for key, value in config.items() if key not in ("admin", "store")})


def write_as_another(postgres, version, config):
    """What another node's commit does."""
    postgres.query("INSERT INTO versions (number, created_at, who, token, diff, document, bytes, in_tables)"
                   " VALUES (%s, 0, 'other', %s, '[]', %s, 0, 1)", version, f"t{version}", stored(config))
    postgres.query("SELECT pg_notify('isobar_versions', %s)", str(version))


def test_the_file_fills_an_empty_store_and_then_the_store_rules(stand, tmp_path):
    path = str(tmp_path / "store.db")
    a, b = stand.backends_named("A", "B")
    config = stand.config(a, store={"url": "sqlite:" + path})
    first = settled(stand.serve(config))
    assert served_by(stand, first) == "A"
    first.stop()
    document, who = rows(path, "SELECT document, who FROM versions")[0]
    assert json.loads(document) == json.loads(stored(config)) and who == "file"
    second = settled(stand.serve(retarget(config, b)))
    assert served_by(stand, second) == "A"
    assert f"target_groups/web: targets +127.0.0.1:{b.port} -127.0.0.1:{a.port}" in second.stderr
    assert rows(path, "SELECT count(*) FROM versions") == [(1,)]


@pytest.mark.parametrize("store, fault", [
    ({"url": "mysql://h/d"}, "/store/url: "), ({}, "/store"), ({"url": "sqlite:"}, "/store/url: "),
    ({"url": "sqlite:/x/"}, "/store/url: "), ({"url": "postgresql:h"}, "/store/url: "),
    ({"url": "sqlite:/x", "file": "rules"}, "/store/file: "), ({"url": "sqlite:/x", "timeout_ms": 1}, "/store/timeout_ms: "),
    ({"url": "sqlite:/x", "keep_versions": 1}, "/store/keep_versions: "), ({"url": "sqlite:/x", "last_good": ""}, "/store/last_good: ")])
def test_rejects_a_store_that_cannot_be(stand, tmp_path, store, fault):
    config = stand.config({"ip": "127.0.0.1", "port": 1}, store=store)
    (tmp_path / "c.json").write_text(json.dumps(config))
    status, stdout, stderr = stand.isobar("check", str(tmp_path / "c.json"))
    assert status == 1 and fault in stdout + stderr, stdout + stderr


def test_a_password_in_the_url_is_not_shown(stand, tmp_path):
    config = stand.config({"ip": "127.0.0.1", "port": 1},
                          store={"url": "postgresql://u:s3cret@127.0.0.1:1/d?password=al5o", "last_good": f"{tmp_path}/no"})
    (tmp_path / "c.json").write_text(json.dumps(config))
    status, _, stderr = stand.isobar("serve", "--config", str(tmp_path / "c.json"), timeout_s=90)
    assert status == 1 and "there is no last good copy" in stderr
    assert "s3cret" not in stderr and "al5o" not in stderr


def test_a_relative_file_is_beside_the_configuration(stand):
    config = stand.config(stand.backend(name="A"), store={"url": "sqlite:here.db"})
    proxy = settled(stand.serve(config))
    assert os.path.exists(os.path.join(proxy.folder, "here.db"))


def test_a_file_that_wins_is_recorded_at_the_start_and_at_SIGHUP(stand, tmp_path):
    path = str(tmp_path / "store.db")
    a, b, c = stand.backends_named("A", "B", "C")
    config = stand.config(a, store={"url": "sqlite:" + path, "file": "wins"})
    settled(stand.serve(config)).stop()
    proxy = settled(stand.serve(retarget(config, b)), 2)
    assert served_by(stand, proxy) == "B"
    proxy.reload(retarget(config, c))
    assert served_by(stand, proxy) == "C" and in_force(proxy, 3)
    assert [who for who, in rows(path, "SELECT who FROM versions")] == ["file"] * 3
    assert json.loads(rows(path, "SELECT diff FROM versions WHERE number = 3")[0][0])[0]["object"] == "target_groups/web"
    assert rows(path, "SELECT port FROM backends") == [(c.port,)]
    proxy.stop()
    again = settled(stand.serve(retarget(config, c)), 3)
    assert rows(path, "SELECT count(*) FROM versions") == [(3,)], "the same file is no new version"
    assert served_by(stand, again) == "C"


def test_SIGHUP_with_a_seed_says_what_differs_and_takes_this_nodes_own_sections(stand, tmp_path):
    a, b = stand.backends_named("A", "B")
    config = stand.config(a, store={"url": f"sqlite:{tmp_path}/store.db"})
    proxy = settled(stand.serve(config))
    changed = retarget(config, b)
    changed["admin"] = {"listen": stand.config(a)["admin"]["listen"]}
    proxy.write(changed)
    proxy.process.send_signal(1)
    host, port = changed["admin"]["listen"].split(":")
    proxy.admin = (host, int(port))
    assert wait_until(lambda: "is in force" in proxy.stderr)

    def answers():
        try:
            return proxy.get("/healthz")[0] == 200
        except OSError:
            return False
    assert wait_until(answers)
    assert served_by(stand, proxy) == "A" and figure(proxy, "version_in_force") == 1
    assert f"targets +127.0.0.1:{b.port}" in proxy.stderr


def test_a_file_whose_listener_cannot_be_bound_never_gets_into_the_store(stand, tmp_path):
    path = str(tmp_path / "store.db")
    config = stand.config(stand.backend(name="A"))
    stand.serve(config)
    other = stand.config(stand.backend(name="B"), store={"url": "sqlite:" + path})
    other["load_balancers"] = config["load_balancers"]
    other["load_balancers"][0]["listeners"][0]["port"] = int(config["admin"]["listen"].split(":")[1])
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "c.json").write_text(json.dumps(other))
    status, _, stderr = stand.isobar("serve", "--config", str(folder / "c.json"))
    assert status == 1 and "cannot start" in stderr
    assert rows(path, "SELECT count(*) FROM versions") == [(0,)]


def test_two_nodes_on_one_store_follow_each_other(stand, postgres, tmp_path):
    a, b = stand.backends_named("A", "B")

    def node(number):
        """One document for both, so each listens on a socket in its own folder."""
        config = stand.config(a, store={"url": postgres.url, "file": "wins", "last_good": f"{tmp_path}/good{number}"})
        config["load_balancers"] = [{"name": "lb", "listeners": [
            {"unix": "l.sock", "protocol": "HTTP", "default_target_group": "web"}]}]
        return config

    one_config, two_config = node(1), node(2)
    one = stand.serve(one_config)
    settled(one)
    two = stand.serve(two_config)
    settled(two)
    one.reload(retarget(one_config, b))
    assert in_force(one, 2) and in_force(two, 2)
    assert "store: version 2 of file is in force" in two.stderr
    assert f"target_groups/web: targets +127.0.0.1:{b.port}" in two.stderr
    two.reload(retarget(two_config, a))
    assert in_force(one, 3) and figure(two, "version_in_force") == 3


def test_H3_a_store_that_is_away_costs_traffic_nothing_and_changes_nothing(stand, postgres, tmp_path):
    a, b = stand.backends_named("A", "B")
    config = stand.config(a, store={"url": postgres.url, "file": "wins", "last_good": f"{tmp_path}/good",
                                    "timeout_ms": 1000})
    proxy = settled(stand.serve(config))
    load = Load(stand, proxy)
    postgres.pause()
    assert wait_until(lambda: figure(proxy, "available") == 0)
    proxy.reload(retarget(config, b))
    assert proxy.reload_counts() == (0, 1)
    assert served_by(stand, proxy) == "A" and figure(proxy, "commits_total", result="failed") == 1
    postgres.resume()
    assert wait_until(lambda: figure(proxy, "available") == 1)
    postgres.stop()
    assert wait_until(lambda: figure(proxy, "available") == 0)
    proxy.reload(retarget(config, b))
    assert served_by(stand, proxy) == "A"
    postgres.start()
    assert wait_until(lambda: figure(proxy, "available") == 1)
    proxy.reload(retarget(config, b))
    assert served_by(stand, proxy) == "B" and figure(proxy, "version_in_force") == 2
    assert load.finish() > 100
    assert postgres.query("SELECT max(number) FROM versions") == [(2,)]


def test_H3_a_start_without_the_store_is_from_the_last_good_copy(stand, postgres, tmp_path):
    a, b, c = stand.backends_named("A", "B", "C")
    good = str(tmp_path / "good")
    config = stand.config(a, store={"url": postgres.url, "last_good": good})
    proxy = settled(stand.serve(config))
    write_as_another(postgres, 2, retarget(config, b))
    assert in_force(proxy, 2) and served_by(stand, proxy) == "B"
    assert wait_until(lambda: '"version": 2' in open(good, encoding="utf-8").readline())
    proxy.kill()
    postgres.stop()
    again = stand.serve(config)
    assert served_by(stand, again) == "B"
    assert "the last good copy, version 2, is in force" in again.stderr
    assert figure(again, "available") == 0 and figure(again, "version_in_force") == 2
    postgres.start()
    write_as_another(postgres, 3, retarget(config, c))
    assert is_served_by(stand, again, "C")
    settled(again, 3)


def test_without_store_and_copy_there_is_nothing_to_serve(stand, tmp_path):
    config = stand.config(stand.backend(name="A"), store={"url": f"sqlite:{tmp_path}/no/folder/store.db"})
    (tmp_path / "c.json").write_text(json.dumps(config))
    status, _, stderr = stand.isobar("serve", "--config", str(tmp_path / "c.json"), timeout_s=60)
    assert status == 1 and "/store/url" in stderr and "unable to open database file" in stderr


def test_a_damaged_file_stops_the_start_and_stays_as_it_is(stand, tmp_path):
    path = tmp_path / "store.db"
    config = stand.config(stand.backend(name="A"), store={"url": f"sqlite:{path}"})
    settled(stand.serve(config)).stop()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    (tmp_path / "c.json").write_text(json.dumps(config))
    status, _, stderr = stand.isobar("serve", "--config", str(tmp_path / "c.json"), timeout_s=60)
    assert status == 1 and "is damaged" in stderr and "left as it is" in stderr
    assert path.read_bytes() == bytes(data)


def test_a_version_that_cannot_be_in_force_here_is_said_and_tried_again(stand, postgres, tmp_path):
    a, b = stand.backends_named("A", "B")
    config = stand.config(a, store={"url": postgres.url, "last_good": f"{tmp_path}/good"})
    proxy = settled(stand.serve(config))
    bad = retarget(config, b)
    bad["target_groups"][0]["algorithm"] = "no_such_method"
    write_as_another(postgres, 2, bad)
    assert wait_until(lambda: "version 2 cannot be put in force here" in proxy.stderr)
    assert served_by(stand, proxy) == "A" and "no_such_method" in proxy.stderr
    assert figure(proxy, "version") == 1 or figure(proxy, "version_in_force") == 1
    write_as_another(postgres, 3, retarget(config, b))
    assert is_served_by(stand, proxy, "B") and in_force(proxy, 3)


def test_a_store_that_was_restored_from_an_older_copy_rules(stand, postgres, tmp_path):
    a, b, c = stand.backends_named("A", "B", "C")
    config = stand.config(a, store={"url": postgres.url, "last_good": f"{tmp_path}/good"})
    proxy = settled(stand.serve(config))
    write_as_another(postgres, 2, retarget(config, b))
    assert in_force(proxy, 2) and served_by(stand, proxy) == "B"
    postgres.stop()
    assert wait_until(lambda: figure(proxy, "available") == 0)
    postgres.start()
    postgres.query("DELETE FROM versions WHERE number = 2")
    postgres.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'isobar'")
    assert is_served_by(stand, proxy, "A") and in_force(proxy, 1)
    write_as_another(postgres, 2, retarget(config, c))
    assert is_served_by(stand, proxy, "C") and in_force(proxy, 2)


def test_kill_9_between_commit_and_apply_starts_with_the_committed(stand, tmp_path):
    """C-147: what was acknowledged or committed is what a start loads, and the tables agree with it."""
    path = str(tmp_path / "store.db")
    backends = stand.backends_named(*"AB")
    config = stand.config(backends[0], store={"url": "sqlite:" + path, "file": "wins"})
    proxy = settled(stand.serve(config))
    for turn in range(10):
        proxy.write(retarget(config, backends[(turn + 1) % 2]))
        proxy.process.send_signal(1)
        time.sleep(0.001 * turn)
        proxy.kill()
        newest = rows(path, "SELECT max(number) FROM versions")[0][0]
        document = json.loads(rows(path, f"SELECT document FROM versions WHERE number = {newest}")[0][0])
        port = document["target_groups"][0]["targets"][0]["port"]
        assert rows(path, "SELECT port FROM backends") == [(port,)]
        seed = copy.deepcopy(config)
        seed["store"].pop("file")
        proxy = settled(stand.serve(seed), newest)
        assert served_by(stand, proxy) == next(b.name for b in backends if b.port == port)
        proxy.kill()
        proxy = settled(stand.serve(retarget(config, next(b for b in backends if b.port == port))), newest)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_table_of_backends_shows_their_health(stand, tmp_path, request, kind):
    """Source 003: state, last check and results in a row; a change of weight keeps them."""
    good, bad = stand.backends_named("A", "B")
    if kind == "sqlite":
        url = f"sqlite:{tmp_path}/store.db"
    else:
        url = request.getfixturevalue("postgres").url
    config = stand.config([good, bad], store={"url": url, "file": "wins", "last_good": f"{tmp_path}/good"},
                          group={"health_check": {"type": "tcp", "interval_s": 1, "unhealthy_threshold": 2}})

    def backends():
        sql = ("SELECT port, state, weight, last_health_check_at > 0, consecutive_failures, consecutive_successes"
               " FROM backends ORDER BY port")
        found = rows(f"{tmp_path}/store.db", sql) if kind == "sqlite" else \
            request.getfixturevalue("postgres").query(sql)
        return {row[0]: row[1:] for row in found}

    proxy = settled(stand.serve(config))
    assert wait_until(lambda: all(row[0] == "ACTIVE" for row in backends().values()), 30), proxy.stderr
    assert all(row[2] for row in backends().values())
    bad.stop()
    assert wait_until(lambda: backends()[bad.port][0] == "UNHEALTHY", 30)
    assert backends()[bad.port][3] >= 2 and backends()[bad.port][4] == 0
    assert backends()[good.port][0] == "ACTIVE"
    changed = copy.deepcopy(config)
    for target in changed["target_groups"][0]["targets"]:
        target["weight"] = 7
    proxy.reload(changed)
    assert in_force(proxy, 2)
    assert {port: row[:2] for port, row in backends().items()} == {good.port: ("ACTIVE", 7), bad.port: ("UNHEALTHY", 7)}


def test_the_shutdown_is_not_held_up_by_a_paused_server(stand, postgres, tmp_path):
    config = stand.config(stand.backend(name="A"), store={"url": postgres.url, "last_good": f"{tmp_path}/good",
                                                          "timeout_ms": 30000})
    proxy = settled(stand.serve(config))
    postgres.pause()
    began = time.monotonic()
    assert proxy.stop() == 0 and time.monotonic() - began < 10
    postgres.resume()


def test_files_with_secrets_are_for_their_owner_whatever_the_umask(stand, tmp_path):
    path, good = str(tmp_path / "store.db"), str(tmp_path / "good")
    with open(good + ".new", "w", encoding="ascii"):
        os.chmod(good + ".new", 0o666)  # left behind by who knows
    config = stand.config(stand.backend(), store={"url": "sqlite:" + path, "last_good": good})
    before = os.umask(0)
    try:
        proxy = settled(stand.serve(config))
    finally:
        os.umask(before)
    assert proxy.admin_request("PUT", "/api/config/algorithm", {"Content-Type": "application/json"}, body='{"algorithm": "random"}')[0] == 200
    assert wait_until(lambda: os.path.exists(good))
    files = sorted(name for name in os.listdir(tmp_path) if name.startswith(("store.db", "good")))
    assert set(files) >= {"good", "store.db", "store.db-shm", "store.db-wal"}
    assert {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in files} == dict.fromkeys(files, 0o600)
    proxy.stop()
    assert "expected 0600" not in proxy.stderr
    os.chmod(path, 0o644)
    again = settled(stand.serve({**config, "admin": {"listen": f"127.0.0.1:{free_port()}"}}), 2)
    assert "has the mode 0644, so others may read the keys and passwords in it; expected 0600" in again.stderr
