"""Multicast: no packet comes from such an address, so no machine has one, and no address pair of one allows anything.

Sources: RFC 1112, section 7.2, and RFC 4291, section 2.7 (never a source address); IEEE 802.3, section 3.2.3 (the group
bit of a MAC address). Neutron refuses address pairs that overlap multicast since 2026.2 (29.0.0, extension
aap-reject-multicast; neutron-lib 5.0.1, api/validators/allowedaddresspairs.py and api/validators/__init__.py,
validate_subnet_not_multicast); pairs that were added before remain, and then no update that keeps them succeeds.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Annotated

from openstack_prep.base.fields import NOT_UNICAST, Reads, block, mac
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import MULTICAST, Range, address_range, without

REJECTING = "aap-reject-multicast"
"""The extension of Neutron that refuses address pairs which overlap multicast."""
_EXEMPT = ipaddress.ip_network("0.0.0.0/0")
"""The only network around multicast that Neutron accepts nevertheless."""


def overlaps_multicast(address: str) -> bool:
    """Whether Neutron with the extension refuses a pair because of its address or network."""
    network = ipaddress.ip_network(address, strict=False)
    return network != _EXEMPT and Range.of(network).overlap(MULTICAST[network.version]) is not None


def is_multicast_mac(address: str) -> bool:
    """Whether a MAC address has the group bit."""
    return int(address[:2], 16) % 2 == 1


def is_rejected(address: str, mac_address: str) -> bool:
    """Whether Neutron with the extension refuses an address pair."""
    return overlaps_multicast(address) or is_multicast_mac(mac_address)


def unicast_parts(address: str) -> str:
    """Return the fewest networks that cover the unicast addresses of a network, as text."""
    found = Range.of(ipaddress.ip_network(address))
    parts = [network for part in without([found], [MULTICAST[found.version]]) for network in part.networks]
    return ", ".join(map(str, parts))


def warnings(addresses: Iterable[str]) -> Iterator[str]:
    """Yield a warning per address pair that only a Neutron without the extension accepts."""
    for each in filter(overlaps_multicast, addresses):
        what = f"{each} contains multicast addresses: Neutron since 2026.2 refuses such an address pair"
        yield f"{what}; to allow the rest of it, write {unicast_parts(each)}"


def pair_block(value: object) -> object:
    """Read an address or a network that a port may use."""
    read = block(value)
    if isinstance(read, str):
        address_range(read)
    return read


def pair_mac(value: object) -> object:
    """Read a MAC address that a port may use."""
    read = mac(value)
    if isinstance(read, str) and is_multicast_mac(read):
        raise InvalidValue("is a multicast MAC address, from which no packet comes", "use one whose first byte is even")
    return read


def pool_range(value: object) -> object:
    """Read a range from which machines or Services get addresses."""
    read = address_range(value)
    if isinstance(read, str):
        found = Range.read(read)
        if both := found.overlap(MULTICAST[found.version]):
            raise InvalidValue(f"contains multicast addresses ({both})", NOT_UNICAST[1])
    return read


PairBlock = Annotated[str, Reads(pair_block)]
PairMac = Annotated[str, Reads(pair_mac)]
PoolRange = Annotated[str, Reads(pool_range)]
