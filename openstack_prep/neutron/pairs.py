"""Which addresses a port may send from.

Source: Networking API v2.0, "Allowed address pairs".  A pair names an IP address or network and a MAC address, by
default the port's own.  Port security drops a packet unless its IP address and its MAC address belong to one pair,
so a pair with another MAC address allows nothing that the node sends with its own.  keepalived, MetalLB and Cilium
all send with the node's own MAC address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from openstack_prep.neutron.addresses import Block, covers
from openstack_prep.resources.lists.neutron_records import PortRecord


def allows(port: PortRecord, wanted: Block) -> bool:
    """Whether a port may send from every address of a network with its own MAC address."""
    return wanted in allowed_parts(port, wanted)


def allowed_parts(port: PortRecord, wanted: Block) -> list[Block]:
    """Return the parts of a network from which a port may send with its own MAC address; perhaps the whole network."""
    if not port.port_security_enabled:
        return [wanted]
    pairs: list[Any] = [each for each in _allowed(port) if each.version == wanted.version and each.overlaps(wanted)]
    merged: list[Block] = list(ipaddress.collapse_addresses(pairs))
    return [wanted if covers(each, wanted) else each for each in merged]


def _allowed(port: PortRecord) -> Iterator[Block]:
    for address in port.addresses:
        yield ipaddress.ip_network(address)
    for pair in port.allowed_address_pairs:
        if pair.mac_address == port.mac_address:
            yield ipaddress.ip_network(pair.ip_address, strict=False)
