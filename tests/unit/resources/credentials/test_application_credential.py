from __future__ import annotations

import itertools
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Context, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.credentials.application_credential import (
    AccessRule,
    ApplicationCredential,
    RotatedCredential,
)
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from tests.unit.conftest import (
    ADMIN_PROJECT,
    ADMIN_USER,
    IDENTITY,
    connection,
    declared_mistakes,
    failure,
    resolved,
    sent,
    token,
)
from tests.unit.texts import Wording, contains

CREDENTIALS = f"{IDENTITY}/users/{ADMIN_USER}/application_credentials"
IMPLIES = [{"prior_role": {"name": "member"}, "implies": [{"name": "reader"}]}]


class Keystone:
    """Keystone's application credentials of one user."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.held: list[dict[str, Any]] = []
        self.numbers = itertools.count(1)
        self.lose_answers = 0
        services.get(CREDENTIALS, json=lambda *_: {"application_credentials": self.held})
        services.post(CREDENTIALS, json=self.create)
        services.delete(requests_mock.ANY, status_code=204)
        services.get(f"{IDENTITY}/role_inferences", json={"role_inferences": IMPLIES})
        self.services = services

    def create(self, request: Any, context: Any) -> dict[str, Any]:
        asked = request.json()["application_credential"]
        number = next(self.numbers)
        if asked["name"] in self.names:
            context.status_code = 409
            return {"error": {"message": "Duplicate entry", "code": 409}}
        wanted = [role["name"] for role in asked.get("roles", [{"name": "admin"}])]
        roles = wanted + (["reader"] if "member" in wanted else [])
        made = {"id": f"c{number}", "user_id": ADMIN_USER, "project_id": ADMIN_PROJECT, "unrestricted": None}
        made |= {"expires_at": None, "access_rules": []}
        self.held.append({**made, **asked, "roles": [{"name": role} for role in roles]})
        self.services.delete(f"{CREDENTIALS}/c{number}", status_code=204, json=self.remove)
        context.status_code = 201
        if self.lose_answers:
            self.lose_answers -= 1
            context.status_code = 504
            return {}
        return {"application_credential": {**self.held[-1], "secret": f"s3cret-{number}"}}

    def remove(self, request: Any, context: Any) -> Any:
        self.held = [each for each in self.held if each["id"] != request.path.rpartition("/")[2]]

    @property
    def names(self) -> list[str]:
        return [each["name"] for each in self.held]


@pytest.fixture
def keystone(services: requests_mock.Mocker) -> Keystone:
    return Keystone(services)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clouds.yaml"


def credential(run: CloudRun, path: Path, **more: Any) -> ApplicationCredential:
    wanted = ApplicationCredential(name="app", clouds_yaml=str(path), cloud="lab", **more)
    return resolved(wanted, [], run.admin)


def plan(run: CloudRun, wanted: ApplicationCredential, consent: bool = False) -> Plan:
    run = run.fresh()
    observed, mistakes = observation.examine(run, [wanted])
    return planner.plan_apply("lab", [wanted], observed, mistakes=mistakes, allow_replace=consent)


def apply(run: CloudRun, wanted: ApplicationCredential, consent: bool = False) -> None:
    made = plan(run, wanted, consent)
    made.raise_for_refusals()
    executor.execute(made, run).raise_for_failures()
    assert not plan(run, wanted), str(plan(run, wanted))


def auth(path: Path) -> dict[str, str]:
    return dict(yaml.safe_load(path.read_text())["clouds"]["lab"]["auth"])


def test_the_secret_goes_into_clouds_yaml_and_nowhere_else(
    run: CloudRun, keystone: Keystone, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rules = (AccessRule(method="GET", service="compute", path="/v2.1/servers"),)
    wanted = credential(run, path, roles=("member",), description="for the cluster", access_rules=rules)
    made = plan(run, wanted)
    report = executor.execute(made, run)
    report.raise_for_failures()
    assert yaml.safe_load(path.read_text())["clouds"]["lab"] == {
        "auth_type": "v3applicationcredential",
        "auth": {
            "application_credential_id": "c1",
            "application_credential_name": "app",
            "application_credential_secret": "s3cret-1",
            "auth_url": IDENTITY,
        },
        "identity_api_version": "3",
        "compute_api_version": "2",
        "region_name": "one",
        "interface": "public",
        "openstack_prep": "[openstack-prep:lab/app]",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    posted = next(each for each in keystone.services.request_history if each.path.endswith("credentials") and each.body)
    body = posted.json()["application_credential"]
    body["description"] = re.sub("@@[0-9a-f]{8}]", "@@ATTEMPT]", body["description"])
    assert body == {
        "name": "app",
        "description": "for the cluster [openstack-prep:lab/app@@ATTEMPT]",
        "roles": [{"name": "member"}],
        "access_rules": [{"method": "GET", "service": "compute", "path": "/v2.1/servers"}],
    }
    assert not plan(run, wanted)
    assert "s3cret" not in "".join((caplog.text, str(made), str(report), str(report.data()), str(report.results)))


@pytest.mark.parametrize("change", [{"roles": ("admin",)}, {"unrestricted": True}, {"description": "x"}])
def test_what_keystone_cannot_change_is_renewed(
    run: CloudRun, keystone: Keystone, path: Path, change: dict[str, Any], wording: Wording
) -> None:
    apply(run, credential(run, path, roles=("member",)))
    wanted = credential(run, path, **{"roles": ("member",)} | change)
    (step,) = plan(run, wanted)
    assert step.action is Action.UPDATE
    (refusal,) = plan(run, wanted).refusals
    field = next(iter(change))
    assert refusal.code == "plan.loses"
    assert contains(refusal.what, "app (c1", "deleted", field)
    assert refusal.code == "plan.loses"
    wording(refusal.what)
    assert "openstack-prep credential rotate SPEC --name app --keep-old" in refusal.fix
    apply(run, wanted, consent=True)
    assert (auth(path)["application_credential_id"], keystone.names) == ("c2", ["app-new"])
    apply(run, credential(run, path, roles=("reader",)), consent=True)
    assert (auth(path)["application_credential_id"], keystone.names) == ("c3", ["app"])


def test_a_role_too_many_is_no_implied_one(run: CloudRun, keystone: Keystone, path: Path) -> None:
    apply(run, credential(run, path, roles=("member", "admin")))
    (step,) = plan(run, credential(run, path, roles=("member",)))
    assert [(change.field, change.before) for change in step.changes] == [
        ("roles", {"member", "admin"}),
        ("secret", "(of app, which a new credential replaces)"),
    ]


def test_roles_count_as_implied_when_one_may_not_ask(run: CloudRun, keystone: Keystone, path: Path) -> None:
    keystone.services.get(f"{IDENTITY}/role_inferences", **failure(403))
    apply(run, credential(run, path, roles=("member",)))


def test_a_lost_secret_is_renewed_in_one_apply(run: CloudRun, keystone: Keystone, path: Path) -> None:
    keystone.lose_answers = 1
    apply(run, credential(run, path))
    assert (auth(path)["application_credential_secret"], keystone.names) == ("s3cret-2", ["app"])


def test_one_whose_secret_is_elsewhere_is_deleted_by_consent_only(
    run: CloudRun, keystone: Keystone, path: Path, tmp_path: Path
) -> None:
    apply(run, credential(run, path))
    other = tmp_path / "other" / "clouds.yaml"
    elsewhere = credential(run, other)
    (refusal,) = plan(run, elsewhere).refusals
    assert refusal.code == "plan.loses"
    assert contains(str(refusal), "application_credential/app", "app (c1", "deleted", other, "--allow-replace")
    apply(run, elsewhere, consent=True)
    assert (auth(other)["application_credential_secret"], keystone.names) == ("s3cret-2", ["app"])
    (refusal,) = plan(run, credential(run, path)).refusals
    assert refusal.code == "plan.loses"
    assert contains(str(refusal), path)


def test_killed_before_the_first_secret_is_written_it_goes_on(run: CloudRun, keystone: Keystone, path: Path) -> None:
    def die(*given: Any) -> None:
        keystone.create(*given)
        raise KeyboardInterrupt

    wanted = credential(run, path)
    keystone.services.post(CREDENTIALS, json=die)
    with pytest.raises(KeyboardInterrupt):
        executor.execute(plan(run, wanted), run)
    assert "secret (not written)" in str(plan(run, wanted))
    keystone.services.post(CREDENTIALS, json=keystone.create)
    apply(run, wanted)
    assert (auth(path)["application_credential_secret"], keystone.names) == ("s3cret-2", ["app"])


def test_one_of_another_folder_is_not_what_a_killed_run_has_begun(
    run: CloudRun, keystone: Keystone, path: Path, tmp_path: Path
) -> None:
    keystone.services.post(CREDENTIALS, exc=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        executor.execute(plan(run, credential(run, path)), run)
    keystone.services.post(CREDENTIALS, json=keystone.create)
    apply(run, credential(run, tmp_path / "other" / "clouds.yaml"))
    (refusal,) = plan(run, credential(run, path)).refusals
    assert refusal.code == "plan.loses"
    assert contains(str(refusal), "app (c1", path)


def test_what_was_begun_is_taken_back(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    begun = {"application_credential_name": "app", "auth_url": IDENTITY}
    clouds_yaml.put(path, "lab", {"auth": begun})  # as earlier versions wrote it
    destroy = planner.plan_destroy("lab", [wanted], observation.observe(run.fresh(), [wanted]))
    executor.execute(destroy, run).raise_for_failures()
    assert not path.exists()
    assert not keystone.held


def test_one_that_is_refused_leaves_no_entry(run: CloudRun, keystone: Keystone, path: Path) -> None:
    keystone.services.post(CREDENTIALS, **failure(403))
    assert executor.execute(plan(run, credential(run, path)), run).failed
    assert not path.exists()


def test_one_that_has_ended_serves_nobody_and_is_renewed(
    run: CloudRun, keystone: Keystone, path: Path, tmp_path: Path
) -> None:
    apply(run, credential(run, path, expires_at="2036-01-01T00:00:00Z"))
    keystone.held[0]["expires_at"] = "2026-01-01T00:00:00.000000"
    wanted = credential(run, path)
    assert "secret (ended 2026-01-01T00:00:00Z) -> ********" in str(plan(run, wanted))
    assert not plan(run, credential(run, tmp_path / "other.yaml")).refusals
    apply(run, wanted)
    assert (auth(path)["application_credential_secret"], keystone.names) == ("s3cret-2", ["app-new"])


def test_keystone_may_learn_of_roles_a_moment_late(run: CloudRun, keystone: Keystone, path: Path) -> None:
    late = failure(400, "Invalid application credential: Could not find role assignment with role: r1")
    keystone.services.post(CREDENTIALS, [late, {"json": keystone.create, "status_code": 201}])
    apply(run, credential(run, path))
    assert keystone.names == ["app"]


@pytest.mark.parametrize("dies", ["put", "drop"])
def test_killed_between_its_writes_it_converges(
    run: CloudRun, keystone: Keystone, path: Path, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    """In a renewal: after the new one is made, and after the entry is switched."""
    apply(run, credential(run, path))
    wanted = credential(run, path, unrestricted=True)

    put, writes = clouds_yaml.put, iter(["what may be left", "the new one"])

    def die(*given: Any) -> None:
        if next(writes) == "the new one":
            raise RuntimeError("killed")
        put(*given)

    with monkeypatch.context() as patch:
        if dies == "put":
            patch.setattr(clouds_yaml, "put", die)
        else:
            keystone.services.delete(f"{CREDENTIALS}/c1", **failure(400))
        assert executor.execute(plan(run, wanted, consent=True), run).failed
    assert keystone.names == ["app", "app-new"]
    assert auth(path)["application_credential_id"] == ("c1" if dies == "put" else "c2")
    keystone.services.delete(f"{CREDENTIALS}/c1", status_code=204, json=keystone.remove)
    apply(run, wanted, consent=dies == "put")
    assert keystone.names == ["app-new"]
    assert auth(path)["application_credential_id"] == keystone.held[0]["id"]


def test_one_that_somebody_deleted_is_made_again(run: CloudRun, keystone: Keystone, path: Path) -> None:
    apply(run, credential(run, path))
    keystone.held.clear()
    apply(run, credential(run, path))
    assert auth(path)["application_credential_secret"] == "s3cret-2"


def test_settings_are_mended_without_a_renewal(run: CloudRun, keystone: Keystone, path: Path) -> None:
    apply(run, credential(run, path))
    path.chmod(0o640)
    apply(run, credential(run, path, region="two"))
    assert auth(path)["application_credential_secret"] == "s3cret-1"
    assert yaml.safe_load(path.read_text())["clouds"]["lab"]["region_name"] == "two"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("skew", [timedelta(days=-80), timedelta(days=80)])
def test_the_clock_of_this_machine_does_not_renew_it(
    run: CloudRun, keystone: Keystone, path: Path, services: requests_mock.Mocker, skew: timedelta
) -> None:
    """Two machines of which one has a wrong clock would take turns at replacing what a cluster uses."""
    login = token()
    now = datetime.now(UTC) + skew
    login["token"] |= {"issued_at": now.isoformat(), "expires_at": (now + timedelta(days=300)).isoformat()}
    services.post(f"{IDENTITY}/auth/tokens", json=login, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    wanted = credential(run, path, lifetime=30, renew_before=5)
    apply(run, wanted)
    left = datetime.fromisoformat(keystone.held[0]["expires_at"]) - now
    assert timedelta(days=29, hours=23) < left <= timedelta(days=30, minutes=1)
    assert keystone.names == ["app"]
    slower = (now + timedelta(days=30, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S.000000")
    keystone.held[0]["expires_at"] = slower  # by an earlier version, on a machine whose clock was ahead
    assert not plan(run, wanted)
    assert plan(run, credential(run, path, lifetime=29, renew_before=5))


def test_it_ends_and_is_renewed_in_time(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path, lifetime=90, renew_before=14)
    apply(run, wanted)
    ends = datetime.fromisoformat(keystone.held[0]["expires_at"])
    assert timedelta(days=89, hours=23) < ends - datetime.now(UTC) <= timedelta(days=90)
    keystone.held[0]["expires_at"] = (datetime.now(UTC) + timedelta(days=15)).strftime("%Y-%m-%dT%H:%M:%S.000000")
    assert not plan(run, wanted)
    keystone.held[0]["expires_at"] = (datetime.now(UTC) + timedelta(days=13)).strftime("%Y-%m-%dT%H:%M:%S.000000")
    assert "lifetime ends 2" in str(plan(run, wanted))
    apply(run, wanted)
    assert keystone.names == ["app-new"]


def test_a_given_end_is_compared_as_a_moment(run: CloudRun, keystone: Keystone, path: Path) -> None:
    apply(run, credential(run, path, expires_at="2036-01-01T02:00:00+02:00"))
    keystone.held[0]["expires_at"] = "2036-01-01T00:00:00.000000"
    assert not plan(run, credential(run, path, expires_at="2036-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"lifetime": 9, "expires_at": "2036-01-01T00:00:00Z"}, "lifetime and expires_at are both set"),
        ({"renew_before": 9}, "renew_before must be less"),
        ({"lifetime": 9, "renew_before": 9}, "renew_before must be less"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "is in the past"),
    ],
)
def test_times_that_cannot_be(run: CloudRun, keystone: Keystone, path: Path, fields: dict[str, Any], said: str) -> None:
    assert said in str(declared_mistakes(credential(run, path, **fields)))


@pytest.mark.parametrize(
    "theirs", [{"auth": {"username": "me"}}, {"auth": {"application_credential_id": "x"}}, "nonsense"]
)
def test_somebody_elses_entry_is_not_overwritten(run: CloudRun, keystone: Keystone, path: Path, theirs: Any) -> None:
    path.write_text(yaml.safe_dump({"clouds": {"lab": theirs}}))
    assert "with different credentials" in str(plan(run, credential(run, path)).refusals)


def test_somebody_elses_credential_is_not_taken(
    run: CloudRun, keystone: Keystone, path: Path, wording: Wording
) -> None:
    theirs = {"id": "x", "name": "app", "description": None, "project_id": ADMIN_PROJECT, "roles": []}
    keystone.held.append(theirs | {"expires_at": None, "unrestricted": False, "user_id": ADMIN_USER})
    wording(str(plan(run, credential(run, path)).refusals))
    auth = {"application_credential_id": "x", "application_credential_secret": "s", "auth_url": IDENTITY}
    clouds_yaml.put(
        path, "lab", {"auth": auth, "auth_type": "v3applicationcredential"} | credential(run, path).settings()
    )
    assert not plan(run, credential(run, path)).refusals
    assert "differs in unrestricted" in str(plan(run, credential(run, path, unrestricted=True)).refusals)
    assert "differs in interface" in str(plan(run, credential(run, path, interface="internal")).refusals)
    path.chmod(0o644)
    assert "differs in mode" in str(plan(run, credential(run, path)).refusals)
    path.chmod(0o600)
    keystone.held[0]["expires_at"] = "2026-01-01T00:00:00.000000"
    assert "is not managed by this spec, and expired at 2026-01-01" in str(plan(run, credential(run, path)).refusals)
    wanted = credential(run, path)
    (step,) = planner.plan_destroy("lab", [wanted], observation.observe(run.fresh(), [wanted]))
    assert step.action is Action.KEEP


def elsewhere(keystone: Keystone) -> dict[str, Any]:
    """A credential of the same user and name, for another project."""
    other = {"id": "x1", "user_id": ADMIN_USER, "project_id": "p2", "unrestricted": None, "description": ""}
    return {**other, "expires_at": None, "access_rules": [], "name": "app", "roles": []}


def test_a_name_that_the_user_has_in_another_project_is_a_mistake(
    run: CloudRun, keystone: Keystone, path: Path, services: requests_mock.Mocker
) -> None:
    services.get(f"{IDENTITY}/projects/p2", json={"project": {"id": "p2", "name": "shop"}})
    keystone.held.append(elsewhere(keystone))
    (refusal,) = plan(run, credential(run, path)).refusals
    assert refusal.code == Code.PLAN_FOREIGN
    assert "x1" in refusal.what
    assert "shop" in refusal.what


def test_a_name_that_the_user_gets_in_another_project_meanwhile_leaves_no_entry(
    run: CloudRun, keystone: Keystone, path: Path, services: requests_mock.Mocker
) -> None:
    services.get(f"{IDENTITY}/projects/p2", json={"project": {"id": "p2", "name": "shop"}})
    made = plan(run, credential(run, path))
    keystone.held.append(elsewhere(keystone))
    (failed,) = executor.execute(made, run).failed
    assert isinstance(failed.error, PlanRefused)
    assert [mistake.code for mistake in failed.error.mistakes] == [Code.PLAN_FOREIGN]
    assert sum(each.method == "POST" for each in services.request_history if each.url == CREDENTIALS) == 1
    assert not path.exists() or not yaml.safe_load(path.read_text())["clouds"]


@pytest.mark.parametrize("name", ["app", "app-new"])
def test_one_user_has_no_two_credentials_of_one_name(run: CloudRun, path: Path, name: str) -> None:
    """Keystone compares the names of all projects, and a renewal needs the second one."""
    first = ApplicationCredential(name="app", clouds_yaml=str(path), cloud="lab")
    second = ApplicationCredential(name=name, clouds_yaml=str(path), cloud="other", project="shop")
    context = Context(resources=(first, second), cloud=run.admin)
    assert list(first.list_mistakes(context)) == []
    assert [each.code for each in second.list_mistakes(context)] == [Code.SPEC_CONTRADICTION]


def test_two_users_may(run: CloudRun, path: Path) -> None:
    users = [User(name=each, password=Secret("pw")) for each in ("a", "b")]
    lab, shop = Project(name="lab"), Project(name="shop")
    roles = [
        RoleAssignment(user=user.name, project=project.name, role="member")
        for user, project in zip(users, (lab, shop), strict=True)
    ]
    declared = [
        ApplicationCredential(name="app", clouds_yaml=str(path), cloud=each.name, project=each.name)
        for each in (lab, shop)
    ]
    context = Context(resources=(lab, shop, *users, *roles, *declared), cloud=run.admin)
    assert [list(each.list_mistakes(context)) for each in declared] == [[], []]


def test_destroy_takes_entry_and_credentials(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    destroy = planner.plan_destroy("lab", [wanted], observation.observe(run.fresh(), [wanted]))
    executor.execute(destroy, run).raise_for_failures()
    assert not path.exists()
    assert not keystone.held


def other_spec(run: CloudRun) -> CloudRun:
    return CloudRun(run.admin, OwnershipTag("other"))


def test_of_two_specs_at_once_one_wins_and_nothing_is_lost(
    run: CloudRun, keystone: Keystone, path: Path, wording: Wording
) -> None:
    """Both have planned while the entry was free; Keystone gives the second spec's user another list."""
    wanted = credential(run, path)
    theirs, ours = plan(other_spec(run), wanted), plan(run, wanted)
    executor.execute(ours, run).raise_for_failures()
    keystone.held, held = [], keystone.held  # not listed for another user
    report = executor.execute(theirs, other_spec(run))
    (failed,) = report.failed
    assert isinstance(failed.error, PlanRefused)
    wording(str(failed.error))
    assert keystone.held == []
    assert auth(path)["application_credential_secret"] == "s3cret-1"
    (refusal,) = plan(other_spec(run), wanted).refusals
    assert refusal.code == "plan.foreign"
    keystone.held = held
    assert not plan(run, wanted)


def test_an_entry_that_is_taken_during_the_request_loses_no_secret(
    run: CloudRun, keystone: Keystone, path: Path
) -> None:
    theirs = {"auth": {"username": "me", "password": "x"}}

    def taken(request: Any, context: Any) -> Any:
        clouds_yaml.put(path, "lab", theirs)
        return keystone.create(request, context)

    keystone.services.post(CREDENTIALS, json=taken)
    (failed,) = executor.execute(plan(run, credential(run, path)), run).failed
    assert isinstance(failed.error, PlanRefused)
    assert clouds_yaml.read(path)["lab"] == theirs
    assert keystone.held == []


def test_an_entry_of_an_earlier_version_gets_its_owner(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    entry = clouds_yaml.read(path)["lab"]
    clouds_yaml.put(path, "lab", {key: value for key, value in entry.items() if key != "openstack_prep"})
    (step,) = plan(run, wanted)
    assert [change.field for change in step.changes] == ["managed"]
    apply(run, wanted)
    assert clouds_yaml.read(path)["lab"] == entry


def test_the_entry_for_predecessors_is_not_taken(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    theirs = {"auth": {"username": "me"}}
    clouds_yaml.put(path, "lab-old", theirs)
    (failed,) = executor.execute(plan(run, rotated(run, wanted, keep_old=True)), run).failed
    assert isinstance(failed.error, PlanRefused)
    assert clouds_yaml.read(path)["lab-old"] == theirs
    assert (keystone.names, auth(path)["application_credential_id"]) == (["app"], "c1")


def test_destroy_leaves_an_entry_that_is_somebody_elses_by_then(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    destroy = planner.plan_destroy("lab", [wanted], observation.observe(run.fresh(), [wanted]))
    theirs = {"auth": {"username": "me"}}
    clouds_yaml.put(path, "lab", theirs)
    executor.execute(destroy, run).raise_for_failures()
    assert clouds_yaml.read(path) == {"lab": theirs}


def test_a_second_plan_is_one_request(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    before = len(sent(keystone.services))
    plan(run, wanted)
    assert len(sent(keystone.services)) == before + 1


# --- roles and rotation ---------------------------------------------------------------------


def logged_in_with(run: CloudRun, keystone: Keystone, *roles: str, **more: Any) -> CloudRun:
    """Return a run whose own token carries these roles, and more."""
    body = token()
    body["token"] |= more
    body["token"]["roles"] = [{"id": role, "name": role} for role in roles]
    keystone.services.post(
        f"{IDENTITY}/auth/tokens", json=body, headers={"X-Subject-Token": "-".join(roles)}, status_code=201
    )
    return CloudRun(Cloud(connection()), run.ownership)


def test_all_roles_are_those_of_the_login(run: CloudRun, keystone: Keystone, path: Path) -> None:
    apply(logged_in_with(run, keystone, "admin"), credential(run, path))
    more = logged_in_with(run, keystone, "admin", "member")
    before = len(sent(keystone.services))
    (step,) = plan(more, credential(more, path))
    assert [(change.field, change.before) for change in step.changes] == [
        ("secret", "(of app, which a new credential replaces)"),
        ("roles", {"admin"}),
    ]
    assert len(sent(keystone.services)) == before + 1
    (refusal,) = plan(more, credential(more, path)).refusals
    assert refusal.code == "plan.loses"
    assert contains(refusal.what, "roles", "new: member")
    less = logged_in_with(run, keystone, "member")
    (refusal,) = plan(less, credential(less, path)).refusals
    assert refusal.code == "plan.loses"
    assert contains(refusal.what, "roles", "new: member", "no longer: admin")
    for keep_old in (False, True):
        assert not plan(more, rotated(more, credential(more, path), keep_old)).refusals


@pytest.mark.parametrize("restricted", [True, False])
def test_a_restricted_login_creates_none_and_keeps_what_exists(
    run: CloudRun, keystone: Keystone, path: Path, restricted: bool
) -> None:
    login = {"id": "c9", "name": "login", "restricted": restricted}
    own = logged_in_with(run, keystone, "admin", application_credential=login)
    wanted = credential(own, path, roles=("admin",), lifetime=90)

    def codes(declared: ApplicationCredential) -> list[str]:
        return [each.code for each in plan(own, declared, consent=True).refusals]

    expected = ["access.missing-right"] * restricted
    assert codes(wanted) == expected
    apply(logged_in_with(run, keystone, "admin"), wanted)
    own = logged_in_with(run, keystone, "admin", application_credential=login)
    assert codes(wanted) == []
    assert codes(rotated(own, wanted)) == expected
    assert codes(replace(wanted, unrestricted=True)) == expected
    keystone.held[0]["expires_at"] = "2020-01-01T00:00:00.000000"
    assert codes(wanted) == expected


def test_a_lifetime_is_consent_to_a_renewal(run: CloudRun, keystone: Keystone, path: Path) -> None:
    apply(run, credential(run, path))
    (step,) = (made := plan(run, credential(run, path, lifetime=30)))
    assert (step.action, made.refusals) == (Action.UPDATE, ())


def test_a_role_that_the_user_does_not_have_is_a_mistake(run: CloudRun, keystone: Keystone, path: Path) -> None:
    own = logged_in_with(run, keystone, "member", "reader")
    assert not plan(own, credential(own, path, roles=("reader",))).refusals
    (refusal,) = plan(own, credential(own, path, roles=("reader", "admin"))).refusals
    assert contains(str(refusal), "admin", "member", "reader")


def rotated(run: CloudRun, wanted: ApplicationCredential, keep_old: bool = False) -> ApplicationCredential:
    return RotatedCredential.of(wanted, observation.observe(run.fresh(), [wanted])[wanted.key], keep_old)


def test_a_rotation_needs_no_drift_and_happens_once(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    new = rotated(run, wanted)
    (step,) = plan(run, new)
    assert [change.field for change in step.changes] == ["secret", "rotated"]
    apply(run, new)
    assert (auth(path)["application_credential_secret"], keystone.names) == ("s3cret-2", ["app-new"])
    assert not plan(run, wanted)


def test_who_switched_the_entry_meanwhile_is_not_undone(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    plans = [plan(run, rotated(run, wanted)) for _ in range(2)]
    for made in plans:
        executor.execute(made, run).raise_for_failures()
    assert (auth(path)["application_credential_id"], keystone.names) == ("c2", ["app-new"])


def test_what_is_kept_goes_with_its_entry(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    apply(run, rotated(run, wanted, keep_old=True))
    assert keystone.names == ["app", "app-new"]
    assert clouds_yaml.read(path)["lab-old"]["auth"]["application_credential_secret"] == "s3cret-1"
    assert not plan(run, wanted)
    (refusal,) = plan(run, credential(run, path, unrestricted=True)).refusals
    assert contains(str(refusal), "kept", "lab-old")
    clouds_yaml.drop(path, "lab-old")
    apply(run, wanted)
    assert keystone.names == ["app-new"]


def test_destroy_takes_the_kept_one_too(run: CloudRun, keystone: Keystone, path: Path) -> None:
    wanted = credential(run, path)
    apply(run, wanted)
    apply(run, rotated(run, wanted, keep_old=True))
    destroy = planner.plan_destroy("lab", [wanted], observation.observe(run.fresh(), [wanted]))
    executor.execute(destroy, run).raise_for_failures()
    assert not path.exists()
    assert not keystone.held
