"""The fixed IPs and address pairs of a port, as a spec declares them, as Neutron stores them, and which it refuses.

Source: Networking API v2.0, "Ports"; Neutron 29.0.0, db/ipam_pluggable_backend.py (_allocate_ips_for_port): a port also
gets an address of each IPv6 subnet whose addresses are derived from MAC addresses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from openstack_prep.base import multicast, shell
from openstack_prep.base.fields import Address, Name, block
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.multicast import PairBlock, PairMac
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Coherent, OwnershipTag
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import AddressPair, FixedIP, PortRecord


@dataclass(frozen=True, kw_only=True)
class PortAddress(Coherent):
    """A fixed IP of a port: an address, or any address of a subnet."""

    subnet: Name | None = None
    """Name of a subnet of the port's network; default: the subnet that contains the address."""
    address: Address | None = None
    """The address; default: one that Neutron chooses."""

    def contradictions(self) -> Iterable[InvalidValue]:
        if self.subnet is None and self.address is None:
            yield InvalidValue("has neither subnet nor address", "set at least one of them")

    def fits(self, address: str, subnet: str) -> bool:
        return self.address in (None, address) and self.subnet in (None, subnet)


@dataclass(frozen=True, kw_only=True)
class PortPair:
    """An address or network that a port may use besides its own."""

    address: PairBlock
    """The address, or a network in CIDR notation."""
    mac_address: PairMac | None = None
    """MAC address of the pair; default: the MAC address of the port."""


def match(
    wanted: Iterable[PortAddress], present: Sequence[FixedIP], names: Mapping[str, str]
) -> tuple[list[tuple[PortAddress, FixedIP | None]], list[FixedIP]]:
    """Return each wanted fixed IP with the present one that fits it, and the remaining ones; ``names`` by subnet id."""
    left, pairs = list(present), []
    for address in sorted(wanted, key=lambda one: one.address is None):  # given addresses choose first
        fitting = (one for one in left if address.fits(one.ip_address, names.get(one.subnet_id, one.subnet_id)))
        found = next(fitting, None)
        if found is not None:
            left.remove(found)
        pairs.append((address, found))
    return pairs, left


def is_derived(address: str, mac_address: str) -> bool:
    """Whether an IPv6 address is derived from a MAC address (modified EUI-64)."""
    given = ipaddress.ip_address(address)
    if given.version == 4:
        return False
    digits = bytes.fromhex(mac_address.replace(":", ""))
    return len(digits) == 6 and given.packed[8:] == bytes([digits[0] ^ 2, *digits[1:3], 0xFF, 0xFE, *digits[3:]])


def pairs_of(port: PortRecord) -> Iterator[PortPair]:
    """Yield the pairs of a port as a spec would declare them: without the MAC address if it is the port's own."""
    for allowed_address_pair in port.allowed_address_pairs:
        mac = allowed_address_pair.mac_address.lower()
        yield PortPair(
            address=str(block(allowed_address_pair.ip_address)),
            mac_address=None if mac == port.mac_address.lower() else mac,
        )


def recorded(port: PortRecord) -> frozenset[str]:
    """Return the addresses of pairs that tags of the port record: address_pairs of a spec manage these."""
    tags = (tag for tag in port.tags if OwnershipTag.is_tag(tag))
    return frozenset(tag.split("~")[1].replace("_", "/") for tag in tags if "~" in tag)


def specs_of(address: str, port: PortRecord) -> list[str]:
    """Return the names of the specs whose address_pairs manage the pairs of a port with an address or network."""
    tags = [tag.split("~") for tag in port.tags if OwnershipTag.is_tag(tag) and "~" in tag]
    wanted = str(block(address)).replace("/", "_")
    return OwnershipTag.specs_in(dict.fromkeys(tag[0] for tag in tags if tag[1] == wanted))


# --- how many pairs a port may have ----------------------------------------------------------

USUAL_PAIRS = 10
"""The default of Neutron's max_allowed_address_pair (Neutron 29.0.0, conf/extensions/allowedaddresspairs.py).

No request shows the value of a cloud; a port that has more pairs shows that it is higher.
"""


def unchecked_pairs(number: int, ports: Iterable[PortRecord]) -> Iterator[str]:
    """Yield that a port would have more pairs than Neutron allows by default, and than any of these ports has."""
    if number > max([USUAL_PAIRS, *(len(port.allowed_address_pairs) for port in ports)]):
        yield f"{number} address pairs of one port (max_allowed_address_pair is {USUAL_PAIRS} by default)"


# --- multicast -------------------------------------------------------------------------------


def _rejects_multicast(run: CloudRun) -> bool:
    """Whether Neutron refuses address pairs that overlap multicast."""
    return multicast.REJECTING in queries.extensions(run)


def multicast_mistakes(run: CloudRun, addresses: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the addresses of pairs if Neutron rejects multicast, with the fix."""
    found = sorted(filter(multicast.overlaps_multicast, addresses))
    for each in found if found and _rejects_multicast(run) else ():
        what = f"{each} contains multicast addresses, and this cloud's Neutron refuses such an address pair"
        yield what, f"write the rest of it: {multicast.unicast_parts(each)}"


def multicast_obstacle(run: CloudRun, port: PortRecord, staying: Iterable[AddressPair]) -> tuple[str, str] | None:
    """Return why Neutron would refuse to update a port's pairs, with the fix; None if it would not.

    Each update sends all pairs of a port, also those that others have added before Neutron rejected multicast.
    """
    rejected = [pair for pair in staying if multicast.is_rejected(pair.ip_address, pair.mac_address)]
    if not rejected or not _rejects_multicast(run):
        return None
    shown = []
    for pair in rejected:
        specs = specs_of(pair.ip_address, port)
        whose = f"of spec {', '.join(specs)}" if specs else "added without openstack-prep"
        shown.append(f"{pair.ip_address} {pair.mac_address} ({whose})")
    words = [
        word
        for pair in rejected
        for word in ("--allowed-address", f"ip-address={pair.ip_address},mac-address={pair.mac_address}")
    ]
    what = f"port {port.name} {port.id} has address pairs that overlap multicast, {', '.join(shown)}; "
    what += "this cloud's Neutron refuses every update of pairs that keeps them"
    return what, f"remove them: openstack port unset {shell.join(words)} {shell.quote(port.id)}"
