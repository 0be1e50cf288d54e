"""What clients read over an entry that apply writes, and logins by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import EntryUnusable
from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Status
from openstack_prep.core.plan import Plan
from openstack_prep.resources.files import client_login
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.files.env_file import EnvFile
from openstack_prep.resources.identity.user import User
from openstack_prep.verbs import entries
from tests.unit.conftest import IDENTITY, failure, resolved, token

TOKENS = f"{IDENTITY}/auth/tokens"
REFUSED = failure(401, "The request you have made requires authentication.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is not the one of the process, nor the one in which openstacksdk was imported."""
    monkeypatch.setattr(client_login, "PAUSES", (0.0, 0.0))
    found = tmp_path / "cluster"
    found.mkdir()
    return found


def wanted(run: CloudRun, folder: Path, **more: Any) -> CloudsEntry:
    user = User(name="ocp", password=Secret("s3cret"))
    fields = {"path": str(folder / "clouds.yaml"), "cloud": "lab", "user": "ocp", "project": "ocp-tenant"} | more
    return resolved(CloudsEntry(**fields), [user], run.admin)


def plan(run: CloudRun, entry: CloudsEntry) -> Plan:
    observed, mistakes = observation.observe(run, [entry]), []
    mistakes += entry.check(run, observed.get(entry.key))
    return planner.plan_apply("lab", [entry], observed, mistakes=mistakes)


def refused(run: CloudRun, entry: CloudsEntry) -> list[tuple[str, str]]:
    return [(each.code, each.what.partition(", which")[0]) for each in plan(run, entry).refusals]


def put(folder: Path, name: str, **entry: Any) -> None:
    (folder / name).write_text(yaml.safe_dump({"clouds": {"lab": entry, "other": {"auth": {"password": "x"}}}}))


@pytest.mark.parametrize(
    ("file", "secured", "found"),
    [
        ("secure.yaml", {"auth": {"password": "old"}}, ["4 sets auth.password"]),
        ("secure.yml", {"auth": {"password": "old"}}, ["4 sets auth.password"]),
        ("secure.yaml", {"auth": {"password": "s3cret"}}, []),
        ("secure.yaml", {"password": "old"}, ["3 sets password"]),
        ("secure.yaml", {"auth": {"trust_id": "t"}}, ["4 sets auth.trust_id"]),
        (
            "secure.yaml",
            {"auth": {"project_name": "p", "username": "u"}},
            ["4 sets auth.project_name", "5 sets auth.username"],
        ),
        ("secure.yaml", {"region_name": "two"}, ["3 sets region_name"]),
        ("secure.yaml", {"insecure": True}, ["3 sets insecure"]),
        ("secure.yaml", {"verify": False}, ["3 sets verify"]),
        ("secure.yaml", {"auth_type": "v3token", "auth": {"token": "t"}}, None),
        ("secure.yaml", {"image_format": "raw"}, []),
        ("secure.yaml", {}, []),
    ],
)
def test_what_goes_before_the_entry_is_refused_before_and_after_it_is_written(
    run: CloudRun, folder: Path, file: str, secured: dict[str, Any], found: list[str] | None
) -> None:
    put(folder, file, **secured)
    entry = wanted(run, folder)
    first = refused(run, entry)
    if found is not None:
        assert first == [(Code.ENTRY_OVERRIDDEN, f"{folder / file}:{each}") for each in found]
    (folder / file).rename(folder / "away")
    executor.execute(plan(run, entry), run).raise_for_failures()
    (folder / "away").rename(folder / file)
    again = refused(run, entry)
    assert again == first
    assert bool(again) is (found != [])
    assert "old" not in str(plan(run, entry).refusals)


def test_an_entry_with_a_secret_that_is_not_known_yet_is_overridden(run: CloudRun, folder: Path) -> None:
    put(folder, "secure.yaml", auth={"password": "anything"})
    entry = wanted(run, folder, password=from_spec({"generate": "pw"}, base=folder))
    assert [code for code, _ in refused(run, entry)] == [Code.ENTRY_OVERRIDDEN]
    assert not (folder / "pw").exists()


def test_a_setting_of_others_in_the_entry_itself_is_named(run: CloudRun, folder: Path) -> None:
    entry = wanted(run, folder)
    entry.create(run)
    data = yaml.safe_load(entry.file.read_text())
    data["clouds"]["lab"]["password"] = "older"
    entry.file.write_text(yaml.safe_dump(data, sort_keys=False))
    ((code, what),) = refused(run, entry)
    assert code == Code.ENTRY_OVERRIDDEN
    assert what.endswith("sets password")
    assert what.startswith(f"{entry.file}:")


def test_variables_of_the_process_do_not_count(
    run: CloudRun, folder: Path, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PASSWORD": "env", "REGION_NAME": "nine", "CLOUD": "x", "CLIENT_SECURE_FILE": "/none"}.items():
        monkeypatch.setenv(f"OS_{name}", value)
    entry = wanted(run, folder)
    entry.create(run)
    (login,) = (each.json() for each in services.request_history if each.url == TOKENS and "s3cret" in each.text)
    assert login["auth"]["identity"]["password"]["user"] == {
        "name": "ocp", "password": "s3cret", "domain": {"name": "Default"}
    }  # fmt: skip


def test_a_relative_ca_of_others_is_beside_the_file(run: CloudRun, folder: Path) -> None:
    (folder / "ca.pem").touch()
    put(folder, "secure.yaml", cacert="ca.pem")
    entry = wanted(run, folder, cacert=str(folder / "ca.pem"))
    assert refused(run, entry) == []


def test_a_refused_login_fails_the_step_and_the_next_plan(
    run: CloudRun, folder: Path, services: requests_mock.Mocker
) -> None:
    entry = wanted(run, folder)
    made = plan(run, entry)
    services.post(TOKENS, **REFUSED)
    (result,) = executor.execute(made, run).results
    assert result.status is Status.FAILED
    assert isinstance(result.error, EntryUnusable)
    assert "s3cret" not in str(result.error)
    (found,) = entries.examine(run, plan(run, entry), jobs=1)
    assert not isinstance(found, str)
    assert found.code == Code.ENTRY_LOGIN


MFA = {
    "status_code": 401,
    "headers": {"Content-Type": "application/json", "Openstack-Auth-Receipt": "r"},
    "json": {
        "receipt": {"methods": ["password"], "expires_at": "2036-11-21T00:00:00.000000Z", "user": {"id": "u"}},
        "required_auth_methods": [["password", "totp"]],
    },
}
"""Keystone 30.0.0, server/flask/application.py: the answer to a right password that is not enough."""


@pytest.mark.parametrize(
    "answer",
    [
        MFA,
        failure(401, "The password is expired and needs to be changed for user: u."),
        failure(401, "The account is locked for user: u."),
        failure(401, "The account is disabled for user: u."),
    ],
)
def test_a_user_who_may_not_log_in_is_a_warning(
    run: CloudRun, folder: Path, services: requests_mock.Mocker, answer: dict[str, Any]
) -> None:
    entry = wanted(run, folder)
    notes: list[str] = []
    run.note = lambda key, text: notes.append(text)
    services.post(TOKENS, **answer)
    entry.create(run)
    assert len(notes) == 1
    (found,) = entries.examine(run, plan(run, entry), jobs=1)
    assert isinstance(found, str)
    actor = Actor(entry._user(), Secret("s3cret"), "Default")
    assert run.logs_in(actor)  # the password is not known to be wrong, so no apply sets it again


def test_a_role_that_keystone_does_not_know_yet_is_waited_for(
    run: CloudRun, folder: Path, services: requests_mock.Mocker
) -> None:
    entry = wanted(run, folder)
    made = plan(run, entry)
    for plural in ("users", "projects", "domains"):
        services.get(f"{IDENTITY}/{plural}", json={plural: [{"id": "x", "name": "x", "enabled": True}]})
    services.post(TOKENS, [REFUSED, {"json": token(), "status_code": 201, "headers": {"X-Subject-Token": "4f2a9c"}}])
    executor.execute(made, run).raise_for_failures()


def test_what_cannot_be_reached_from_here_is_a_warning(
    run: CloudRun, folder: Path, services: requests_mock.Mocker
) -> None:
    entry = wanted(run, folder)
    entry.create(run)
    services.post(TOKENS, **failure(503))
    (found,) = entries.examine(run, plan(run, entry), jobs=1)
    assert isinstance(found, str)


def test_an_entry_that_the_plan_changes_is_examined_by_its_step(run: CloudRun, folder: Path) -> None:
    wanted(run, folder).create(run)
    changed = plan(run, wanted(run, folder, interface="internal"))
    assert changed.pending
    assert entries.examine(run, changed, jobs=1) == []


@pytest.mark.parametrize(
    ("variables", "named"),
    [({}, False), ({"FOO": "1", "OS_CLOUD": "lab"}, False), ({"OS_PASSWORD": "other"}, True)],
)
def test_variables_of_an_env_file_go_before_the_entry(
    run: CloudRun, folder: Path, services: requests_mock.Mocker, variables: dict[str, str], named: bool
) -> None:
    entry = wanted(run, folder)
    entry.create(run)
    path = folder / "lab.env"
    env_file = EnvFile(path=str(path), cloud="lab", clouds_yaml=entry.path, variables=variables)
    before = len(services.request_history)
    services.post(TOKENS, **REFUSED)
    if not named:
        env_file.create(run)
        assert len(services.request_history) == before  # the entry has been examined
        return
    with pytest.raises(EntryUnusable, match="OS_PASSWORD"):
        env_file.create(run)
    assert '"other"' in services.request_history[-1].text


def test_an_env_file_of_an_entry_that_does_not_exist_yet_is_written(run: CloudRun, folder: Path) -> None:
    path = folder / "lab.env"
    EnvFile(path=str(path), cloud="lab", clouds_yaml=str(folder / "none.yaml")).create(run)
    assert path.exists()
