# SPDX-License-Identifier: Apache-2.0
"""Secrets of the configuration are shown to nobody who does not ask for them as admin, and survive being read and written."""
import copy
import json
import os
import stat

import pytest
from harness.ports import free_port
from test_api_v1 import Api

READ, OPERATE, ADMIN = "r" * 16, "o" * 16, "a" * 16
MARK = "<secret>"
SIGNING, PASSWORD, BASIC, MATCHED, SEED = "signing-key-of-cookies", "pass-of-redis", "Basic dXNlcjpwYXNz", "from-the-cdn", 7712345
SECRETS = (SIGNING, PASSWORD, BASIC, MATCHED, str(SEED), "PRIVATE KEY-----\nM")


def read_file(path):
    with open(path, encoding="ascii") as text:
        return text.read()


@pytest.fixture
def api(stand, tmp_path):
    from harness.tls import Authority
    path = os.path.join(stand.folder, "tokens")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
        out.write(f"read {READ}\noperate {OPERATE}\nadmin {ADMIN} alice\n")
    files = Authority(tmp_path).issue("shop", "shop.example")
    config = stand.config(stand.backend(), shared_state={"url": f"redis://app:{PASSWORD}@127.0.0.1:{free_port()}"})
    config["admin"]["token_file"] = path
    config["certificates"] = [{"name": "shop", "cert_pem": read_file(files["cert_file"]), "key_pem": read_file(files["key_file"])}]
    config["target_groups"][0]["affinity"] = {"type": "cookie", "id": "signed", "secret": SIGNING}
    group = config["target_groups"][0]["name"]
    config["load_balancers"][0]["listeners"][0].update(name="l1", rules=[
        {"name": "r1", "match": {"path": "/a", "headers": {"X-Origin-Verify": MATCHED}}, "forward": [{"target_group": group}],
         "rewrite": {"set_headers": {"Authorization": BASIC, "X-Plain": "shown"}}},
        {"match": {"path": "/b"}, "forward": [{"target_group": group}],
         "rewrite": {"add_headers": {"Proxy-Authorization": BASIC}}}])
    proxy = stand.serve(config, ready=False)
    proxy.token = ADMIN
    proxy.ready()
    return Api(proxy)


def as_role(api, token):
    api.proxy.token = token
    return api


PATHS = ("/v1/config", "/v1/versions/1", "/v1/target-groups", "/v1/target-groups/web", "/v1/certificates", "/v1/certificates/shop",
         "/v1/load-balancers", "/v1/load-balancers/lb", "/v1/load-balancers/lb/listeners", "/v1/load-balancers/lb/listeners/l1",
         "/v1/load-balancers/lb/listeners/l1/rules", "/v1/load-balancers/lb/listeners/l1/rules/r1")


@pytest.mark.parametrize("token", [READ, OPERATE, ADMIN])
def test_nobody_sees_a_secret_without_asking(api, token):
    as_role(api, token)
    for path in PATHS:
        text = json.dumps(api.get(path))
        assert not [secret for secret in SECRETS if secret in text], path
        assert MARK in text, path
    config = api.get("/v1/config")
    assert config["shared_state"]["url"].startswith(f"redis://app:{MARK}@127.0.0.1:")
    assert config["certificates"][0]["key_pem"] == MARK and "BEGIN CERTIFICATE" in config["certificates"][0]["cert_pem"]
    rewrite = config["load_balancers"][0]["listeners"][0]["rules"][0]["rewrite"]
    assert rewrite["set_headers"] == {"Authorization": MARK, "X-Plain": "shown"}


@pytest.mark.parametrize("token", [READ, OPERATE])
def test_only_admin_may_ask_for_secrets(api, token):
    as_role(api, token)
    for path in PATHS:
        assert "admin" in api.fails(403, "forbidden", "GET", path + "?secrets=true")["message"], path


def test_admin_is_shown_what_the_file_said(api):
    assert api.get("/v1/config?secrets=true") == api.proxy.config
    assert api.get("/v1/certificates/shop?secrets=true")["key_pem"].startswith("-----BEGIN")
    assert api.get("/v1/certificates?secrets=true&limit=1")["items"][0]["key_pem"].startswith("-----BEGIN")
    assert api.get("/v1/versions/1?secrets=true")["config"]["target_groups"] == api.proxy.config["target_groups"]


def test_what_was_shown_can_be_written_back(api):
    for path in ("/v1/config", "/v1/target-groups/web", "/v1/certificates/shop", "/v1/load-balancers/lb", "/v1/load-balancers/lb/listeners/l1",
                 "/v1/load-balancers/lb/listeners/l1/rules/r1"):
        status, _, answer = api("PUT", path, api.get(path))
        assert (status, answer["version"]) == (200, 1), (path, answer)
    for path, key in (("/v1/target-groups", "target_groups"), ("/v1/certificates", "certificates"), ("/v1/load-balancers", "load_balancers"),
                      ("/v1/load-balancers/lb/listeners/l1/rules", "rules")):
        status, _, answer = api("PUT", path, {key: api.get(path)["items"]})
        assert (status, answer["version"]) == (200, 1), (path, answer)
    assert api.get("/v1/config?secrets=true") == api.proxy.config


def test_a_change_beside_a_mark_keeps_the_secret(api):
    config = api.get("/v1/config")
    config["target_groups"][0]["algorithm"] = "round_robin"
    config["load_balancers"][0]["listeners"][0]["rules"][0]["match"]["path"] = "/c"
    config["load_balancers"][0]["listeners"][0]["rules"].reverse()
    assert api("PUT", "/v1/config", config)[0] == 200
    wanted = copy.deepcopy(api.proxy.config)
    wanted["target_groups"][0]["algorithm"] = "round_robin"
    wanted["load_balancers"][0]["listeners"][0]["rules"][0]["match"]["path"] = "/c"
    wanted["load_balancers"][0]["listeners"][0]["rules"].reverse()
    assert api.get("/v1/config?secrets=true") == wanted
    assert api("PATCH", "/v1/target-groups/web", {"affinity": {"secret": MARK, "cookie": "other"}})[0] == 200
    assert api.get("/v1/target-groups/web?secrets=true")["affinity"] == {**wanted["target_groups"][0]["affinity"], "cookie": "other"}


def test_a_mark_without_a_secret_behind_it_is_refused(api):
    fault = api.fails(422, "invalid", "POST", "/v1/target-groups", {"name": "new", "affinity": {"type": "cookie", "secret": MARK}})
    assert fault["path"] == "/affinity/secret" and "write the secret itself" in fault["message"]
    rule = {"match": {"path": "/b"}, "forward": [{"target_group": "web"}], "rewrite": {"set_headers": {"Authorization": MARK}}}
    fault = api.fails(422, "invalid", "PUT", "/v1/load-balancers/lb/listeners/l1/rules/r2", rule)
    assert fault["path"] == "/rewrite/set_headers/Authorization"
    config = api.get("/v1/config")
    config["shared_state"]["url"] = config["shared_state"]["url"].replace("127.0.0.1", "127.0.0.2")
    assert api.fails(422, "invalid", "PUT", "/v1/config", config)["path"] == "/shared_state/url"
    assert api.get("/v1/config?secrets=true") == api.proxy.config


def test_a_new_secret_takes_the_place_of_the_old_and_is_not_told(api):
    fresh = "another-signing-key-1"
    status, _, answer = api("PATCH", "/v1/target-groups/web", {"affinity": {"secret": fresh}})
    assert status == 200 and answer["affinity"]["secret"] == MARK
    config = api.get("/v1/config")
    config["load_balancers"][0]["listeners"][0]["rules"][0]["rewrite"]["set_headers"]["Authorization"] = "Basic bmV3"
    config["shared_state"]["url"] = "redis://app:other-pass@127.0.0.1:1"
    status, _, dry = api("PUT", "/v1/config?dry_run=true", config)
    assert status == 200 and len(dry["changes"]) == 2
    assert api("PUT", "/v1/config", config)[0] == 200
    told = json.dumps([dry, api.get("/v1/versions"), api.get("/v1/versions/2"), api.get("/v1/versions/3")])
    for secret in (fresh, "bmV3", "other-pass", *SECRETS):
        assert secret not in told, secret
    assert "affinity.secret changed" in told
    assert api.get("/v1/target-groups/web?secrets=true")["affinity"]["secret"] == fresh
    assert api("POST", "/v1/versions/1/rollback")[0] == 200
    assert api.get("/v1/config?secrets=true") == api.proxy.config
    log = api.proxy.stderr
    assert "alice is shown secrets of /v1/config" in log
    for secret in (fresh, "bmV3", "other-pass", *SECRETS):
        assert secret not in log, secret


def test_a_secret_is_not_found_by_asking_for_it(api):
    as_role(api, READ)
    for path in (f"/v1/target-groups?affinity.secret={SIGNING}", "/v1/certificates?key_pem=x", "/v1/target-groups?affinity.secret=x"):
        api.fails(400, "invalid", "GET", path)
    assert api.get("/v1/target-groups?affinity.type=cookie")["items"]


def test_the_description_says_what_is_secret(api):
    properties = api.get("/v1/openapi.json")["components"]["schemas"]["config"]["properties"]
    rule = properties["load_balancers"]["items"]["properties"]["listeners"]["items"]["properties"]["rules"]["items"]["properties"]
    for key in (properties["shared_state"]["properties"]["url"], properties["store"]["properties"]["url"],
                properties["certificates"]["items"]["properties"]["key_pem"], properties["l4"]["properties"]["hash_seed"],
                properties["target_groups"]["items"]["properties"]["affinity"]["properties"]["secret"],
                rule["rewrite"]["properties"]["set_headers"], rule["match"]["properties"]["headers"]):
        assert key["x-secret"] is True, key
    assert "x-secret" not in properties["workers"]


def test_an_export_is_for_its_owner_and_applies(api, stand):
    tokens = {}
    for name, token in (("read", READ), ("admin", ADMIN)):
        tokens[name] = os.path.join(stand.folder, name)
        with open(os.open(tokens[name], os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as out:
            out.write(f"{token}\n")
    host, port = api.proxy.admin

    def ctl(role, *args):
        return stand.isobar("ctl", "--admin", f"{host}:{port}", "--token-file", tokens[role], *args)

    file, shown = (os.path.join(stand.folder, name) for name in ("all.json", "shown.json"))
    assert ctl("admin", "export", file)[0] == 0
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    with open(file, encoding="utf-8") as text:
        assert json.load(text) == api.proxy.config
    code, _, err = ctl("read", "export")
    assert code == 3 and "admin" in err and "--no-secrets" in err
    code, out, _ = ctl("read", "export", "--no-secrets")
    assert code == 0 and MARK in out and not [secret for secret in SECRETS if secret in out]
    with open(shown, "w", encoding="utf-8") as text:
        text.write(out)
    for exported in (file, shown):
        assert "no change" in ctl("admin", "apply", exported)[1]
    code, out, err = stand.isobar("check", shown)
    assert code != 0 and "stands for a secret" in out + err
