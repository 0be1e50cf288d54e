"""The selection of ports in a project: by name, by tag, by cluster, by stack, or by security group.

Source: Networking API v2.0, "Ports", "Security groups".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, PrepError
from openstack_prep.base.fields import Name
from openstack_prep.base.suggestion import suggest
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.run import query
from openstack_prep.resources.heat.heat_list import stack_names
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists import installer_names as naming
from openstack_prep.resources.lists.installer_names import Role
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.orchestration.stack_nodes import ports_in, servers_of

WAYS = ("ports", "infra_id", "tag", "stack", "security_group")


@dataclass(frozen=True, kw_only=True)
class PortChoice(ByProjectUser):
    """Base of kinds that apply to several ports, which are selected in one of these ways."""

    ports: tuple[Name, ...] = ()
    """Names of the ports; each must match exactly and be unique in the project."""
    infra_id: Name | None = None
    """InfraID of an OpenShift cluster: selects the ports of masters, workers and bootstrap on the cluster's network."""
    tag: Name | None = None
    """Tag of the ports."""
    roles: tuple[Role, ...] = ()
    """Only ports with these roles, which are part of the port names; needs infra_id or tag."""
    stack: Name | None = None
    """Stack whose servers' ports are selected; the spec may declare it or not."""
    security_group: Name | None = None
    """Name or id of a security group: selects all ports of the project in this group, including nodes added later."""

    @property
    def ways(self) -> list[str]:
        """The fields that select ports; exactly one must be set."""
        return [way for way in WAYS if getattr(self, way)]

    def chosen(self, run: CloudRun) -> list[PortRecord] | None:
        """Return the selected ports that exist; None if the stack, group or tag that selects them does not exist."""
        listed = ports_of(run, run.find_project_id(self.owner))
        if self.ports:
            named = {name: [port for port in listed if port.name == name] for name in self.ports}
            found = [only_one(matches, f"{self.key}: port {name}") for name, matches in named.items()]
            return [port for port in found if port is not None]
        if self.stack:
            servers = servers_of(run, self.owner, self.stack)
            return None if servers is None else [port for port in listed if port.device_id in servers]
        if self.security_group:
            group = self._group_id(run)
            return None if group is None else [port for port in listed if group in port.security_groups]
        infra_id = self.infra_id or ""
        meant = _nodes(listed, infra_id) if infra_id else [port for port in listed if self.tag in port.tags]
        return [port for port in meant if not self.roles or naming.role(port.name, infra_id) in self.roles]

    def between_servers(self, run: CloudRun) -> frozenset[str]:
        """Return the ids of the selected stack's own ports that no server of it has, as while Heat replaces one."""
        if not self.stack or len(self.ways) != 1:
            return frozenset()
        return ports_in(run, self.owner, self.stack).difference(port.id for port in self.chosen(run) or ())

    def _group_id(self, run: CloudRun) -> str | None:
        project_id = run.find_project_id(self.owner)
        if project_id is None:
            return None
        listed = _security_groups(run, project_id)
        named = [each_id for each_id, name in listed if name == self.security_group]
        if len(named) > 1:  # one of our twins is kept
            group = run.look(self.sibling(SecurityGroup, self.security_group or ""))
            named = [each_id for each_id in named if group is not None and each_id == group.id]
        by_id = (each_id for each_id, _ in listed if each_id == self.security_group)
        return next(iter(named), None) or next(by_id, None)

    def check_choice(
        self,
        run: CloudRun,
        chosen: Sequence[PortRecord] | None,
        *,
        expected: bool,
        coming: frozenset[str] = frozenset(),
    ) -> Iterator[Mistake]:
        """Yield what is wrong with the selection.

        ``expected``: the spec will create what selects the ports; ``coming`` are the names of ports that it creates.
        """
        if len(self.ways) != 1:
            yield self.mistake("no ports selected", f"set one of {', '.join(WAYS)}")
            return
        if self.roles and self.ways[0] not in ("infra_id", "tag"):
            yield self.mistake(
                "roles only applies together with infra_id or tag", "set infra_id or tag, or remove roles"
            )
        if chosen is None and not expected:
            kind, name = ("stack", self.stack) if self.stack else ("security_group", self.security_group)
            fix = self._suggest(run, kind, str(name), "create it first, or correct the name")
            what = f"{kind.replace('_', ' ')} {name} does not exist in the project"
            yield self.mistake(what, fix, Code.SPEC_UNRESOLVED)
        for name in sorted({*self.ports} - coming - {port.name for port in chosen or ()}):
            fix = suggest(name, coming, count=3) or self._suggest(run, "port", name, "correct the name")
            yield self.mistake(f"port {name} does not exist in the project", fix, Code.SPEC_UNRESOLVED)
        if not chosen and (self.tag or self.infra_id) and not expected:
            tag = self.tag or naming.tag(self.infra_id or "")
            which = " or ".join(self.roles) if self.roles else "node"
            yield self.mistake(
                f"no {which} port in the project has the tag {tag}", "correct the tag, or wait until the ports exist"
            )

    def _suggest(self, run: CloudRun, kind: str, name: str, otherwise: str) -> str:
        """Return which existing resource of the project a name may mean, or else another fix."""
        project_id, known = run.find_project_id(self.owner), [""]
        if project_id is None:
            return otherwise
        with contextlib.suppress(PrepError):  # the mistake itself does not depend on it
            if kind == "port":
                known = [port.name for port in ports_of(run, project_id)]
            elif kind == "stack":
                known = [*stack_names(run, self.owner)]
            else:
                known = [each for _, each in _security_groups(run, project_id)]
        return suggest(name, filter(None, known), otherwise, count=3)


def _nodes(listed: Sequence[PortRecord], infra_id: str) -> list[PortRecord]:
    """Return the ports of a cluster's nodes; ports on additional networks have no virtual address."""
    networks = {port.network_id for port in listed if naming.is_virtual(port.name, port.tags, infra_id)}
    nodes = [port for port in listed if naming.is_node(port.name, port.tags, port.device_owner, infra_id)]
    return [port for port in nodes if not networks or port.network_id in networks]


@query
def _security_groups(run: CloudRun, project_id: str) -> Sequence[tuple[str, str]]:
    """Return ids and names of a project's security groups."""
    fields = ["id", "name"]
    listed = run.admin.network.list("/security-groups", "security_groups", project_id=project_id, fields=fields)
    return [(raw["id"], raw["name"]) for raw in listed]
