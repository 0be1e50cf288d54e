"""What Neutron knows of the paths between clusters: a few lists, however many nodes they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.service import Service
from openstack_prep.kubernetes.mesh.visible import VisibleNetworks
from openstack_prep.resources.lists.by_id import list_by
from openstack_prep.resources.network.uses import INTERFACES

DEPTH = 2
"""How often the routers on newly found networks are followed: enough for three routers in a row."""
PORT_FIELDS = ("id", "name", "network_id", "device_id", "device_owner", "fixed_ips", "project_id")


def read(
    network: Service,
    *,
    cloud: str,
    project_id: str,
    sees_all: bool,
    ports: Sequence[Raw],
    nodes: Iterable[Raw],
    networks: Iterable[str] = (),
) -> VisibleNetworks:
    """Return the networks around the ports of nodes, and around further networks; raises CloudError.

    ``ports`` are all of the project.  Networks and routers are followed from the nodes outwards.
    """
    nodes = list(nodes)
    interfaces = _around(network, {port["network_id"] for port in nodes} | set(networks))
    near = {fixed["subnet_id"] for port in [*interfaces, *nodes] for fixed in port["fixed_ips"]}
    subnets = list_by(network, "subnets", "id", near) | list_by(network, "subnets", "network_id", networks)
    groups = list_by(network, "security-groups", "id", {each for port in nodes for each in port["security_groups"]})
    return VisibleNetworks(
        cloud=cloud,
        project_id=project_id,
        sees_all=sees_all,
        subnets=subnets,
        networks=list_by(network, "networks", "id", {each["network_id"] for each in subnets.values()}),
        interfaces=interfaces,
        routers=list_by(network, "routers", "id", {port["device_id"] for port in interfaces}),
        groups=groups,
        address_groups=_address_groups(network, groups),
        ports=ports,
    )


def _around(network: Service, networks: set[str]) -> list[Raw]:
    """Return the interfaces of routers on some networks, and of those beyond them."""
    found: dict[str, Raw] = {}
    routers: set[str] = set()
    seen: set[str] = set()
    for _ in range(DEPTH):
        on = _interfaces(network, "network_id", networks - seen)
        new = {port["device_id"] for port in on.values()} - routers
        found |= on | _interfaces(network, "device_id", new)
        routers, seen = routers | new, seen | networks
        networks = {port["network_id"] for port in found.values()}
    return list(found.values())


def _interfaces(network: Service, by: str, ids: Iterable[str]) -> dict[str, Raw]:
    return list_by(network, "ports", by, ids, device_owner=list(INTERFACES), fields=list(PORT_FIELDS))


def _address_groups(network: Service, groups: Mapping[str, Raw]) -> dict[str, Raw]:
    rules = (rule for group in groups.values() for rule in group["security_group_rules"])
    used = {rule["remote_address_group_id"] for rule in rules if rule.get("remote_address_group_id")}
    try:
        return list_by(network, "address-groups", "id", used)
    except NotAllowed:
        return {}  # then they admit nobody, as far as these credentials show
