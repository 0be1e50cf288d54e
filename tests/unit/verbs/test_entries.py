"""Whether clients can log in by the entries that a plan leaves as they are, and what a new file would hide."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.cloud import connection as cloud_connection
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.files import client_login
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs import entries
from tests.unit.conftest import IDENTITY, connection, failure
from tests.unit.resources.credentials.test_application_credential import Keystone

TOKENS = f"{IDENTITY}/auth/tokens"


@pytest.fixture
def applied(services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Cloud, Spec]:
    """An entry that was written, and that no step changes."""
    monkeypatch.setattr(client_login, "PAUSES", (0.0, 0.0))
    Keystone(services)
    file = str(tmp_path / "made/clouds.yaml")
    (tmp_path / "made").mkdir()
    cloud, spec = Cloud(connection()), Spec("lab", (ApplicationCredential(name="a", clouds_yaml=file, cloud="a"),))
    prep.apply(cloud, spec).raise_for_failures()
    return cloud, spec


def logins(services: requests_mock.Mocker) -> int:
    sent = [each.json()["auth"]["identity"]["methods"] for each in services.request_history if each.url == TOKENS]
    return sent.count(["application_credential"])


@pytest.mark.parametrize(
    ("answer", "codes", "warnings"),
    [(failure(401), [Code.ENTRY_LOGIN], 0), (failure(503), [], 1)],
)
def test_a_login_that_fails(
    services: requests_mock.Mocker,
    applied: tuple[Cloud, Spec],
    answer: dict[str, Any],
    codes: list[Code],
    warnings: int,
) -> None:
    """What the entry itself prevents refuses the plan; other machines may reach what this one does not."""
    before = prep.plan(*applied)
    services.post(TOKENS, **answer)
    made = prep.plan(*applied)
    assert (before.refusals, [each.code for each in made.refusals]) == ((), codes)
    assert [str(key) for each in made.refusals for key in each.keys] == ["application_credential/a"] * len(codes)
    assert len(made.warnings) - len(before.warnings) == warnings


def test_a_login_that_would_be_that_of_others_is_not_tried(
    services: requests_mock.Mocker, applied: tuple[Cloud, Spec]
) -> None:
    """Their password may lock the user out."""
    made = prep.plan(*applied)
    before = logins(services)
    run = CloudRun(applied[0], OwnershipTag("lab"))
    (key,) = (step.key for step in made)
    for code, tried in ((Code.ENTRY_OVERRIDDEN, 0), (Code.ENTRY_LOGIN, 1)):
        refused = replace(made, refusals=(Mistake.about(key, "", code=code),))
        assert entries.examine(run, refused, jobs=1) == []
        assert logins(services) - before == tried


@pytest.mark.parametrize("in_file", [True, False])
def test_a_new_file_that_hides_the_entry_in_use(
    empty_cloud: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch, in_file: bool
) -> None:
    """The warning names a place in a folder of the spec's name, as the spec would write it."""
    base = clouds_yaml.parent
    here, used = base / "sub/clouds.yaml", clouds_yaml.rename(clouds_yaml.with_name("used.yaml"))
    here.parent.mkdir()
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE")
    monkeypatch.setattr(cloud_connection.loader, "CONFIG_FILES", [str(here), str(used)])
    Keystone(empty_cloud)
    spec = Spec("lab", (ApplicationCredential(name="a", clouds_yaml=str(here), cloud="a"),))
    if in_file:
        credential = "{name: a, clouds_yaml: sub/clouds.yaml, cloud: a}"
        (base / "spec.yaml").write_text(f"name: lab\napplication_credentials: [{credential}]\n")
        spec = load_spec(base / "spec.yaml")
        monkeypatch.chdir(base / "sub")
    cloud = prep.connect("lab")
    made = prep.plan(cloud, spec)
    (warning,) = entries.list_warnings(cloud, made, spec)
    assert f"write clouds_yaml: sub/lab/clouds.yaml, or export OS_CLIENT_CONFIG_FILE={used}" in warning
    assert warning in made.warnings


def test_a_file_that_a_new_entry_makes_private(
    empty_cloud: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may use an entry of theirs in it; one that only its owner reads is nothing to tell."""
    shared = clouds_yaml.with_name("shared.yaml")
    shared.write_text("clouds: {theirs: {auth: {}}}\n")
    Keystone(empty_cloud)
    spec = Spec("lab", (ApplicationCredential(name="a", clouds_yaml=str(shared), cloud="a"),))
    cloud = prep.connect("lab")
    for mode, told in ((0o640, ["0640"]), (0o600, [])):
        shared.chmod(mode)
        made = prep.plan(cloud, spec)
        found = [each for each in made.warnings if str(shared) in each]
        assert [each.partition(" from ")[2][:4] for each in found] == told
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (warning,) = (each for each in prep.plan(cloud, spec).warnings if str(shared) in each)
    assert "belongs to another user" in warning
