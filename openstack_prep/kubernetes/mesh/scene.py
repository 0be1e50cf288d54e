"""Clusters that are to be meshed, and what Neutron says of what lies between them: plain data."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from openstack_prep.base.raw import Raw
from openstack_prep.neutron.addresses import Address, Block, addresses_of


@dataclass(frozen=True, kw_only=True)
class MeshCluster:
    """One cluster, as far as its neighbours are concerned."""

    name: str
    ports: Sequence[Raw] = ()
    """The ports of its nodes, by which the others know them."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What the nodes do, by the ids of their ports; empty when that is not known."""
    subnets: Sequence[Raw] = ()
    """The subnets of these; those that the nodes will be in where there are none yet."""
    pod_networks: tuple[str, ...] = ()
    """CIDRs of pods that are routed as they are; none where a tunnel hides them."""
    mesh_address: str | None = None
    """Address of the Service that the others ask for its state."""
    by_bgp: bool = False
    """Whether such addresses are announced by BGP, and may so lie outside of the nodes' subnets."""
    speakers: bool = False
    """Whether such addresses are announced by layer 2, by one of MetalLB's speakers that agree on who does it."""

    def addresses(self, version: int) -> list[Address]:
        """Return the nodes' own addresses of an IP version."""
        return [each for port in self.ports for each in addresses_of(port) if each.version == version]

    def blocks(self, version: int) -> list[Block]:
        """Return the networks of its nodes of an IP version."""
        return [block for block in map(block_of, self.subnets) if block.version == version]

    def port_names(self, ids: Iterable[str]) -> str:
        """Return ports by name where they have one, a few of many."""
        wanted = set(ids)
        names = sorted(port["name"] or port["id"] for port in self.ports if port["id"] in wanted)
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What these credentials see of networks, routers and groups around the clusters."""

    cloud: str
    """Entry of clouds.yaml for the commands that mend."""
    project_id: str
    sees_all: bool
    """Whether what is not seen is not there: an administrator sees the ports of all projects."""
    subnets: Mapping[str, Raw] = field(default_factory=dict)
    """By id: those of the nodes, and those that the routers lead to."""
    networks: Mapping[str, Raw] = field(default_factory=dict)
    """By id: those of the subnets."""
    interfaces: Sequence[Raw] = ()
    """Ports by which routers reach networks."""
    routers: Mapping[str, Raw] = field(default_factory=dict)
    """By id: those of the interfaces."""
    groups: Mapping[str, Raw] = field(default_factory=dict)
    """Security groups of the nodes' ports, by id, with their rules."""
    address_groups: Mapping[str, Raw] = field(default_factory=dict)
    """Those that the rules name, by id."""
    ports: Sequence[Raw] = ()
    """All ports of the project."""

    @cached_property
    def addresses_of_groups(self) -> dict[str, list[str]]:
        """The addresses of the address groups, by id; one that these credentials do not see admits nobody."""
        return {group_id: group["addresses"] for group_id, group in self.address_groups.items()}

    def openstack(self, *words: str) -> str:
        """Return a line for the shell: the client's command, with the entry of clouds.yaml in use."""
        return shlex.join(["openstack", "--os-cloud", self.cloud, *words])

    def for_owner(self, thing: Raw) -> list[str]:
        """Return the client's options to create something in the project of a thing, which may not be our own."""
        return [] if thing["project_id"] == self.project_id else ["--project", thing["project_id"]]

    def sees(self, subnet: Raw) -> bool:
        """Whether every router of a subnet would be seen: others' are not, nor those of metal on a provider's."""
        network = self.networks.get(subnet["network_id"], {})
        if network.get("router:external") or network.get("shared"):
            return False
        return self.sees_all or subnet["project_id"] == self.project_id

    @cached_property
    def _by_address(self) -> dict[tuple[str, Address], Raw]:
        return {(port["network_id"], each): port for port in self.interfaces for each in addresses_of(port)}

    def interface_at(self, network_ids: Iterable[str], address: Address) -> Raw | None:
        """Return the interface that has an address on one of some networks."""
        found = (self._by_address.get((network_id, address)) for network_id in network_ids)
        return next(filter(None, found), None)

    def is_free(self, network_id: str, address: Address) -> bool:
        """Whether no port has an address on a network, of those that are seen."""
        mine = (port for port in (*self.interfaces, *self.ports) if port["network_id"] == network_id)
        return not any(address in addresses_of(port) for port in mine)

    def interfaces_of(self, router_id: str) -> list[Raw]:
        return [port for port in self.interfaces if port["device_id"] == router_id]

    def interfaces_in(self, subnet_id: str) -> Iterator[tuple[Raw, Address]]:
        """Yield the interfaces that routers have in a subnet, with their addresses there."""
        for port in self.interfaces:
            for fixed in port["fixed_ips"]:
                if fixed["subnet_id"] == subnet_id:
                    yield port, ipaddress.ip_address(fixed["ip_address"])

    def connected(self, router_id: str) -> list[Raw]:
        """Return the subnets that a router has interfaces in."""
        ids = [fixed["subnet_id"] for port in self.interfaces_of(router_id) for fixed in port["fixed_ips"]]
        return [self.subnets[each] for each in dict.fromkeys(ids) if each in self.subnets]

    def router(self, router_id: str) -> str:
        """Return a router in words."""
        found = self.routers.get(router_id)
        return f"router {found['name']} {router_id}" if found else f"router {router_id}"


def block_of(subnet: Raw) -> Block:
    return ipaddress.ip_network(subnet["cidr"])
