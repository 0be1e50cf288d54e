"""Which ports of a project somebody means: by name, by tag, of a cluster, of a stack, of a security group.

Source: Networking API v2.0, "Ports", "Security groups".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name
from openstack_prep.cloud.site import Site, only_one
from openstack_prep.core.run import query
from openstack_prep.resources.identity.in_project import ByTenant
from openstack_prep.resources.lists import installer_names as naming
from openstack_prep.resources.lists.installer_names import Role
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.orchestration.stack_nodes import servers_of

WAYS = ("ports", "infra_id", "tag", "stack", "security_group")


@dataclass(frozen=True, kw_only=True)
class PortChoice(ByTenant):
    """Base of what concerns several ports, chosen in one of these ways."""

    ports: tuple[Name, ...] = ()
    """Names of the ports, each exact and unique in the project."""
    infra_id: Name | None = None
    """InfraID of an OpenShift cluster: its masters', workers' and bootstrap's ports on the cluster's own network."""
    tag: Name | None = None
    """Tag of the ports."""
    roles: tuple[Role, ...] = ()
    """With infra_id or tag: only ports of these roles, which show in their names."""
    stack: Name | None = None
    """Stack whose servers' ports are meant, of this spec or not."""
    security_group: Name | None = None
    """Security group, by name or id: every port of the project that carries it, nodes that joined later included."""

    @property
    def ways(self) -> list[str]:
        """The ways in which it says which ports; it should be one."""
        return [way for way in WAYS if getattr(self, way)]

    def chosen(self, site: Site) -> list[PortRecord] | None:
        """Return the ports that exist of those meant; None when what they are known by is not there yet."""
        listed = ports_of(site, site.find_project_id(self.owner))
        if self.ports:
            named = {name: [port for port in listed if port.name == name] for name in self.ports}
            found = [only_one(matches, f"{self.key}: port {name}") for name, matches in named.items()]
            return [port for port in found if port is not None]
        if self.stack:
            servers = servers_of(site, self.owner, self.stack)
            return None if servers is None else [port for port in listed if port.device_id in servers]
        if self.security_group:
            group = self._group_id(site)
            return None if group is None else [port for port in listed if group in port.security_groups]
        infra_id = self.infra_id or ""
        meant = _nodes(listed, infra_id) if infra_id else [port for port in listed if self.tag in port.tags]
        return [port for port in meant if not self.roles or naming.role(port.name, infra_id) in self.roles]

    def _group_id(self, site: Site) -> str | None:
        project_id = site.find_project_id(self.owner)
        if project_id is None:
            return None
        listed = _security_groups(site, project_id)
        named = [each_id for each_id, name in listed if name == self.security_group]
        if len(named) > 1:  # of ours, one stays
            group = site.look(self.sibling(SecurityGroup, self.security_group or ""))
            named = [each_id for each_id in named if group is not None and each_id == group.id]
        by_id = (each_id for each_id, _ in listed if each_id == self.security_group)
        return next(iter(named), None) or next(by_id, None)

    def check_choice(self, chosen: Sequence[PortRecord] | None, *, expected: bool) -> Iterator[Mistake]:
        """Yield what is wrong with how the ports are chosen; ``expected``: what they are known by may be to come."""
        if len(self.ways) != 1:
            yield self.mistake("does not say which ports", f"give one of {', '.join(WAYS)}")
            return
        if self.roles and self.ways[0] not in ("infra_id", "tag"):
            yield self.mistake("roles mean nothing here", "give them with infra_id or tag")
        if chosen is None and not expected:
            what = f"stack {self.stack}" if self.stack else f"security group {self.security_group}"
            yield self.mistake(f"{what} does not exist in the project", "make it first, or correct the name")
        for name in sorted(set(self.ports) - {port.name for port in chosen or ()}):
            yield self.mistake(f"no port {name} in the project", "correct the name")
        if not chosen and (self.tag or self.infra_id) and not expected:
            tag = self.tag or naming.tag(self.infra_id or "")
            which = " or ".join(self.roles) if self.roles else "node"
            yield self.mistake(f"no {which} port in the project carries the tag {tag}", "correct it, or wait for them")


def _nodes(listed: Sequence[PortRecord], infra_id: str) -> list[PortRecord]:
    """Return a cluster's node ports; those on additional networks carry no virtual address."""
    networks = {port.network_id for port in listed if naming.is_virtual(port.name, port.tags, infra_id)}
    nodes = [port for port in listed if naming.is_node(port.name, port.tags, port.device_owner, infra_id)]
    return [port for port in nodes if not networks or port.network_id in networks]


@query
def _security_groups(site: Site, project_id: str) -> Sequence[tuple[str, str]]:
    """Return ids and names of a project's security groups."""
    fields = ["id", "name"]
    listed = site.admin.network.list("/security-groups", "security_groups", project_id=project_id, fields=fields)
    return [(raw["id"], raw["name"]) for raw in listed]
