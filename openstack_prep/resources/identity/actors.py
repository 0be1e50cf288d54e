"""Who acts in each project of a spec."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from openstack_prep.cloud.cloud_run import Actor
from openstack_prep.core.model import Key, Resource
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User


def actors_of(resources: Sequence[Resource]) -> dict[Key | None, Actor]:
    """Return, by project, the first user whose password the spec knows and who may log in and has a role there."""
    held: dict[Key, dict[Project | None, list[RoleAssignment]]] = defaultdict(lambda: defaultdict(list))
    for each in resources:
        if isinstance(each, RoleAssignment) and each.gives_access:
            held[each.holder.key][each.owner].append(each)
    actors: dict[Key | None, Actor] = {}
    for user in resources:
        if isinstance(user, User) and user.password is not None and user.enabled is not False:
            for owner, roles in held[user.key].items():
                actor = Actor(roles[0].holder, user.password, user.domain, owner, tuple(roles))
                actors.setdefault(owner.key if owner else None, actor)
    return actors
