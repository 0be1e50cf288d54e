"""The fields of a port, and what follows from them before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Mac, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Context, Key, Resource
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network import reserved_ports
from openstack_prep.resources.network.network import subnets_on
from openstack_prep.resources.network.neutron import NetworkResource
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.port_addresses import PortAddress, PortPair
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.network.visible import VisibleNetwork, VisibleSubnet

UNORDERED = ("fixed_ips", "security_groups", "allowed_address_pairs", "tags")


@dataclass(frozen=True, kw_only=True)
class PortFields(NetworkResource[PortRecord]):
    """The fields of a port."""

    kind: ClassVar[str] = "port"
    collection: ClassVar[str] = "ports"
    member: ClassVar[str] = "port"
    immutable: ClassVar[frozenset[str]] = frozenset({"network", "mac_address"})

    name: Name
    """Name of the port, unique in its project."""
    network: Name
    """Name of its network: one of the project, or one that another project shares with it."""
    fixed_ips: tuple[PortAddress, ...] | None = None
    """Its addresses, all of them; default: one that Neutron chooses per IP version."""
    security_groups: tuple[Name, ...] | None = None
    """Names of its security groups, all of them; default: the group "default"."""
    port_security_enabled: bool | None = None
    """Whether port security is enabled, which filters spoofed addresses; default: as the network says."""
    allowed_address_pairs: tuple[PortPair, ...] | None = None
    """Its address pairs, besides those that address_pairs adds."""
    dns_name: Name | None = None
    """Host name of the port in the cloud's internal DNS."""
    mac_address: Mac | None = None
    """MAC address; default: one that Neutron chooses."""
    admin_state_up: bool | None = None
    """Administrative state: whether it forwards packets."""
    tags: tuple[Name, ...] | None = None
    """Tags to have; other tags of the port are kept."""

    @classmethod
    def read(cls, raw: Raw) -> PortRecord:
        return PortRecord.read(raw)

    @classmethod
    def listing(cls, run: CloudRun, project_id: str) -> Sequence[PortRecord]:
        """Return the ports of a project, except those of address pools and those of routers and DHCP."""
        listed = ports_of(run, project_id)
        return [each for each in listed if not each.device_owner.startswith(("network:", reserved_ports.OWNER))]

    @property
    def neighbours(self) -> tuple[Subnet, ...]:
        """The subnets that the spec declares on the port's network; set by ``resolve``."""
        return ()

    def contradictions_with(self, context: Context) -> Iterator[Mistake]:
        """Yield what contradicts other resources of the spec."""
        yield from self._on_other_networks(self.of_project(context.declared(Subnet)))
        yield from self._declared_twice(context)

    def _on_other_networks(self, subnets: Sequence[Subnet]) -> Iterator[Mistake]:
        networks = {each.name: each.network for each in subnets}
        for each in self.fixed_ips or ():
            other = networks.get(each.subnet or "") or self.network
            if other != self.network:
                what = f"subnet {each.subnet} is on network {other}, the port on network {self.network}"
                yield self.mistake(what, "choose a subnet of the port's network")

    def _declared_twice(self, context: Context) -> Iterator[Mistake]:
        mine = {each.address for each in self.fixed_ips or () if each.address}
        for other in self.of_project(context.declared(PortFields)) if mine else ():
            if other.key < self.key and other.network == self.network:
                for each in (each for each in other.fixed_ips or () if each.address in mine):
                    yield self.mistake(f"{each.address} is also declared by {other.key}", "choose another address")

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        yield self.sibling(VisibleNetwork, self.network)
        for name in dict.fromkeys(each.subnet for each in self.fixed_ips or () if each.subnet):
            yield self.subnet(name)
        for name in self.security_groups or ():
            yield self.sibling(SecurityGroup, name)

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), subnets_on(self.network))

    def subnet(self, name: str) -> VisibleSubnet:
        return VisibleSubnet(name=name, network=self.network, project=self.project, project_domain=self.project_domain)

    def desired(self) -> Values:
        values = super().desired()
        return values | {name: frozenset(values[name]) for name in UNORDERED if name in values}
