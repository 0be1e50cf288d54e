from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed, NotUnique
from openstack_prep.base.secret import HIDDEN, Secret, from_spec
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import COPIED, DIFFERS, UNNAMED, Action, Observed
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from tests.unit.conftest import ADMIN_USER, IDENTITY, failure, sent, token
from tests.unit.texts import Wording, contains

USERS, TOKENS = f"{IDENTITY}/users", f"{IDENTITY}/auth/tokens"


def raw(**more: Any) -> dict[str, Any]:
    return {"id": "u1", "name": "ocp", "enabled": True, "description": "[openstack-prep:lab/ocp]"} | more


def found(run: CloudRun, user: User) -> Observed | None:
    return User.find(run, [user]).get(user.key)


def logins(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    bodies = [each.json()["auth"] for each in services.request_history if each.path.endswith("/auth/tokens")]
    return [each for each in bodies if each["identity"]["password"]["user"].get("name") != "admin"]


def play_login(services: requests_mock.Mocker, accepted: str) -> None:
    def answer(request: Any, context: Any) -> dict[str, Any]:
        password = request.json()["auth"]["identity"]["password"]["user"]["password"]
        context.status_code = 201 if password in (accepted, "admin-password") else 401
        context.headers["X-Subject-Token"] = "t"
        return token() if context.status_code == 201 else {"error": {"message": "no", "code": 401}}

    services.post(TOKENS, json=answer)


def test_a_new_user_is_made_with_our_mark(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": []})
    services.post(USERS, json={"user": raw()}, status_code=201)
    user = User(name="ocp", password=Secret("s3cret"), email="a@b")
    assert found(run, user) is None
    made = user.create(run)
    assert services.last_request.json()["user"] == {
        "name": "ocp",
        "domain_id": "default",
        "password": "s3cret",
        "email": "a@b",
        "description": "[openstack-prep:lab/ocp]",
    }
    assert (made.id, made.ours) == ("u1", True)
    assert sent(services) == ["GET /v3/users?name=ocp&domain_id=default", "POST /v3/users"]


@pytest.mark.parametrize(
    ("tag", "ours", "doubt"),
    [
        ("ocp@@d2", True, ""),
        ("ocp", True, UNNAMED),
        ("ocp@gone", True, UNNAMED),
        ("ocp@@d3", False, COPIED),
        ("ocp@gone@d3", False, COPIED),
        ("other@@d2", False, COPIED),
    ],
)
def test_the_tag_of_a_user_of_another_domain_names_the_domain(
    run: CloudRun, services: requests_mock.Mocker, tag: str, ours: bool, doubt: str
) -> None:
    services.get(f"{IDENTITY}/domains?name=two", json={"domains": [{"id": "d2", "name": "two"}]})
    services.get(f"{IDENTITY}/projects/gone", **failure(404))
    known = raw(domain_id="d2", description=f"[openstack-prep:lab/{tag}]", email="old")
    services.get(USERS, json={"users": [known]})
    user = User(name="ocp", domain="two", email="new")
    observed = found(run, user)
    assert observed is not None
    assert (observed.ours, observed.doubt) == (ours, doubt)
    if ours:
        changed = services.patch(f"{USERS}/u1", json={"user": known})
        user.update(run, observed, planner.diff(user, observed))
        renewed = {"description": "[openstack-prep:lab/ocp@@d2]"} if doubt else {}
        assert changed.last_request.json()["user"] == {"email": "new"} | renewed


@pytest.mark.parametrize(("tag", "ours"), [("ocp", True), ("ocp@@default", True), ("ocp@@d2", False)])
def test_the_tag_of_a_user_of_the_home_domain_may_name_it(
    run: CloudRun, services: requests_mock.Mocker, tag: str, ours: bool
) -> None:
    services.get(USERS, json={"users": [raw(domain_id="default", description=f"[openstack-prep:lab/{tag}]")]})
    observed = found(run, User(name="ocp"))
    assert observed is not None
    assert observed.ours is ours


@pytest.mark.parametrize(("known", "changes"), [("s3cret", []), ("other", ["password"])])
def test_a_password_is_tried_once(
    run: CloudRun, services: requests_mock.Mocker, known: str, changes: list[str]
) -> None:
    services.get(USERS, json={"users": [raw()]})
    play_login(services, "s3cret")
    user = User(name="ocp", password=Secret(known))
    for _ in range(2):
        observed = found(run, user)
        assert observed is not None
        assert [each.field for each in planner.diff(user, observed)] == changes
    assert len(logins(services)) == 1
    assert "scope" not in logins(services)[0] or logins(services)[0]["scope"] == "unscoped"


@pytest.mark.parametrize("known", ["s3cret", "other"])
def test_the_login_of_the_projects_own_user_tells_of_its_password(
    run: CloudRun, services: requests_mock.Mocker, known: str
) -> None:
    services.get(USERS, json={"users": [raw()]})
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "name": "lab", "enabled": True}]})
    services.get(f"{IDENTITY}/roles", json={"roles": [{"id": "r1", "name": "member"}]})
    given = [{"user": {"id": "u1"}, "role": {"id": "r1"}, "scope": {"project": {"id": "p1"}}}]
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": given})
    play_login(services, "s3cret")
    user, project = User(name="ocp", password=Secret(known)), Project(name="lab")
    role = RoleAssignment(role="member", user="ocp", project="lab")
    acting = CloudRun(
        run.admin, run.ownership, actors={project.key: Actor(user, Secret(known), "Default", project, (role,))}
    )
    observed = found(acting, user)
    assert observed is not None
    assert (acting.find_tenant(project) is not None) == (observed.values["password"] != DIFFERS) == (known == "s3cret")
    assert [each["scope"] for each in logins(services)] == [{"project": {"id": "p1"}}]


def test_nobody_logs_in_before_all_roles_are_there(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": [raw()]})
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "name": "lab", "enabled": True}]})
    services.get(f"{IDENTITY}/roles", json={"roles": [{"id": "r1", "name": "member"}, {"id": "r2", "name": "other"}]})
    given = [{"user": {"id": "u1"}, "role": {"id": "r1"}, "scope": {"project": {"id": "p1"}}}]
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": given})
    services.put(f"{IDENTITY}/projects/p1/users/u1/roles/r2", status_code=204)
    play_login(services, "s3cret")
    user, project = User(name="ocp", password=Secret("s3cret")), Project(name="lab")
    roles = [RoleAssignment(role=role, user="ocp", project="lab") for role in ("member", "other")]
    acting = CloudRun(
        run.admin, run.ownership, actors={project.key: Actor(user, Secret("s3cret"), "Default", project, tuple(roles))}
    )
    assert acting.find_tenant(project) is None
    assert not logins(services)
    acting.known[roles[1].key] = roles[1].create(acting)
    assert acting.find_tenant(project) is not None


def test_a_disabled_user_is_not_logged_in(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": [raw(enabled=False)]})
    user = User(name="ocp", password=Secret("s3cret"))
    observed = found(run, user)
    assert observed is not None
    assert not planner.diff(user, observed)
    assert not logins(services)


def test_a_user_of_a_disabled_domain_is_not_logged_in(run: CloudRun, services: requests_mock.Mocker) -> None:
    """Keystone answers as to a wrong password, and apply would set the password again and again."""
    services.get(f"{IDENTITY}/domains?name=two", json={"domains": [{"id": "d2", "name": "two", "enabled": False}]})
    services.get(USERS, json={"users": [raw(domain_id="d2")]})
    user = User(name="ocp", domain="two", password=Secret("s3cret"))
    observed = found(run, user)
    assert observed is not None
    assert observed.values["password"] is user.password
    assert [each["identity"]["password"]["user"]["name"] for each in logins(services)] in ([], ["admin"])


def test_a_password_that_is_yet_to_be_generated_differs(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": [raw()]})
    observed = found(run, User(name="ocp", password=Secret(fetch=lambda: "new", path="/no/such.password")))
    assert observed is not None
    assert observed.values["password"] == DIFFERS
    assert not logins(services)


def test_a_password_is_not_generated_a_second_time_unasked(
    run: CloudRun, services: requests_mock.Mocker, tmp_path: Path
) -> None:
    services.get(USERS, json={"users": [raw()]})
    play_login(services, "s3cret")
    user = User(name="ocp", password=from_spec({"generate": "ocp.password"}, base=tmp_path))
    observed = observation.observe(run, [user])
    (refusal,) = planner.plan_apply("lab", [user], observed).refusals
    file = tmp_path / "ocp.password"
    assert refusal.code == "plan.loses"
    assert contains(str(refusal), "user/ocp", "replaced", file, "--allow-replace")
    assert not planner.plan_apply("lab", [user], observed, allow_replace=True).refusals
    assert not file.exists()
    file.touch(mode=0o600)
    file.write_text("another\n")
    changed = planner.plan_apply("lab", [user], observation.observe(run, [user]))
    assert [step.action for step in changed] == [Action.UPDATE]
    assert not changed.refusals


def test_a_password_is_mended_without_a_trace(
    run: CloudRun, services: requests_mock.Mocker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    services.get(USERS, json={"users": [raw()]})
    services.patch(f"{USERS}/u1", json={"user": raw()})
    play_login(services, "old")
    user = User(name="ocp", password=Secret("s3cret"))
    plan = planner.plan_apply("lab", [user], observation.observe(run, [user]))
    assert f"password (differs) -> {HIDDEN}" in str(plan)
    report = executor.execute(plan, run)
    report.raise_for_failures()
    assert services.last_request.json() == {"user": {"password": "s3cret"}}
    play_login(services, "s3cret")
    assert run.logs_in(Actor(user, Secret("s3cret"), "Default"))
    assert "s3cret" not in "\n".join((caplog.text, str(plan), str(plan.data()), str(report), str(report.data())))


@pytest.mark.parametrize("status", [400, 403, 409])
def test_a_password_that_keystone_refuses_ends_the_step(
    run: CloudRun, services: requests_mock.Mocker, status: int
) -> None:
    said = "The password does not match: s3cret must be longer."
    services.patch(f"{USERS}/u1", **failure(status, said))
    user = User(name="ocp", password=Secret("s3cret"))
    observed = Observed(id="u1", ours=True, values={"password": DIFFERS})
    with pytest.raises(NotAllowed, match="choose another password") as caught:
        user.update(run, observed, planner.diff(user, observed))
    assert not caught.value.retryable
    assert "s3cret" not in str(caught.value)


def test_somebody_elses_password_is_not_touched(
    run: CloudRun, services: requests_mock.Mocker, wording: Wording
) -> None:
    services.get(USERS, json={"users": [raw(description="a person")]})
    play_login(services, "theirs")
    user = User(name="ocp", password=Secret("s3cret"))
    _, mistakes = observation.examine(run, [user])
    assert mistakes[0].code == "plan.foreign"
    wording(str(mistakes[0]))


def test_fields_are_compared_and_mended(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": [raw(email="x@y", default_project_id="p1")]})
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "name": "lab", "enabled": True}]})
    services.patch(f"{USERS}/u1", json={"user": raw()})
    user = User(name="ocp", email="a@b", default_project="lab", description="robot", enabled=True)
    observed = found(run, user)
    assert observed is not None
    step = planner.decide(user, observed)
    assert [each.field for each in step.changes] == ["description", "email"]
    user.update(run, observed, step.changes)
    assert services.last_request.json()["user"] == {"description": "robot [openstack-prep:lab/ocp]", "email": "a@b"}


def test_a_lost_answer_is_found_again(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": [raw()]})
    services.post(USERS, status_code=504)
    play_login(services, "s3cret")
    user = User(name="ocp", password=Secret("s3cret"))
    report = executor.execute(planner.plan_apply("lab", [user], {}), run)
    report.raise_for_failures()
    assert report.results[0].observed is not None
    assert [each for each in sent(services) if each.startswith("POST")] == ["POST /v3/users"]


def test_two_of_a_name_are_named(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(USERS, json={"users": [raw(), raw(id="u2")]})
    with pytest.raises(NotUnique, match="u1, u2"):
        found(run, User(name="ocp"))


def test_destroy_takes_only_what_is_ours(run: CloudRun, services: requests_mock.Mocker) -> None:
    user, person = User(name="ocp"), User(name="person")
    observed = {user.key: Observed(id="u1", ours=True), person.key: Observed(id="u2")}
    services.delete(f"{USERS}/u1", status_code=204)
    now = {"id": "u1", "name": "ocp", "description": "[openstack-prep:lab/ocp]"}
    services.get(f"{USERS}?name=ocp&domain_id=default", json={"users": [now]})
    plan = planner.plan_destroy("lab", [user, person], observed)
    assert {str(step.key): step.action for step in plan} == {
        "user/person": Action.KEEP,
        "user/ocp": Action.DELETE,
    }
    executor.execute(plan, run).raise_for_failures()
    *read, deleted = sent(services)
    assert deleted == "DELETE /v3/users/u1"
    assert sorted(read) == [  # what would go with the user, judged again right before
        "GET /v2.1/os-keypairs?user_id=u1",
        "GET /v3/credentials?user_id=u1",
        "GET /v3/os-trust/trusts?trustee_user_id=u1",
        "GET /v3/os-trust/trusts?trustor_user_id=u1",
        "GET /v3/role_assignments?user.id=u1&include_names=true",
        "GET /v3/users/u1/application_credentials",
        "GET /v3/users/u1/groups",
        "GET /v3/users?name=ocp&domain_id=default",
    ]


def test_our_own_user_is_known_from_our_token(run: CloudRun, services: requests_mock.Mocker) -> None:
    me = User(name="admin-user")
    assert observation.observe(run, [me])[me.key].id == "admin-user"
    assert sent(services) == []


def test_nobody_destroys_the_user_that_he_is(run: CloudRun, services: requests_mock.Mocker) -> None:
    user = User(name="ocp")
    assert list(user.check_delete(run, Observed(id="u1"), frozenset())) == []
    (mistake,) = user.check_delete(run, Observed(id=ADMIN_USER), frozenset())
    assert (mistake.code, mistake.keys) == ("plan.own-connection", (user.key,))
    assert "--os-cloud" in mistake.fix
