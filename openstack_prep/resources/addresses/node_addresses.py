"""Addresses that nodes answer for besides their own: whether Neutron lets them pass, and what else has them.

Source: Neutron 29.0.0, plugins/ml2/drivers/ovn/mech_driver/ovsdb/ovn_client.py, _get_port_options (a port may send from
its fixed addresses and from those of its pairs, unless port security is off), and
agent/linux/openvswitch_firewall/firewall.py (the same for the Open vSwitch agent).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base import ranges
from openstack_prep.base.ranges import Range
from openstack_prep.core.model import FromContext, Resource
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet

Finding = tuple[str, str]
"""What is wrong, and the fix."""
OTHERS = "choose other addresses"


@dataclass(frozen=True, slots=True)
class HeldRange:
    """A range that a floating IP, an API or another pool has."""

    range: Range
    shown: str
    """The holder, for messages, such as ``floating_ip/api``."""


@dataclass(frozen=True)
class DeclaredAddresses(FromContext):
    """What a spec declares about the addresses of one project."""

    networks: tuple[Network, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    pools: tuple[AddressPool, ...] = ()
    pairs: tuple[AddressPairs, ...] = ()
    ports: tuple[Port, ...] = ()
    floating_ips: tuple[FloatingIP, ...] = ()

    @classmethod
    def of(cls, resources: Iterable[Resource], owner: InProject) -> DeclaredAddresses:
        """Return what the resources of a spec declare in the project of ``owner``."""
        mine = owner.of_project(resource for resource in resources if isinstance(resource, InProject))
        return cls(
            networks=tuple(each for each in mine if isinstance(each, Network)),
            subnets=tuple(each for each in mine if isinstance(each, Subnet)),
            pools=tuple(each for each in mine if isinstance(each, AddressPool)),
            pairs=tuple(each for each in mine if isinstance(each, AddressPairs)),
            ports=tuple(port for port in mine if isinstance(port, Port)),
            floating_ips=tuple(floating_ip for floating_ip in mine if isinstance(floating_ip, FloatingIP)),
        )

    # --- subnets --------------------------------------------------------------------------

    def network_of(self, subnet: str | None) -> str | None:
        """Return the network of a declared subnet."""
        return next((each.network for each in self.subnets if each.name == subnet), None)

    def subnets_of(self, network: str | None) -> list[Subnet]:
        """Return the declared subnets of a network; without one, all of them."""
        return [each for each in self.subnets if network is None or each.network == network]

    def rooms(self, network: str | None, *, for_plan: bool) -> list[Room]:
        """Return what is certain of the declared subnets of a network."""
        found = (Room.declared(each, for_plan=for_plan) for each in self.subnets_of(network))
        return [room for room in found if room]

    def is_unfiltered(self, network: str | None) -> bool:
        """Whether the spec turns port security off on a network: ports there may send from any address."""
        return any(each.name == network and each.port_security_enabled is False for each in self.networks)

    # --- what nodes may send from ---------------------------------------------------------

    def allowed(self, network: str | None, selects: Callable[[AddressPairs], bool]) -> list[Range]:
        """Return the addresses that the selected pairs allow on ports of a network with the own MAC address of each."""
        found: list[Range] = []
        for pairs in self.pairs:
            other = network is not None and pairs.network not in (None, network)
            if pairs.mac_address is not None or other or not selects(pairs):
                continue
            found += ranges.read(pairs.addresses or ())
            for pool in (each for each in self.pools if each.name in pairs.pools):
                of_pool = self.network_of(pool.subnet)
                if pairs.network or not (network and of_pool) or of_pool == network:  # as AddressPairs applies them
                    found += pool.ranges
        return found

    def allowed_on_ports(self) -> list[Range]:
        """Return the addresses that declared ports allow by themselves."""
        pairs = (pair for port in self.ports for pair in port.allowed_address_pairs or ())
        return ranges.read(pair.address for pair in pairs if pair.mac_address is None)

    # --- what else has an address ---------------------------------------------------------

    def reserved(self, subnet: str) -> list[Range]:
        """Return the addresses of a subnet that declared ports keep Neutron from assigning to others."""
        pools = (each for each in self.pools if each.reserve == "ports" and each.subnet == subnet)
        fixed = (each.address for port in self.ports for each in port.fixed_ips or ())
        return [*(one for pool in pools for one in pool.ranges), *ranges.read(filter(None, fixed))]

    def holders(self) -> Iterator[HeldRange]:
        """Yield the addresses of floating IPs."""
        for floating_ip in self.floating_ips:
            if floating_ip.address:
                yield HeldRange(Range.read(floating_ip.address), str(floating_ip.key))


def without_pairs(
    served: Iterable[Range], rooms: Iterable[Room], allowed: Sequence[Range]
) -> Iterator[tuple[Range, Room]]:
    """Yield the parts of ranges that are in a subnet, and that no pair allows, each with the subnet."""
    for room in rooms:
        inside = filter(None, (each.overlap(Range.of(room.cidr)) for each in served))
        for part in ranges.without(inside, allowed):
            yield part, room


def conflicts(served: Sequence[Range], rooms: Iterable[Room], declared: DeclaredAddresses) -> Iterator[Finding]:
    """Yield the addresses that a subnet keeps for itself, or may assign to any port."""
    for room in rooms:
        inside = [both for each in served if (both := each.overlap(Range.of(room.cidr)))]
        yield from room.special_in(inside)
        for what in room.assignable(list(ranges.without(inside, declared.reserved(room.name)))):
            yield what, f"{OTHERS}, or reserve them with address_pools"


def held_by(served: Iterable[Range], holders: Iterable[HeldRange]) -> Iterator[Finding]:
    """Yield the addresses that something else has."""
    known = list(holders)
    for each in served:
        for holder in known:
            if both := each.overlap(holder.range):
                yield f"{both} belongs to {holder.shown}", OTHERS
