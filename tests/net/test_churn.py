# SPDX-License-Identifier: Apache-2.0
"""`isobar churn`: what a planned change of the targets would move. The arithmetic has unit tests."""
import json
import pathlib

import pytest


def churn(stand, *args):
    status, out, err = stand.isobar("churn", "--format", "json", *args)
    assert status == 0 and err == ""
    return json.loads(out)


def test_B4_adding_one_to_ten_moves_an_eleventh_but_nearly_all_under_hash_mod_n(stand):
    [change] = churn(stand, "--targets", "10", "--add", "1")
    moved = {name: keys / change["keys"] for name, keys in change["moved"].items()}
    assert moved["hash_mod_n"] > 0.85
    for name in ("ip_hash", "consistent_hash", "maglev"):
        assert moved[name] == pytest.approx(1 / 11, rel=0.15), name
    assert change["least"] == pytest.approx(1 / 11, abs=1e-5) and change["targets"] == [10, 11]


def test_B4_text_shows_the_schemes_side_by_side(stand):
    status, out, err = stand.isobar("churn", "--weights", "1,1,2", "--set", "2=5")
    assert status == 0 and err == "" and "37.5% have to move" in out
    for name in ("hash mod N", "ip_hash", "consistent_hash", "maglev"):
        assert name in out


def test_B4_groups_of_one_name_in_two_files_are_compared(stand):
    def write(name, targets):
        path = pathlib.Path(stand.folder) / name
        path.write_text(json.dumps({
            "load_balancers": [{"name": "lb", "listeners": [
                {"port": 8080, "protocol": "HTTP", "default_target_group": "web"}]}],
            "target_groups": [{"name": "web", "protocol": "HTTP", "algorithm": "maglev", "targets": [
                {"ip": f"10.0.0.{n}", "port": 80} for n in targets]}]}))
        return str(path)

    before, after = write("before.json", [1, 2, 3, 4]), write("after.json", [4, 2, 1])
    [change] = churn(stand, "--config", before, "--to", after)
    assert change["group"] == "web" and change["least"] == pytest.approx(0.25)
    assert change["moved"]["consistent_hash"] == pytest.approx(change["keys"] / 4, rel=0.25)
    [same] = churn(stand, "--config", before, "--to", before)
    assert set(same["moved"].values()) == {0}
    status, out, err = stand.isobar("churn", "--config", before, "--to", "absent.yaml")
    assert status == 1 and "absent.yaml" in err and out == ""


def test_B4_from_and_to_say_how_many_there_are_and_will_be(stand):
    for before, after in ((4, 5), (5, 4)):
        [change] = churn(stand, "--from", str(before), "--to", str(after), "--keys", "2000")
        assert change["targets"] == [before, after] and change["keys"] == 2000 and change["moved"]["hash_mod_n"] > 1400
        assert change["moved"]["maglev"] < 700
    status, out, _ = stand.isobar("churn", "--from", "4", "--to", "5", "--keys", "2000")
    bars = {line[:18].strip(): line.count("█") for line in out.splitlines() if "░" in line}
    assert set(bars) == {"hash mod N", "ip_hash", "consistent_hash", "maglev", "least"}
    assert bars["least"] == 8 and bars["hash mod N"] > 28 and bars["maglev"] < 12


@pytest.mark.parametrize("args", [[], ["--from", "3"], ["--from", "3", "--to", "x.yaml"], ["--from", "3", "--to", "0"],
                                  ["--from", "3", "--to", "4", "--add", "1"], ["--targets", "0"], ["--targets", "x"], ["--weights", "1,,2"], ["--weights", "65536"],
                                  ["--targets", "3", "--remove", "4"], ["--targets", "3", "--set", "4=1"],
                                  ["--targets", "3", "--set", "1"], ["--targets", "3", "--add", "1:"], ["--config", "a"],
                                  ["--targets", "3", "--config", "a", "--to", "b"], ["--targets", "3", "stray"]])
def test_rejects_what_it_cannot_plan(stand, args):
    status, out, err = stand.isobar("churn", *args)
    assert status == 2 and err.startswith("isobar churn: ") and out == ""
