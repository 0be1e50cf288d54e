from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.check.preflight import Verdict, preflight
from tests.unit.conftest import IDENTITY, failure
from tests.unit.texts import Wording, contains, expect_error

WHOLE: dict[str, Any] = {
    "apiVersion": "v1",
    "metadata": {"name": "dev"},
    "baseDomain": "example.com",
    "controlPlane": {"name": "master", "platform": {"openstack": {"type": "m"}}},
    "compute": [{"name": "worker", "platform": {"openstack": {"type": "m"}}}],
    "pullSecret": '{"auths":{"x":{"auth":"Zm9vOmJhcg=="}}}',
}


def verdict(folder: Path, release: str = "4.18", cloud: str = "nobodys", **more: Any) -> Verdict:
    """Look at an install-config whose cloud is in no clouds.yaml, so that the file alone is looked at."""
    path = folder / "install-config.yaml"
    platform = {"cloud": cloud, "externalNetwork": "external"} | more.pop("openstack", {})
    path.write_text(yaml.safe_dump(WHOLE | more | {"platform": {"openstack": platform}}))
    return preflight(path, release)


def told(found: Verdict) -> list[str]:
    return [f"{each.status} {each.where}: {each.what}" for each in found.findings]


@pytest.fixture
def missing(clouds_yaml: Path) -> str:
    """What is said of a cloud that is in no clouds.yaml."""
    return f"error {clouds_yaml}: has no entry 'nobodys'; it has lab, other"


def test_without_an_entry_nothing_is_asked_of_a_cloud(
    clouds_yaml: Path, missing: str, services: requests_mock.Mocker
) -> None:
    found = verdict(clouds_yaml.parent)
    assert told(found) == [missing]
    assert (found.errors, found.warnings, found.cloud, found.release) == (1, 0, "nobodys", "4.18")
    assert not services.request_history


@pytest.mark.parametrize(("release", "codes"), [("5.2", ["install-config.newer-release"]), ("5.1", []), ("5.0", [])])
def test_a_release_newer_than_the_newest_is_checked_with_a_warning(
    clouds_yaml: Path, services: requests_mock.Mocker, release: str, codes: list[str]
) -> None:
    found = verdict(clouds_yaml.parent, release)
    assert [each.code for each in found.findings if each.status == "warning"] == codes
    assert [each.where for each in found.findings if each.code in codes] == ["release"] * len(codes)
    assert (found.errors, found.release) == (1, release)


def test_of_a_folder_that_has_a_cluster_nothing_else_is_said(clouds_yaml: Path, services: requests_mock.Mocker) -> None:
    (clouds_yaml.parent / "metadata.json").write_text('{"infraID": "dev-x7k2p"}')
    (said,) = told(verdict(clouds_yaml.parent, cloud="lab", publish="Internal"))
    assert contains(said, f"error {clouds_yaml.parent}/metadata.json", "dev-x7k2p")
    assert not services.request_history


def test_fields_that_a_release_does_not_know_or_has_new_names_for(
    clouds_yaml: Path, missing: str, wording: Wording
) -> None:
    old = {"apiVIP": "10.0.0.5", "ingressVIP": "10.0.0.7", "externalNetwrk": "x"}
    found = verdict(clouds_yaml.parent, openstack=old)
    wording(told(found))
    deprecated = "install-config.deprecated"
    assert [each.code for each in found.findings[1:]] == [deprecated, "install-config.ignored", deprecated]


def test_what_makes_the_installer_stop_is_an_error(clouds_yaml: Path, missing: str) -> None:
    both = {"apiVIP": "10.0.0.5", "apiVIPs": ["10.0.0.6"], "ingressVIPs": ["10.0.0.7"]}
    found = told(verdict(clouds_yaml.parent, openstack=both))
    fields = "platform.openstack.apiVIPs and platform.openstack.apiVIP"
    assert any(contains(text, f"error {fields}") for text in found)
    unknown = told(verdict(clouds_yaml.parent, "4.10", openstack={"nonsense": 1}))
    assert any(contains(text, "error platform.openstack.nonsense", "4.10") for text in unknown)


def test_what_the_installer_refuses_is_told_by_its_own_names(clouds_yaml: Path, missing: str, wording: Wording) -> None:
    found = verdict(clouds_yaml.parent, controlPlane={"name": "master", "replicas": 5}, publish="Internal")
    wording(told(found))


def test_a_pull_secret_that_is_no_json_is_told_and_not_shown(clouds_yaml: Path, missing: str) -> None:
    found = verdict(clouds_yaml.parent, pullSecret="Zm9vOmJhcg==")
    assert told(found) == ["error pullSecret: is not JSON with auths", missing]
    assert "Zm9v" not in str(found)


def test_a_login_that_is_refused_is_a_finding(clouds_yaml: Path, services: requests_mock.Mocker) -> None:
    services.post(f"{IDENTITY}/auth/tokens", **failure(401, "wrong password"))
    (found,) = verdict(clouds_yaml.parent, cloud="lab").findings
    assert found.where == f"{clouds_yaml}: lab"
    assert "401" in found.what
    assert "admin-password" not in str(found)


def test_a_keystone_that_is_away_is_waited_for_a_while(clouds_yaml: Path, services: requests_mock.Mocker) -> None:
    asked = services.post(f"{IDENTITY}/auth/tokens", **failure(503))
    (found,) = verdict(clouds_yaml.parent, cloud="lab").findings
    assert "503" in found.what
    assert asked.call_count == 5


def test_what_cannot_be_read_is_no_finding(clouds_yaml: Path) -> None:
    with expect_error(SpecError, "controlPlane.replicas", "x"):
        verdict(clouds_yaml.parent, controlPlane={"replicas": "x"})


def test_as_data(clouds_yaml: Path, missing: str) -> None:
    data = verdict(clouds_yaml.parent).data()
    assert data["errors"] == 1
    assert set(data["findings"][0]) == {"code", "status", "where", "what", "why", "fix"}


def test_a_token_is_tried_although_it_is_short_lived(clouds_yaml: Path, services: requests_mock.Mocker) -> None:
    auth = {"auth_url": IDENTITY, "token": "hush", "project_id": "p1"}
    clouds = {"lab": {"auth": auth, "auth_type": "v3token", "region_name": "one"}}
    clouds_yaml.write_text(yaml.safe_dump({"clouds": clouds}))
    services.post(f"{IDENTITY}/auth/tokens", **failure(401))
    found = verdict(clouds_yaml.parent, cloud="lab")
    assert [each.code for each in found.findings] == ["credential.short-lived", "login.failed"]
    assert "hush" not in "".join(map(str, found.findings))
