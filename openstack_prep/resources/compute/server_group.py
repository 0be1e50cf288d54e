"""Server groups: which servers share a host and which must not.

Source: Compute API, "Server groups (os-server-groups)".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self, cast

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Count, Name
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Change, Context, Observed, Resource
from openstack_prep.core.resource import Untagged
from openstack_prep.core.run import query
from openstack_prep.core.twin import choose, settle
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.lists.nova_records import (
    ServerGroupRecord,
    list_all_server_groups,
    list_server_groups,
    name_fault,
)

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

Policy = Literal["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]


@dataclass(frozen=True, kw_only=True)
class ServerGroup(HasCascades, ByProjectUser, Untagged):
    """A server group. It cannot have an ownership tag: the only group with the name is managed if its project is."""

    kind: ClassVar[str] = "server_group"
    needs_login: ClassVar[bool] = True
    immutable: ClassVar[frozenset[str]] = frozenset({"policy", "max_server_per_host"})

    name: Name
    """Name of the group, unique in its project."""
    policy: Policy
    """How its servers are distributed; the soft policies are best effort."""
    max_server_per_host: Count | None = None
    """Servers of the group per host; only with anti-affinity."""

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        return {"server_groups": 1} if changes is None else {}

    @property
    def can_have_twins(self) -> bool:
        return True

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        if self.max_server_per_host and self.policy != "anti-affinity":
            what = f"max_server_per_host only applies to policy anti-affinity, not to {self.policy}"
            yield self.mistake(what, "remove it", Code.SPEC_CONTRADICTION, "max_server_per_host")
        if found := name_fault(self.name):
            yield self.mistake(*found, Code.SPEC_INVALID_VALUE, "name")

    def find_one(self, run: CloudRun) -> Observed | None:
        project_id = run.find_project_id(self.owner)
        return self._choose(run, _listed(run, self.owner, project_id) if project_id else [])

    def _choose(self, run: CloudRun, listed: Iterable[ServerGroupRecord]) -> Observed | None:
        """Return the matching group. Several groups as declared are twins; any other group makes the name ambiguous.

        Nothing shows which of several groups this spec has created, so the spec deletes none of them.
        """
        named = [group for group in listed if group.name == self.name]
        if len(named) > 1 and all(_values(group).items() >= self.desired().items() for group in named):
            return choose(replace(self._observed(run, group), ours=False) for group in named)
        group = only_one(named, str(self.key))
        return self._observed(run, group) if group is not None else None

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the groups of a project; ownership is unknown, because a group cannot have a tag."""
        project_id = run.find_project_id(owner)
        for group in _listed(run, cast("Project | None", owner), project_id) if project_id else ():
            declared = cls(name=group.name, **_values(group), **cls.placing(owner))
            yield declared, replace(declared._observed(run, group), ours=False)

    def _observed(self, run: CloudRun, group: ServerGroupRecord) -> Observed:
        project = run.look(self.owner) if self.owner else None
        return Observed(
            id=group.id,
            ours=project is not None and project.ours,
            values=_values(group),
            used_by=tuple(f"server {server_id}" for server_id in group.server_ids),
            record=group,
        )

    def create(self, run: CloudRun) -> Observed:
        rules = {"max_server_per_host": self.max_server_per_host} if self.max_server_per_host else {}
        body = {"name": self.name, "policy": self.policy, "rules": rules}
        compute = run.tenant(self.owner).compute
        project_id = str(run.find_project_id(self.owner))

        def post() -> ServerGroupRecord:
            return ServerGroupRecord.read(compute.post("/os-server-groups", {"server_group": body})["server_group"])

        def look() -> list[ServerGroupRecord]:
            return _listed(run.fresh(), self.owner, project_id)

        made, listed = run.wave.write((self.kind, project_id), post, look)
        if sum(group.name == self.name for group in listed) > 1:
            settle(self.key, made.id, lambda: self._choose(run, look()), lambda mine: self.delete(run, mine))
        return self._observed(run, made)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        cloud = run.find_tenant(self.owner) or run.admin
        cloud.compute.delete(f"/os-server-groups/{observed.id}")


def _values(group: ServerGroupRecord) -> Values:
    return {"policy": group.policy, "max_server_per_host": group.max_server_per_host}


def _listed(run: CloudRun, owner: Project | None, project_id: str) -> list[ServerGroupRecord]:
    """Return the groups of a project, listed by its user, or else selected from the list of all projects."""
    tenant = run.find_tenant(owner)
    listed = _of_all_projects(run) if tenant is None else _of_project(run, tenant)
    return [group for group in listed if group.project_id == project_id]


@query
def _of_project(run: CloudRun, tenant: Cloud) -> list[ServerGroupRecord]:
    """Return the groups of the project that a connection is scoped to."""
    return list_server_groups(tenant)


@query
def _of_all_projects(run: CloudRun) -> list[ServerGroupRecord]:
    return list_all_server_groups(run.admin)
