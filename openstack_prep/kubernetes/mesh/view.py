"""Clusters of a mesh, and what Neutron has between them: plain data."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from openstack_prep.base import shell
from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.style import first_of
from openstack_prep.cloud.service import Service
from openstack_prep.neutron.rules import Address, Block
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    AddressGroupRecord,
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
    list_by,
    list_by_id,
)
from openstack_prep.resources.lists.queries import PORT_FIELDS

# --- view -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MeshCluster:
    """One cluster, as the other clusters of the mesh see it."""

    name: str
    ports: Sequence[PortRecord] = ()
    """The ports of its nodes, by which the other clusters reach them."""
    others: Sequence[PortRecord] = ()
    """The ports of all nodes, where ``ports`` are only those with a role."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles of the nodes, by the ids of their ports; empty if they are not known."""
    subnets: Sequence[SubnetRecord] = ()
    """The subnets of these ports, or those that the ports will be in."""
    pod_networks: tuple[str, ...] = ()
    """CIDRs of pods that are routed natively; empty with a tunnel."""
    mesh_address: str | None = None
    """Address of the Service that the other clusters ask for its state."""
    by_bgp: bool = False
    """Whether BGP announces such addresses, so that the nodes' subnets need not contain them."""
    speakers: bool = False
    """Whether such addresses are announced on layer 2, for which MetalLB's speakers elect one of them."""

    def addresses(self, version: int) -> list[Address]:
        """Return the nodes' own addresses of an IP version."""
        return [each for port in self.ports for each in port.addresses if each.version == version]

    def blocks(self, version: int) -> list[Block]:
        """Return the networks of its nodes of an IP version."""
        return [subnet.block for subnet in self.subnets if subnet.ip_version == version]

    def port_names(self, ids: Iterable[str]) -> str:
        """Return the first three ports by name or id, and how many more there are."""
        wanted = set(ids)
        names = sorted(port.name or port.id for port in self.ports if port.id in wanted)
        return first_of(names)


@dataclass(frozen=True, kw_only=True)
class VisibleNetworks:
    """What these credentials see of networks, routers and groups around the clusters."""

    cloud: str
    """Entry of clouds.yaml for the commands in ``fix``."""
    project_id: str
    sees_all: bool
    """Whether what is not listed does not exist: an administrator sees the ports of all projects."""
    subnets: Mapping[str, SubnetRecord] = field(default_factory=dict)
    """By id: those of the nodes, and those that the routers lead to."""
    networks: Mapping[str, NetworkRecord] = field(default_factory=dict)
    """By id: those of the subnets."""
    interfaces: Sequence[PortRecord] = ()
    """Ports by which routers reach networks."""
    routers: Mapping[str, RouterRecord] = field(default_factory=dict)
    """By id: those of the interfaces."""
    groups: Mapping[str, GroupRecord] = field(default_factory=dict)
    """Security groups of the nodes' ports, by id, with their rules."""
    address_groups: Mapping[str, AddressGroupRecord] = field(default_factory=dict)
    """Those that the rules name, by id."""
    ports: Sequence[PortRecord] = ()
    """All ports of the project."""

    @cached_property
    def addresses_of_groups(self) -> dict[str, tuple[str, ...]]:
        """The addresses of the address groups, by id; one that these credentials do not see admits nobody."""
        return {group_id: group.addresses for group_id, group in self.address_groups.items()}

    def openstack(self, *words: str) -> str:
        """Return a line for the shell: the client's command, with the entry of clouds.yaml in use."""
        return shell.join(["openstack", "--os-cloud", self.cloud, *words])

    def for_owner(self, thing: NeutronRecord) -> list[str]:
        """Return the client's options to create something in a resource's project, if that is a different one."""
        return [] if thing.project_id == self.project_id else ["--project", thing.project_id]

    def sees(self, subnet: SubnetRecord) -> bool:
        """Whether every router of a subnet is visible: other projects' and physical routers are not."""
        network = self.networks.get(subnet.network_id)
        if network is not None and (network.external or network.shared):
            return False
        return self.sees_all or subnet.project_id == self.project_id

    @cached_property
    def _by_address(self) -> dict[tuple[str, Address], PortRecord]:
        return {(port.network_id, each): port for port in self.interfaces for each in port.addresses}

    def interface_at(self, network_ids: Iterable[str], address: Address) -> PortRecord | None:
        """Return the interface that has an address on one of some networks."""
        found = (self._by_address.get((network_id, address)) for network_id in network_ids)
        return next(filter(None, found), None)

    def is_free(self, network_id: str, address: Address) -> bool:
        """Whether no visible port has an address on a network."""
        mine = (port for port in (*self.interfaces, *self.ports) if port.network_id == network_id)
        return not any(address in port.addresses for port in mine)

    def interfaces_of(self, router_id: str) -> list[PortRecord]:
        return [port for port in self.interfaces if port.device_id == router_id]

    def interfaces_in(self, subnet_id: str) -> Iterator[tuple[PortRecord, Address]]:
        """Yield the interfaces that routers have in a subnet, with their addresses there."""
        for port in self.interfaces:
            for fixed in port.fixed_ips:
                if fixed.subnet_id == subnet_id:
                    yield port, ipaddress.ip_address(fixed.ip_address)

    def connected(self, router_id: str) -> list[SubnetRecord]:
        """Return the subnets that a router has interfaces in."""
        ids = [fixed.subnet_id for port in self.interfaces_of(router_id) for fixed in port.fixed_ips]
        return [self.subnets[each] for each in dict.fromkeys(ids) if each in self.subnets]

    def router(self, router_id: str) -> str:
        """Return a router's name and id."""
        found = self.routers.get(router_id)
        return f"router {found.name} {router_id}" if found else f"router {router_id}"


# --- reading ----------------------------------------------------------------------------------


DEPTH = 2
"""How often the routers on newly found networks are followed: enough for three routers in a row."""


def read(
    network: Service,
    *,
    cloud: str,
    project_id: str,
    sees_all: bool,
    ports: Sequence[PortRecord],
    nodes: Iterable[PortRecord],
    networks: Iterable[str] = (),
) -> VisibleNetworks:
    """Return the networks around the ports of nodes, and around further networks; raises CloudError.

    ``ports`` are all of the project.  Networks and routers are followed from the nodes outwards.
    """
    nodes = list(nodes)
    interfaces = _around(network, {port.network_id for port in nodes} | set(networks))
    near = {subnet_id for port in [*interfaces, *nodes] for subnet_id in port.subnet_ids}
    subnets = list_by_id(network, SubnetRecord, near) | list_by(network, SubnetRecord, "network_id", networks)
    groups = list_by_id(network, GroupRecord, {each for port in nodes for each in port.security_groups})
    return VisibleNetworks(
        cloud=cloud,
        project_id=project_id,
        sees_all=sees_all,
        subnets=subnets,
        networks=list_by_id(network, NetworkRecord, {subnet.network_id for subnet in subnets.values()}),
        interfaces=interfaces,
        routers=list_by_id(network, RouterRecord, {port.device_id for port in interfaces}),
        groups=groups,
        address_groups=_address_groups(network, groups),
        ports=ports,
    )


def _around(network: Service, networks: set[str]) -> list[PortRecord]:
    """Return the interfaces of routers on some networks, and of those beyond them."""
    found: dict[str, PortRecord] = {}
    routers: set[str] = set()
    seen: set[str] = set()
    for _ in range(DEPTH):
        on = _interfaces(network, "network_id", networks - seen)
        new = {port.device_id for port in on.values()} - routers
        found |= on | _interfaces(network, "device_id", new)
        routers, seen = routers | new, seen | networks
        networks = {port.network_id for port in found.values()}
    return list(found.values())


def _interfaces(network: Service, by: str, ids: Iterable[str]) -> dict[str, PortRecord]:
    return list_by(network, PortRecord, by, ids, device_owner=list(INTERFACES), fields=PORT_FIELDS)


def _address_groups(network: Service, groups: Mapping[str, GroupRecord]) -> dict[str, AddressGroupRecord]:
    rules = (rule for group in groups.values() for rule in group.security_group_rules)
    used = {rule.remote_address_group_id for rule in rules if rule.remote_address_group_id}
    try:
        return list_by_id(network, AddressGroupRecord, used)
    except NotAllowed:
        return {}  # then they admit nobody, as far as these credentials show
