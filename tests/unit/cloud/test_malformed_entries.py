"""Entries of clouds.yaml that openstacksdk cannot use: the error has the file, the line, the key and the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.cloud.connection import connect
from tests.unit.texts import Wording

AUTH = {"auth_url": "http://lab/v3", "username": "u", "password": "hush", "project_name": "p"}
CREDENTIAL = {"auth_url": "http://lab/v3", "application_credential_id": "i", "application_credential_secret": "hush"}

UNSECRET = {"auth_url": "http://lab/v3", "application_credential_id": "i"}


def settings(**over: Any) -> dict[str, Any]:
    return {"auth": AUTH, "region_name": "one", **over}


def refused(folder: Path, entry: object, monkeypatch: pytest.MonkeyPatch) -> str:
    path = folder / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"lab": entry}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    with pytest.raises(ConfigError) as caught:
        connect("lab")
    assert "hush" not in str(caught.value)
    return str(caught.value).replace(f"{path}:", "clouds.yaml:")


@pytest.mark.parametrize(
    ("entry", "line", "key", "fix"),
    [
        (settings(auth={**AUTH, "verify": False}), 8, "auth.verify", "move it out of auth"),
        (settings(auth={**AUTH, "region_name": "r"}), 7, "auth.region_name", "move it out of auth"),
        (settings(auth={**AUTH, "usrname": "r"}), 8, "auth.usrname", "did you mean username?"),
        (settings(auth={**AUTH, "colour": "r"}), 5, "auth.colour", "remove it"),
        (settings(auth=CREDENTIAL), 2, "auth_type", "write auth_type: v3applicationcredential"),
        (settings(auth={"auth_url": "http://lab/v3", "token": "hush"}), 2, "auth_type", "write auth_type: v3token"),
        (settings(auth=CREDENTIAL, auth_type=""), 7, "auth_type", "remove it"),
        (settings(auth_type="v3pasword"), 8, "auth_type", "did you mean v3password?"),
        (settings(auth_type="v3adfspassword"), 8, "auth_type", "pip install 'lxml"),
        (settings(auth_type="v3kerberos"), 8, "auth_type", "pip install 'requests-kerberos"),
        (settings(auth_type=["password"]), 8, "auth_type", "write one value"),
        (settings(verify="false"), 9, "verify", "write false without quotes"),
        (settings(verify=0), 9, "verify", "write false without quotes"),
        (settings(insecure=1), 8, "insecure", "write true without quotes"),
        (settings(cacert=["ca.pem"]), 8, "cacert", "write one value"),
        (settings(regions="one"), 9, "regions", "write region_name"),
        (settings(regions=[{"values": {}}]), 9, "regions", "write its name"),
        (settings(region_name={"a": 1}), 8, "region_name", "write one value"),
        (settings(api_timeout="soon"), 3, "api_timeout", "write seconds"),
        (settings(auth=["x"]), 3, "auth", "write auth_url"),
        (settings(auth=None), 3, "auth", "write auth_url"),
        (settings(auth={"username": "u", "password": "hush"}), 3, "auth.auth_url", "write it"),
        (
            settings(auth=UNSECRET, auth_type="v3applicationcredential"),
            3,
            "auth.application_credential_secret",
            "write it",
        ),
        (None, 2, "the entry", "write auth"),
        (["x"], 2, "the entry", "write auth"),
    ],
)  # fmt: skip
def test_a_malformed_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: object, line: int, key: str, fix: str
) -> None:
    said = refused(tmp_path, entry, monkeypatch)
    assert f"clouds.yaml:{line}: {key} " in said
    assert fix in said


@pytest.mark.parametrize("bare", ["password:hush", "password: h,hush"])
@pytest.mark.parametrize("name", ["clouds.yaml", "secure.yaml"])
def test_a_key_that_may_be_a_password_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bare: str
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(tmp_path / "secure.yaml"))
    (tmp_path / "clouds.yaml").write_text(
        "clouds: {lab: {auth: {auth_url: http://lab/v3, username: u, project_name: p}}}"
    )
    (tmp_path / name).write_text(f"clouds:\n  lab: {{auth: {{auth_url: http://lab/v3, username: u, {bare}}}}}")
    with pytest.raises(SpecError, match=f"{name}:2: ") as caught:
        connect("lab")
    assert "hush" not in str(caught.value)


def test_all_mistakes_of_a_kind_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused(tmp_path, settings(verify="false", cacert=[], regions="x"), monkeypatch)
    assert all(f": {key} " in said for key in ("verify", "cacert", "regions"))


def test_a_mistake_in_secure_yaml_has_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secure = tmp_path / "secure.yaml"
    secure.write_text("clouds:\n  lab:\n    verify: 'false'\n")
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(secure))
    assert f"{secure}:3: verify " in refused(tmp_path, settings(), monkeypatch)


@pytest.mark.parametrize("entry", [settings(interface=""), settings(interface=None), settings(verify=None)])
def test_an_empty_setting_is_unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"lab": entry}}))
    made = connect("lab", clouds_file=path)
    assert (made.interface, made.tls.verify) == ("public", True)


@pytest.mark.parametrize("kind", ["http_basic", "none", "admin_token"])
def test_a_login_without_keystone_is_refused(tmp_path: Path, kind: str) -> None:
    """These are for a service that runs alone."""
    auth = {"endpoint": "http://lab/"} | {"http_basic": {"username": "u"}, "admin_token": {"token": "t"}}.get(kind, {})
    path = tmp_path / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"lab": {"auth_type": kind, "auth": auth}}}))
    with pytest.raises(ConfigError, match="auth_url is missing"):
        connect("lab", clouds_file=path)


def test_an_empty_variable_is_unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE", raising=False)
    monkeypatch.delenv("OS_CLOUD", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, value in {**AUTH, "interface": "", "cacert": "", "project_domain_id": ""}.items():
        monkeypatch.setenv(f"OS_{name.upper()}", value)
    made = connect()
    assert (made.interface, made.tls.cacert, made.auth_url) == ("public", None, "http://lab/v3")


def test_a_variable_with_the_text_of_a_boolean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording
) -> None:
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE", raising=False)
    monkeypatch.delenv("OS_CLOUD", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, value in {**AUTH, "verify": "false"}.items():
        monkeypatch.setenv(f"OS_{name.upper()}", value)
    with pytest.raises(ConfigError) as caught:
        connect()
    wording(caught.value)


@pytest.mark.parametrize(("word", "verify"), [("yes", True), ("no", False), ("Off", False)])
def test_a_word_that_the_sdk_reads_as_a_boolean(tmp_path: Path, word: str, verify: bool) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(f"clouds: {{lab: {{auth: {{auth_url: 'http://lab/v3', username: u}}, verify: {word}}}}}")
    assert connect("lab", clouds_file=path).tls.verify is verify
    path.write_text(path.read_text().replace(f"verify: {word}", f"verify: '{word}'"))
    with pytest.raises(ConfigError, match="not a boolean"):
        connect("lab", clouds_file=path)
