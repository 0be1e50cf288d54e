"""The addresses that a subnet offers, as it exists or as the spec declares it.

Source: Networking API v2.0, "Subnets" (allocation pools, gateway, IPv6 modes).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from openstack_prep.base.ranges import Ip, Net, Range
from openstack_prep.resources.lists.neutron_records import SubnetRecord
from openstack_prep.resources.network.subnet import COMPUTED, Subnet, gateway_of, pools_of


@dataclass(frozen=True, kw_only=True)
class Room:
    """One subnet; ``id`` is None if it is only declared."""

    id: str | None
    network_id: str | None
    name: str
    cidr: Net
    gateway: Ip | None
    pools: tuple[Range, ...]
    """Ranges from which Neutron assigns addresses."""
    computed: bool
    """Whether addresses are derived from MAC addresses, so that ports cannot ask for a given address."""
    is_default_gateway: bool = False
    """Whether the spec leaves the gateway of a new subnet to Neutron."""

    @classmethod
    def of(cls, name: str, record: SubnetRecord | None, declared: Subnet | None) -> Room | None:
        """Return a subnet's addresses as the cloud reports and the spec changes them; None if nothing is known."""
        cidr = record.cidr if record else declared and declared.cidr
        if not cidr:
            return None
        network = ipaddress.ip_network(cidr)
        gateway = gateway_of(network, record, declared)
        mode = record.ipv6_address_mode if record else declared and declared.ipv6_address_mode
        return cls(
            id=record.id if record else None,
            network_id=record.network_id if record else None,
            name=name,
            cidr=network,
            gateway=gateway,
            pools=tuple(pools_of(network, gateway, record, declared)),
            computed=mode in COMPUTED,
            is_default_gateway=record is None and declared is not None and declared.gateway_ip is None,
        )

    @classmethod
    def declared(cls, subnet: Subnet | None, *, for_plan: bool) -> Room | None:
        """Return what is certain of a declared subnet before the cloud is read; None if it has no CIDR.

        It may exist with other allocation pools than Neutron's defaults, and with another gateway than the first
        address, which an apply creates if the spec names none: ``for_plan`` tells that the cloud is read next.
        """
        room = cls.of(subnet.name, None, subnet) if subnet else None
        if room is None or subnet is None:
            return None
        room = room if subnet.allocation_pools is not None else replace(room, pools=())
        return replace(room, gateway=None) if for_plan and subnet.gateway_ip is None else room

    def conflicts(self, ranges: Sequence[Range], *, outside: bool) -> Iterator[tuple[str, str]]:
        """Yield why these addresses cannot be reserved, and the fix.

        ``outside``: they must be outside the allocation pools, because nothing else keeps Neutron from assigning them.
        """
        whole = Range.of(self.cidr)
        for each in ranges:
            if each.first not in whole or each.last not in whole:
                yield f"{each} is outside {self.cidr} of subnet {self.name}", "choose addresses inside that subnet"
                continue
            yield from self.special_in([each])
            if outside:
                for what in self.assignable([each]):
                    yield what, "shrink the allocation pools, or set reserve: ports"
        if self.computed and not outside:
            what = f"subnet {self.name} derives addresses from MAC addresses, so ports cannot reserve them"
            yield what, "set reserve: outside"

    def special_in(self, ranges: Sequence[Range]) -> Iterator[tuple[str, str]]:
        """Yield the addresses of ranges that no port can have, and the fix."""
        for address, whose, fix in self._special():
            if any(address in each for each in ranges):
                yield f"{address} is {whose} of subnet {self.name}", fix

    def assignable(self, ranges: Sequence[Range]) -> Iterator[str]:
        """Yield the parts of ranges that Neutron may assign to any port."""
        for each in ranges if not self.computed else ():
            for pool in self.pools:
                if both := each.overlap(pool):
                    yield f"{both} is in the allocation pool {pool} of subnet {self.name}, so any port may get it"

    def _special(self) -> Iterator[tuple[Ip, str, str]]:
        fix = "remove it from the pool"
        if self.gateway:
            own = ", or set gateway_ip of the subnet" if self.is_default_gateway else ""
            yield self.gateway, "the gateway", fix + own
        if self.cidr.num_addresses > 2:
            if self.cidr[0] != self.gateway:  # which Neutron makes the gateway of IPv6
                yield self.cidr[0], "the network's own address", fix
            if self.cidr.version == 4:
                yield self.cidr[-1], "the broadcast address", fix
