"""Entries of clouds.yaml as gophercloud's clientconfig reads them, each by what a program built of it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud import clouds_yaml
from openstack_prep.openshift.check.entry import entry
from openstack_prep.openshift.clientconfig import find_entry, for_client

AUTH = {
    "auth_url": "http://lab/v3",
    "username": "u",
    "password": "hush",
    "project_name": "p",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}
CREDENTIAL = {"auth_url": "http://lab", "application_credential_id": "i", "application_credential_secret": "hush"}
TYPE = "    auth_type: v3applicationcredential\n"
REGION = "    region_name: one\n"
OTHER = "  other:\n    auth: {auth_url: x}\n"


def written(auth: dict[str, str] | None = None, without: tuple[str, ...] = (), rest: str = REGION) -> str:
    given = {name: value for name, value in (AUTH if auth is None else auth).items() if name not in without}
    lines = "".join(f"      {name}: {value}\n" for name, value in given.items())
    return f"clouds:\n  lab:\n    auth:\n{lines}{rest}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OS_CLOUD", "OS_CLIENT_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def codes(folder: Path, text: str, **files: str) -> list[tuple[str, str]]:
    """Return code and place of what is found, the place with the line."""
    (folder / "clouds.yaml").write_text(text)
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(content)
    found = [(each.code, each.where.removeprefix(f"{folder}/")) for each in entry("lab")]
    assert not [each for each in entry("lab") if "hush" in str(each)]
    return found


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (written(rest=REGION + '    verify: "false"\n'), "clouds.yaml:11"),
        (written(rest=REGION + '    verify: "yes"\n'), "clouds.yaml:11"),
        (written(rest=REGION + "    verify: 1\n"), "clouds.yaml:11"),
        (written(rest=REGION + "    interface: [public, internal]\n"), "clouds.yaml:11"),
        (written(rest=REGION + "    regions: [1]\n"), "clouds.yaml:11"),
        (written(rest=REGION + "    regions: [{name: a, values: {verify: x}}]\n"), "clouds.yaml:11"),
        (written(rest=REGION + OTHER + '    verify: "false"\n'), "clouds.yaml:13"),
        (written(rest=REGION + "  other: {interface: [public]}\n"), "clouds.yaml:11"),
        (written(rest=REGION + "  other: {auth: x}\n"), "clouds.yaml:11"),
        (written(rest=REGION + "  other: x\n"), "clouds.yaml:11"),
        (written(rest=REGION + "  other: {verify: true, verify: true}\n"), "clouds.yaml:11"),
        (written({**AUTH, "allow_reauth": '"true"'}), "clouds.yaml:10"),
        *((written({**AUTH, "password": each}), "clouds.yaml:6") for each in ("012345", "1e3", "yes", "0x10", "1_000")),
        (written(rest="    region_name: 1.10\n"), "clouds.yaml:10"),
    ],
)
def test_what_the_installer_does_not_decode(folder: Path, text: str, place: str) -> None:
    assert ("clouds-yaml.invalid", place) in codes(folder, text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (written(without=("auth_url",), rest="    regions: [{name: one, values: {auth: {}}}]\n"), "clouds.yaml:3"),
        (written(without=("user_domain_name",)), "clouds.yaml:3"),
        (written(without=("project_domain_name",)), "clouds.yaml:3"),
        (written(without=("project_domain_name",), rest="    project_domain_name: Default\n"), "clouds.yaml:3"),
        (written(without=("password",), rest="    password: hush\n"), "clouds.yaml:3"),
        (written({**AUTH, "tenant_name": "p"}, ("project_name",)), "clouds.yaml:3"),
        (written({**AUTH, "user_domain_id": "d"}), "clouds.yaml:10"),
        (written({**AUTH, "user_id": "u"}), "clouds.yaml:10"),
        (written({**CREDENTIAL, "password": "hush", "username": "u", "user_domain_id": "d"}), "clouds.yaml:7"),
        (written({**CREDENTIAL, "application_credential_secret": '""'}, rest=TYPE), "clouds.yaml:6"),
        (written(rest=REGION + "    identity_api_version: v3\n"), "clouds.yaml:11"),
        (written(rest=REGION + "    volume_api_version: 2\n"), "clouds.yaml:11"),
        (written({**AUTH, "auth_url": "http://lab/v2.0"}), "clouds.yaml:4"),
        (written({**AUTH, "auth_url": "lab:5000/v3"}), "clouds.yaml:4"),
    ],
)
def test_what_is_missing_to_log_in(folder: Path, text: str, place: str) -> None:
    assert ("clouds-yaml.incomplete", place) in codes(folder, text)


@pytest.mark.parametrize(
    "text",
    [
        written(),
        written(CREDENTIAL, rest=TYPE + REGION),
        written({**AUTH, "domain_name": "Default"}, ("user_domain_name", "project_domain_name")),
        written({**AUTH, "project_id": '""', "user_id": '""'}),
        written(rest=REGION + "    verify: yes\n"),
        written(rest=REGION + "    identity_api_version: 3\n    endpoint_type: internalURL\n    interface: ''\n"),
        written(rest=REGION + "  other:\n"),
        *(written({**AUTH, "password": each}) for each in ("12345", "'012345'", '"yes"', "0123x", "1.5")),
        "x-base: &base\n  region_name: one\n" + written(rest="    <<: *base\n"),
    ],
)
def test_what_the_installer_takes(folder: Path, text: str) -> None:
    assert codes(folder, text) == []


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (written({**AUTH, "verify": "false"}), "clouds-yaml.other-clients", "clouds.yaml:10"),
        (written({**AUTH, "verify": "false"}), "clouds-yaml.ignored", "clouds.yaml:10"),
        (
            written({**AUTH, "default_domain": "default"}, ("user_domain_name", "project_domain_name")),
            "clouds-yaml.other-clients",
            "clouds.yaml:8",
        ),
        (written(CREDENTIAL), "clouds-yaml.other-clients", "clouds.yaml:2"),
        (written({**CREDENTIAL, "project_name": "p"}, rest=TYPE), "clouds-yaml.other-clients", "clouds.yaml:7"),
        (written(rest="    regions: [one]\n"), "clouds-yaml.ignored", "clouds.yaml:10"),
        (written(rest=REGION + "    insecure: true\n"), "clouds-yaml.ignored", "clouds.yaml:11"),
        (written(rest=REGION + "    network_endpoint_override: http://x\n"), "clouds-yaml.ignored", "clouds.yaml:11"),
    ],
)
def test_what_is_no_failure_of_the_installer(folder: Path, text: str, code: str, place: str) -> None:
    assert (code, place) in codes(folder, text)
    assert {each.status for each in entry("lab")} == {"warning"}


@pytest.mark.parametrize(
    ("auth", "auth_type"),
    [
        ({"auth_url": "http://lab/v3", "token": "hush", "project_id": "p"}, "v3token"),
        ({**AUTH, "token": "hush"}, "password"),
        ({**AUTH, "trust_id": "t"}, "password"),
        (AUTH, "v3oidcpassword"),
        (AUTH, "v3totp"),
        (AUTH, "v3multifactor"),
    ],
)
def test_a_credential_that_does_not_last(folder: Path, auth: dict[str, str], auth_type: str) -> None:
    found = codes(folder, written(auth, rest=f"    auth_type: {auth_type}\n"))
    assert "credential.short-lived" in [code for code, _ in found]


def test_secure_yaml_goes_first_and_is_decoded_whole(folder: Path) -> None:
    text = written(without=("password",))
    assert codes(folder, text, secure="clouds: {lab: {auth: {password: hush}}}") == []
    assert codes(folder, text, secure="clouds: {lab: {auth: {password: hush}}, x: {verify: x}}") == [
        ("clouds-yaml.invalid", "secure.yaml:1")
    ]
    (folder / "secure.yaml").rename(folder / "secure.yml")
    (folder / "secure.yml").write_text("clouds: {lab: {auth: {password: hush, username: ''}}}")
    assert codes(folder, text) == []
    found = find_entry("lab")
    assert found is not None
    assert for_client(found.settings)["auth"]["username"] == "u"


def test_the_login_of_the_installer(folder: Path) -> None:
    codes(folder, written({**CREDENTIAL, "project_name": "p"}, rest="    interface: odd\n    verify: false\n"))
    found = find_entry("lab")
    assert found is not None
    assert for_client(found.settings) == {
        "auth_type": "v3applicationcredential",
        "auth": {**CREDENTIAL, "auth_url": "http://lab/v3"},
        "identity_api_version": "3",
        "interface": "public",
        "verify": False,
    }


@pytest.mark.parametrize("before", ["", "clouds:\n  other: {auth: {auth_url: http://lab}}\n", "# mine\r\nclouds:\r\n"])
@pytest.mark.parametrize(
    "text", ["012345", "1e3", "09", "0o17", "y", "No", "0B11", "~", "2026-01-31", "a #b: c", "x\\n'\""]
)
def test_an_entry_that_apply_writes_means_the_same_to_each_program(folder: Path, text: str, before: str) -> None:
    auth = {**AUTH, "password": f"hush{text}", "username": text}
    given = clouds_yaml.merge(before, "lab", {"auth": {**AUTH, **auth}, "region_name": text})
    assert codes(folder, given) == []
    found = find_entry("lab")
    assert found is not None
    assert (found.settings["auth"], found.settings["region_name"]) == (auth, text)


def test_a_key_that_may_be_a_password_is_not_shown(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"clouds\.yaml:10: ") as caught:
        codes(folder, written(rest="    extra: {password:hush}\n"))
    assert "hush" not in str(caught.value)
    assert codes(folder, f"{written()}  other: {{password:hush}}\n") == []
