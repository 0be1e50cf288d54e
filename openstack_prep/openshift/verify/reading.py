"""What OpenStack knows of the paths to a cluster: a few lists, however many machines it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.lists import installer_names as naming
from openstack_prep.resources.lists.by_id import list_by_id
from openstack_prep.resources.network.uses import INTERFACES


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    """What was read; None stands for a list that these credentials may not read."""

    infra_id: str
    ports: Sequence[Raw]
    """All ports of the project."""
    floating_ips: Sequence[Raw] | None
    """All of the project."""
    servers: Mapping[str, Raw] | None
    """Of the project, by id."""
    groups: Mapping[str, Raw] | None
    """Those of the cluster's node ports, by id, with their rules."""
    interfaces: Sequence[Raw] | None
    """Router interfaces on the networks of the virtual ports."""
    routers: Mapping[str, Raw] | None
    """Those of the interfaces and of the floating IPs, by id."""
    subnets: Mapping[str, Raw] | None
    """Those of the virtual ports, by id."""
    worker_groups: Sequence[Raw] | None = ()
    """Security groups named like the cluster's for workers; read only while there is no worker."""

    @property
    def virtual(self) -> list[Raw]:
        return _virtual(self.ports, self.infra_id)

    @property
    def nodes(self) -> list[Raw]:
        """Node ports on the cluster's own network; virtual addresses are on no other."""
        networks = {port["network_id"] for port in self.virtual}
        nodes = [port for port in self.ports if _is_node(port, self.infra_id)]
        return [port for port in nodes if not networks or port["network_id"] in networks]


def read(cloud: Cloud, infra_id: str, *, jobs: int = 8) -> ProjectView:
    """Read the project that the connection is scoped to; raises CloudError."""
    neutron = cloud.network
    mine: Values = {"project_id": cloud.project_id}
    with ThreadPoolExecutor(jobs) as pool:

        def start(read: Callable[[], Any]) -> Callable[[], Any]:
            return pool.submit(_if_allowed, read).result

        ports = pool.submit(neutron.list, "/ports", "ports", **mine).result
        floating_ips = start(lambda: neutron.list("/floatingips", "floatingips", **mine))
        servers = start(lambda: _by_id(cloud.compute.list("/servers/detail", "servers")))
        virtual = _virtual(ports(), infra_id)
        networks = {port["network_id"] for port in virtual}
        query: Values = {"network_id": sorted(networks), "device_owner": list(INTERFACES)}
        interfaces = start(lambda: neutron.list("/ports", "ports", **query) if networks else [])
        subnets = start(
            lambda: list_by_id(neutron, "subnets", {ip["subnet_id"] for port in virtual for ip in port["fixed_ips"]})
        )
        used = {group for port in ports() if _is_node(port, infra_id) for group in port["security_groups"]}
        groups = start(lambda: list_by_id(neutron, "security-groups", used))
        name = f"{infra_id}-worker"
        roles = {naming.role(port["name"], infra_id) for port in ports() if _is_node(port, infra_id)}
        searched = bool(roles) and not roles - {"master", "bootstrap"}
        worker_groups = start(
            lambda: neutron.list("/security-groups", "security_groups", name=name, **mine) if searched else []
        )
        behind = {port["device_id"] for port in interfaces() or ()}
        behind |= {each["router_id"] for each in floating_ips() or () if each["router_id"]}
        routers = start(lambda: list_by_id(neutron, "routers", behind))
        return ProjectView(
            infra_id=infra_id,
            ports=ports(),
            floating_ips=floating_ips(),
            servers=servers(),
            groups=groups(),
            interfaces=interfaces(),
            routers=routers(),
            subnets=subnets(),
            worker_groups=worker_groups(),
        )


def _virtual(ports: Iterable[Raw], infra_id: str) -> list[Raw]:
    return [port for port in ports if naming.is_virtual(port["name"], port["tags"], infra_id)]


def _is_node(port: Raw, infra_id: str) -> bool:
    return naming.is_node(port["name"], port["tags"], port["device_owner"], infra_id)


def _if_allowed(read: Callable[[], object]) -> object:
    try:
        return read()
    except NotAllowed:
        return None  # shown as unknown


def _by_id(listed: Iterable[Raw]) -> dict[str, Raw]:
    return {each["id"]: each for each in listed}
