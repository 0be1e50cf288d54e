from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.check.entry import entry
from openstack_prep.openshift.clientconfig import find_entry
from tests.unit.texts import Wording, contains

LOGIN = (
    "{auth_url: 'http://lab/v3', username: u, password: hush, project_name: p, user_domain_name: d, "
    "project_domain_name: d}"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a folder to work in, where no OS_* variable is set."""
    for name in ("OS_CLOUD", "OS_CLIENT_CONFIG_FILE", "OS_AUTH_URL", "OS_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    (tmp_path / ".config" / "openstack").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def write(path: Path, **settings: str) -> Path:
    lines = [f"    {name}: {value}\n" for name, value in settings.items()]
    path.write_text(f"clouds:\n  lab:\n    auth: {LOGIN}\n" + "".join(lines))
    return path


def told(cloud: str = "lab") -> list[str]:
    return [f"{each.status} {each.where}: {each.what}" for each in entry(cloud)]


def path_of(cloud: str) -> Path:
    found = find_entry(cloud)
    assert found is not None
    assert "hush" not in repr(found)
    return found.path


def test_the_first_place_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = write(home / ".config" / "openstack" / "clouds.yaml")
    assert told() == []
    assert path_of("lab") == usual
    here = write(home / "work" / "clouds.yaml")
    assert path_of("lab") == here
    named = write(home / "named.yaml")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(named))
    assert path_of("lab") == named


def test_a_file_that_the_installer_will_be_given(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLOUD", "other")  # and OS_CLOUD with it
    given = write(home / "given.yaml")
    assert list(entry("lab", given)) == []
    assert [each.where for each in entry("nobodys", given)] == [str(given)]


def test_a_name_with_yml_counts_if_there_is_no_yaml(home: Path) -> None:
    usual = home / ".config" / "openstack"
    (home / "work" / "clouds.yml").write_text("clouds: {other: {}}")
    assert contains(told()[0], f"error {home / 'work' / 'clouds.yml'}", "lab")
    write(usual / "clouds.yaml")
    assert path_of("lab") == usual / "clouds.yaml"
    assert told() == []


def test_only_the_first_file_is_looked_into(home: Path, wording: Wording) -> None:
    write(home / ".config" / "openstack" / "clouds.yaml")
    here = home / "work" / "clouds.yaml"
    here.write_text("clouds: {other: {}, more: {}}")
    hidden = home / ".config" / "openstack" / "clouds.yaml"
    wording(told())
    (said,) = entry("lab")
    assert said.fix == f"export OS_CLIENT_CONFIG_FILE={hidden}"


def test_a_file_that_is_named_and_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "work" / "clouds.yaml")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "/nowhere/clouds.yaml")
    (said,) = entry("lab")
    assert (said.status, said.where) == ("warning", "OS_CLIENT_CONFIG_FILE")
    assert str(home / "work" / "clouds.yaml") in said.why


def test_a_broken_file_is_told_by_its_line(home: Path) -> None:
    (home / "work" / "clouds.yaml").write_text("clouds: [\n")
    with pytest.raises(SpecError, match=r"clouds\.yaml:2: is not YAML"):
        list(entry("lab"))


def test_a_ca_bundle(home: Path, wording: Wording) -> None:
    path = write(home / "work" / "clouds.yaml", cacert="ca.pem")
    (said,) = told()
    assert contains(said, f"error {path}", "lab: cacert: ca.pem")
    bundle = home / "work" / "ca.pem"
    bundle.write_text("nothing")
    wording(told())
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    assert told() == []
    start = "-----BEGIN CERTIFICATE-----\n"
    bundle.write_text(start.ljust(36863, "x"))  # twice in base64: 49152, and 65536 with the last group of three padded
    assert told() == []
    bundle.write_text(start.ljust(36864, "x"))
    (said,) = told()
    assert said.startswith(f"warning {path}: lab: cacert: ca.pem has 36864 bytes")


def test_a_bundle_in_the_home_and_one_that_is_a_certificate_itself(home: Path, wording: Wording) -> None:
    """Other clients take both; the installer opens whatever stands there."""
    path = write(home / "work" / "clouds.yaml", cacert="~/ca.pem")
    (home / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (said,) = told()
    assert contains(said, f"error {path}", "lab: cacert: ~/ca.pem")
    write(home / "work" / "clouds.yaml", cacert="'-----BEGIN CERTIFICATE----- MIIB'")
    wording(told())
    write(home / "work" / "clouds.yaml", cacert='"a\\0b"')
    assert [each.partition(": lab")[0] for each in told()] == [f"error {path}"]


@pytest.mark.parametrize("entry", ["", "x", "[1]"])
def test_an_entry_that_is_no_mapping(home: Path, entry: str, wording: Wording) -> None:
    path = home / "work" / "clouds.yaml"
    path.write_text(f"clouds:\n  lab: {entry}\n")
    wording(told())


def test_a_profile_must_stand_in_a_file(home: Path, wording: Wording) -> None:
    write(home / "work" / "clouds.yaml", profile="rackspace")
    (said,) = told()
    wording(said)
    (home / "work" / "clouds-public.yaml").write_text("public-clouds: {rackspace: {}}")
    assert told() == []


def test_a_shell_that_means_something_else(home: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    write(home / "work" / "clouds.yaml")
    monkeypatch.setenv("OS_CLOUD", "lab")
    monkeypatch.setenv("OS_COMPUTE_API_VERSION", "2.1")  # of the client alone
    assert told() == []
    monkeypatch.setenv("OS_CLOUD", "other")
    monkeypatch.setenv("OS_PASSWORD", "hush")
    monkeypatch.setenv("OS_AUTH_URL", "http://x")
    wording(told())


HOSTILE = "x; touch PWNED; $(id)"


def test_a_name_cannot_add_commands_to_a_fix(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".config/openstack/clouds.yaml").write_text(yaml.safe_dump({"clouds": {HOSTILE: {"auth": {}}}}))
    monkeypatch.setenv("OS_CLOUD", "other")
    monkeypatch.setenv("OS_AUTH_$(id)", "x")
    fixes = [each.fix for each in entry(HOSTILE) if each.code in ("environment.other-cloud", "environment.ignored")]
    assert [shlex.split(each) for each in fixes] == [["export", f"OS_CLOUD={HOSTILE}"], ["unset", "OS_AUTH_$(id)"]]
