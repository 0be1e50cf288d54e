"""Who acts in the projects of a spec."""

from __future__ import annotations

from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Key
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment, actors_of
from openstack_prep.resources.identity.user import User

PASSWORD = Secret("correct-horse")
LAB, MORE = Project(name="lab"), Project(name="more")
ROLES = (
    RoleAssignment(user="ci", role="reader", project="lab"),
    RoleAssignment(user="ci", role="member", project="lab"),
    RoleAssignment(user="ci", role="member", project="more"),
    RoleAssignment(user="ci", role="member"),
    RoleAssignment(user="ops", role="member", project="lab"),
)


def acting(*resources: User | RoleAssignment) -> dict[Key | None, tuple[str, Project | None, list[str]]]:
    return {
        key: (each.user.key.name, each.project, [role.role for role in each.roles])  # type: ignore[attr-defined]
        for key, each in actors_of(resources).items()
    }


def test_the_first_user_with_a_password_acts_in_each_project() -> None:
    users = (User(name="ci", password=PASSWORD), User(name="ops", password=PASSWORD))
    assert acting(*ROLES, *users) == {
        LAB.key: ("ci", LAB, ["reader", "member"]),
        MORE.key: ("ci", MORE, ["member"]),
        None: ("ci", None, ["member"]),
    }
    (actor,) = (each for key, each in actors_of((*ROLES, *users)).items() if key == LAB.key)
    assert (actor.password, actor.user_domain) == (PASSWORD, "Default")


def test_a_user_who_cannot_log_in_does_not_act() -> None:
    locked = User(name="ci", password=PASSWORD, enabled=False)
    assert acting(*ROLES, locked, User(name="ops", password=PASSWORD)) == {LAB.key: ("ops", LAB, ["member"])}
    assert acting(*ROLES, User(name="ci")) == {}
    inherited = RoleAssignment(user="ci", role="member", project="lab", inherited=True)
    assert acting(inherited, User(name="ci", password=PASSWORD)) == {}
