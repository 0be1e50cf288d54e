from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError, NotAllowed, SpecError
from openstack_prep.base.key import labels
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import observation
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.identity.in_project import access
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import MOST, RoleAssignment, RoleRecords
from openstack_prep.resources.identity.user import User
from openstack_prep.spec.python import spec_from
from tests.unit.conftest import ADMIN_PROJECT, ADMIN_USER, IDENTITY, failure, sent, token
from tests.unit.resources.identity.tags import Tags
from tests.unit.texts import Wording, contains


def given(user: str, role: str, inherited: bool = False, **scope: str) -> dict[str, Any]:
    where: dict[str, Any] = {kind: {"id": each} for kind, each in scope.items()}
    if inherited:
        where["OS-INHERIT:inherited_to"] = "projects"
    return {"user": {"id": user}, "role": {"id": role}, "scope": where}


@pytest.fixture(autouse=True)
def cloud(services: requests_mock.Mocker) -> None:
    """User u1 of ours, u2 of others; project p1 of others; roles member and reader."""

    def users(request: Any, context: Any) -> Any:
        marks = {"ocp": "[openstack-prep:lab/ocp]", "person": ""}
        ids = {"ocp": "u1", "person": "u2"}
        name = request.qs["name"][0]
        user = {"name": name, "enabled": True, "description": marks.get(name)}
        return {"users": [user | {"id": ids[name]}] if name in ids else []}

    services.get(f"{IDENTITY}/users", json=users)
    services.get(f"{IDENTITY}/groups", json={"groups": [{"id": "g1"}]})
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "enabled": True}]})
    services.get(f"{IDENTITY}/roles", json={"roles": [{"id": "r1", "name": "member"}, {"id": "r2", "name": "reader"}]})


def test_one_list_a_project_tells_all(run: CloudRun, services: requests_mock.Mocker) -> None:
    listed = [given("u1", "r1", project="p1"), given("u2", "r2", project="p1", inherited=True)]
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": listed})
    wanted = [
        RoleAssignment(role="member", user="ocp", project="lab"),
        RoleAssignment(role="reader", user="ocp", project="lab"),
        RoleAssignment(role="reader", user="person", project="lab"),
        RoleAssignment(role="reader", user="person", project="lab", inherited=True),
    ]
    found = RoleAssignment.find(run, wanted)
    assert {str(key): (each.id, each.ours) for key, each in found.items()} == {
        "role_assignment/user:ocp@project:lab/member": ("r1", True),
        "role_assignment/user:person@project:lab/reader (inherited)": ("r2", False),
    }
    assert sent(services).count("GET /v3/role_assignments?scope.project.id=p1&include_names=true") == 1
    assert len(sent(services)) == 5


def test_a_role_of_a_group_is_no_role_of_a_user(run: CloudRun, services: requests_mock.Mocker) -> None:
    row = {"group": {"id": "g1"}, "role": {"id": "r1"}, "scope": {"project": {"id": "p1"}}}
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": [row]})
    wanted = [RoleAssignment(role="member", project="lab", **{who: "ocp"}) for who in ("group", "user")]
    assert [str(key) for key in RoleAssignment.find(run, wanted)] == ["role_assignment/group:ocp@project:lab/member"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"user": "ocp", "project": "lab"}, "/projects/p1/users/u1/roles/r1"),
        ({"group": "ops", "project": "lab"}, "/projects/p1/groups/g1/roles/r1"),
        ({"user": "ocp"}, f"/projects/{ADMIN_PROJECT}/users/u1/roles/r1"),
        ({"user": "ocp", "domain": "Default"}, "/domains/default/users/u1/roles/r1"),
        (
            {"user": "ocp", "domain": "Default", "inherited": True},
            "/OS-INHERIT/domains/default/users/u1/roles/r1/inherited_to_projects",
        ),
    ],
)
def test_it_is_put_and_deleted(
    run: CloudRun, services: requests_mock.Mocker, fields: dict[str, Any], path: str
) -> None:
    services.put(IDENTITY + path, status_code=204)
    services.delete(IDENTITY + path, status_code=204)
    role = RoleAssignment(role="member", **fields)
    role.delete(run, role.create(run))
    assert [each.method for each in services.request_history][-2:] == ["PUT", "DELETE"]


MINE = OwnershipTag("lab").record("role", "u1", "p1", "r1", False)
OWN = "openstack-prep:lab"


def managed(services: requests_mock.Mocker, *tags: str) -> Tags:
    project = {"id": "p1", "name": "lab", "domain_id": "default", "enabled": True, "tags": [*tags]}
    services.get(f"{IDENTITY}/projects", json={"projects": [project]})
    return Tags(services, project)


@pytest.mark.parametrize(
    ("user", "tags", "written"),
    [
        ("ocp", [OWN], True),
        ("ocp", [], False),
        ("person", [OWN], False),
        ("ocp", [OWN, MINE], False),
        ("ocp", [OWN, *map(str, range(MOST))], False),
    ],
)
def test_a_role_that_prune_may_remove_is_recorded_once_it_is_given(
    run: CloudRun, services: requests_mock.Mocker, user: str, tags: list[str], written: bool
) -> None:
    managed(services, *tags)
    notes: list[str] = []
    run.note = lambda key, text: notes.append(text)
    services.put(re.compile(f"^{IDENTITY}/projects/p1/users/"), status_code=204)
    RoleAssignment(role="member", user=user, project="lab").create(run)
    sent = [unquote(each.path).split("/")[4:] for each in services.request_history if each.method == "PUT"]
    ids = {"ocp": "u1", "person": "u2"}
    assert sent == [["users", ids[user], "roles", "r1"]] + [["tags", MINE]] * written
    assert len(notes) == (len(tags) > MOST)


def test_a_role_that_cannot_be_given_is_not_recorded(run: CloudRun, services: requests_mock.Mocker) -> None:
    tags = managed(services, OWN)
    services.put(f"{IDENTITY}/projects/p1/users/u1/roles/r1", **failure(409, "of a domain"))
    with pytest.raises(CloudError, match="of a domain"):
        RoleAssignment(role="member", user="ocp", project="lab").create(run)
    assert tags.sent == []


def test_a_role_that_cannot_be_removed_is_not_recorded_any_more(run: CloudRun, services: requests_mock.Mocker) -> None:
    tags = managed(services, OWN, MINE)
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": [given("u1", "r1", project="p1")]})
    services.delete(f"{IDENTITY}/projects/p1/users/u1/roles/r1", **failure(403, "not yours"))
    role = RoleAssignment(role="member", user="ocp", project="lab")
    with pytest.raises(NotAllowed, match="not yours"):
        role.delete(run, observation.observe(run, [role])[role.key])
    assert tags.sent == [("DELETE", MINE)]


@pytest.mark.parametrize("status", [403, 500])
def test_who_may_not_write_tags_gives_the_role_and_is_told(
    run: CloudRun, services: requests_mock.Mocker, status: int
) -> None:
    managed(services, OWN)
    notes: list[str] = []
    run.note = lambda key, text: notes.append(text)
    services.put(re.compile(f"^{IDENTITY}/projects/p1/tags/"), **failure(status, "immutable"))
    given = services.put(f"{IDENTITY}/projects/p1/users/u1/roles/r1", status_code=204)
    RoleAssignment(role="member", user="ocp", project="lab").create(run)
    assert given.called_once
    assert "immutable" in notes[0]


def test_the_record_goes_before_the_role(run: CloudRun, services: requests_mock.Mocker) -> None:
    managed(services, OWN, MINE)
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": [given("u1", "r1", project="p1")]})
    services.delete(re.compile(f"^{IDENTITY}/projects/p1/users/"), status_code=204)
    role = RoleAssignment(role="member", user="ocp", project="lab")
    role.delete(run, observation.observe(run, [role])[role.key])
    sent = [unquote(each.path).split("/")[4] for each in services.request_history if each.method == "DELETE"]
    assert sent == ["tags", "users"]


def test_nothing_is_asked_of_a_project_yet_to_be_made(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    assert not RoleAssignment.find(run, [RoleAssignment(role="member", user="ocp", project="lab")])
    assert not [each for each in sent(services) if "role_assignments" in each]


def test_an_unknown_role_is_a_mistake_that_names_the_nearest(
    run: CloudRun, services: requests_mock.Mocker, wording: Wording
) -> None:
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": []})
    role = RoleAssignment(role="membr", user="ocp", project="lab")
    _, (mistake,) = observation.examine(run, [role])
    wording(str(mistake))


@pytest.mark.parametrize(
    ("known", "fix"),
    [
        ([{"id": "u1", "name": "nobody2"}], "did you mean nobody2?"),
        ([{"id": "u1", "name": "somebody-else"}], "declare it in the spec, or correct the name"),
        (None, "declare it in the spec, or correct the name"),
    ],
)
def test_an_unknown_user_is_a_mistake_that_names_the_nearest(
    run: CloudRun, services: requests_mock.Mocker, known: list[dict[str, str]] | None, fix: str
) -> None:
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": []})
    listed = {"status_code": 403} if known is None else {"json": {"users": known}}
    services.get(f"{IDENTITY}/users", **listed)
    services.get(f"{IDENTITY}/users?name=nobody", json={"users": []})
    _, (mistake,) = observation.examine(run, [RoleAssignment(role="member", user="nobody", project="lab")])
    assert contains(mistake.what, "user/nobody")
    assert (mistake.code, mistake.fix) == ("spec.unresolved-reference", fix)


def test_an_unknown_group_is_a_mistake_that_names_the_nearest(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": []})
    services.get(f"{IDENTITY}/groups", json={"groups": [{"id": "g1", "name": "ops"}]})
    services.get(f"{IDENTITY}/groups?name=opps", json={"groups": []})
    _, (mistake,) = observation.examine(run, [RoleAssignment(role="member", group="opps", project="lab")])
    assert (mistake.code, mistake.fix) == ("spec.unresolved-reference", "did you mean ops?")


@pytest.mark.parametrize(
    ("user", "project", "fields", "exists"),
    [
        (ADMIN_USER, ADMIN_PROJECT, {"role": "member"}, True),
        (ADMIN_USER, ADMIN_PROJECT, {"role": "reader"}, False),
        (ADMIN_USER, ADMIN_PROJECT, {"role": "member", "inherited": True}, None),
        (ADMIN_USER, "p1", {"role": "member"}, None),
        ("u1", ADMIN_PROJECT, {"role": "member"}, None),
    ],
)
def test_who_may_not_list_roles_knows_those_of_the_own_token(
    run: CloudRun,
    services: requests_mock.Mocker,
    user: str,
    project: str,
    fields: dict[str, Any],
    exists: bool | None,
) -> None:
    answer = token(roles=["member"])
    answer["token"]["roles"] = [{"id": "r1", "name": "member"}]
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    services.get(f"{IDENTITY}/role_assignments", **failure(403))
    services.get(f"{IDENTITY}/users", json={"users": [{"id": user, "name": "me", "enabled": True, "description": ""}]})
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": project, "enabled": True}]})
    assignment = RoleAssignment(user="me", project="lab", **fields)
    if exists is None:
        with pytest.raises(NotAllowed):
            assignment.find_one(run)
    else:
        assert (assignment.find_one(run) is not None) is exists


@pytest.mark.parametrize(
    "fields",
    [{}, {"user": "a", "group": "b"}, {"user": "a", "project": "p", "domain": "d"}],
)
def test_one_holder_and_one_scope(fields: dict[str, str]) -> None:
    with pytest.raises(SpecError, match="; set "):
        spec_from([RoleAssignment(role="member", **fields)], "lab")


def test_it_opens_its_project() -> None:
    project = Project(name="lab")
    assert access(project) in RoleAssignment(role="member", user="a", project="lab").provides()
    in_domain = RoleAssignment(role="member", user="a", domain="Default")
    found = spec_from([project, in_domain, RoleAssignment(role="member", user="a")]).resources
    assert found == (project, in_domain, replace(in_domain, domain=None, project="lab"))


def test_the_user_of_the_other_domain_gets_the_role(run: CloudRun, services: requests_mock.Mocker) -> None:
    ids = {"default": "u-default", "corp-id": "u-corp"}
    services.get(f"{IDENTITY}/domains", json={"domains": [{"id": "corp-id", "name": "corp"}]})
    services.get(
        f"{IDENTITY}/users",
        json=lambda request, context: {
            "users": [{"id": ids[request.qs["domain_id"][0]], "name": "ops", "enabled": True, "description": ""}]
        },
    )
    services.put(f"{IDENTITY}/projects/p1/users/u-corp/roles/r1", status_code=204)
    default, corp = User(name="ops"), User(name="ops", domain="corp")
    role = RoleAssignment(role="member", user="ops", user_domain="corp", project="lab")
    assert len({default.key, corp.key, role.holder.key}) == 2
    run.known.update(observation.observe(run, [default, corp]))
    role.create(run)
    assert sent(services)[-1] == "PUT /v3/projects/p1/users/u-corp/roles/r1"


def test_roles_of_namesakes_in_two_domains_are_two() -> None:
    here = RoleAssignment(role="member", user="ops", project="lab")
    there = RoleAssignment(role="member", user="ops", user_domain="corp", project="lab")
    assert here.key != there.key


def test_a_plan_tells_users_of_one_name_apart() -> None:
    given = [
        RoleAssignment(user="ops", role="member", project="lab"),
        RoleAssignment(user="ops", user_domain="corp", role="member", project="lab"),
        RoleAssignment(user="ops", role="member", project="lab", project_domain="corp"),
    ]
    assert list(labels(each.key for each in given).values()) == [
        "role_assignment/user:ops@project:lab/member",
        "role_assignment/user:ops@corp@project:lab/member",
        "role_assignment/user:ops@project:lab@corp/member",
    ]


def test_roles_that_wait_for_each_other_are_recorded_together(run: CloudRun, services: requests_mock.Mocker) -> None:
    tags = Tags(services, {"id": "p1", "tags": []})
    records = RoleRecords(run, "p1", frozenset())

    def put_first(request: Any, context: Any) -> str:
        time.sleep(0.3)  # until the other two wait
        tags.project["tags"] = ["a"]
        return ""

    services.put(f"{IDENTITY}/projects/p1/tags/a", text=put_first, status_code=201)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(records.add, "a")
        time.sleep(0.1)
        assert [*pool.map(records.add, "bc"), first.result()] == [True] * 3
    assert sorted(tags.sent) == [("PUT", "b"), ("PUT", "c")]
    reads = [each for each in services.request_history if (each.method, each.path) == ("GET", "/v3/projects/p1")]
    assert len(reads) == 2
