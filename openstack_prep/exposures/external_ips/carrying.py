"""Which node carries which address, and the routes to it: pure functions."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from openstack_prep.exposures.external_ips.model import ExternalIPNode, ExternalIPs
from openstack_prep.exposures.model import Placed


@dataclass(frozen=True)
class Hop:
    """A static route to one address; several next hops share the requests."""

    address: str
    next_hops: tuple[str, ...]

    @property
    def destination(self) -> str:
        """The address as a network."""
        return str(ipaddress.ip_network(self.address))


def chosen(placed: Iterable[Placed]) -> list[Placed]:
    """Return the exposures that use externalIPs and have an address."""
    return [each for each in placed if each.exposure.how == "external-ip" and each.address]


def addresses(placed: Iterable[Placed]) -> list[str]:
    """Return their addresses, each once, IPv4 first."""
    found = {ipaddress.ip_address(each.address or "") for each in chosen(placed)}
    return [str(each) for each in sorted(found, key=lambda one: (one.version, int(one)))]


def nodes_of(settings: ExternalIPs, address: str) -> list[ExternalIPNode]:
    """Return the nodes that carry an address.

    For one node, each node gets a number from its name and the address, and the highest one carries: a node that comes
    or goes only moves the addresses that it gets or had.
    """
    if settings.carriers == "all":
        return list(settings.nodes)
    return [max(settings.nodes, key=lambda each: hashlib.sha256(f"{address} {each.name}".encode()).digest())]


def carried(settings: ExternalIPs, placed: Iterable[Placed]) -> dict[str, list[str]]:
    """Return the addresses of each node by its name, also of nodes that carry none."""
    found: dict[str, list[str]] = {each.name: [] for each in settings.nodes}
    for address in addresses(placed):
        for node in nodes_of(settings, address):
            found[node.name].append(address)
    return found


def hops(settings: ExternalIPs, placed: Iterable[Placed]) -> Iterator[Hop]:
    """Yield the static routes to all addresses, through the nodes that carry them."""
    for address in addresses(placed):
        found = [each for node in nodes_of(settings, address) for each in node.addresses if _is_like(each, address)]
        yield Hop(address, tuple(found))


def _is_like(one: str, other: str) -> bool:
    return ipaddress.ip_address(one).version == ipaddress.ip_address(other).version
