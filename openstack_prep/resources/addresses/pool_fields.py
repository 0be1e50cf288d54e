"""The fields of an address pool, and its existing ports, its subnet and its related resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, ClassVar, Literal

from annotated_types import Len

from openstack_prep.base import ranges
from openstack_prep.base.fields import Name
from openstack_prep.base.multicast import PoolRange
from openstack_prep.base.ranges import Ip, Range
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import PortRecord, SubnetRecord
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.reserved_ports import addresses_of
from openstack_prep.resources.network.subnet import Subnet

CEILING = 1024
"""Maximum number of addresses that ports reserve; each port counts against the project's quota."""


@dataclass(frozen=True)
class PoolNeighbours:
    """The related resources in the project of a pool: its subnet, all pools, and the port quota."""

    subnet: Subnet | None = None
    pools: tuple[PoolFields, ...] = ()
    port_limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class PoolFields(ByProjectUser):
    """The fields of an address pool."""

    kind: ClassVar[str] = "address_pool"

    name: Name
    """Name within this spec; the names of the ports begin with it."""
    subnet: Name
    """Name of the subnet, in the spec or in the cloud."""
    addresses: Annotated[tuple[PoolRange, ...], Len(1)]
    """The addresses: ranges such as 10.0.0.200-10.0.0.219, networks such as 10.0.0.192/28, or single addresses."""
    reserve: Literal["ports", "outside"] = "ports"
    """ports: one port per address (up to 1024). outside: the addresses are outside every allocation pool of the subnet.
    """

    @property
    def neighbours(self) -> PoolNeighbours:
        """The related resources of the spec; empty before the pool is resolved."""
        return PoolNeighbours()

    @property
    def ranges(self) -> list[Range]:
        """The addresses as the fewest ranges."""
        return ranges.merged(map(Range.read, self.addresses))

    @property
    def count(self) -> int:
        return sum(each.count for each in self.ranges)

    def room(self, run: CloudRun) -> Room | None:
        """Return the addresses of the subnet, as it exists or as declared; None if there is no such subnet."""
        found = run.look(self.sibling(Subnet, self.subnet))
        record = found.record_as(SubnetRecord) if found else None
        if record is None and self.neighbours.subnet is None:
            record = self._shared_subnet(run)
        return Room.of(self.subnet, record, self.neighbours.subnet)

    def _shared_subnet(self, run: CloudRun) -> SubnetRecord | None:
        """Return the subnet with this name on a network that another project shares."""
        cloud = run.find_tenant(self.owner)
        if cloud is None:
            return None
        listed = queries.subnets_named(run, cloud, self.subnet)
        return only_one(listed, f"subnet/{self.subnet}")

    def kept(self, run: CloudRun) -> list[PortRecord]:
        """Return the existing ports of this pool, on all subnets."""
        listed = ports_of(run, run.find_project_id(self.owner))
        return [port for port in listed if run.ownership.owns(port.description, self.name)]

    def missing(self, room: Room | None, kept: Iterable[PortRecord]) -> list[str]:
        """Return the addresses that still need a port of this pool."""
        if self.reserve == "outside":
            return []
        reserved = {each for port in kept for each in addresses_of(port, room.id if room else None)}
        return [text for each in self.ranges for address in each if (text := str(address)) not in reserved]

    def going(self, room: Room, kept: Iterable[PortRecord]) -> list[PortRecord]:
        """Return the ports of this pool whose address no longer belongs to the pool."""
        if self.reserve == "outside":
            return list(kept)
        return [port for port in kept if not any(map(self.has, map(ip_address, addresses_of(port, room.id))))]

    def has(self, address: Ip) -> bool:
        return any(address in each for each in self.ranges)
