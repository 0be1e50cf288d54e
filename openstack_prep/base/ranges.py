"""Ranges of addresses, IPv4 and IPv6: pure arithmetic, and their type in a spec.

A range is written as first-last, as a network in CIDR notation, or as one address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from openstack_prep.base.fields import NOT_UNICAST, Reads
from openstack_prep.base.invalid import InvalidValue

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
Net = ipaddress.IPv4Network | ipaddress.IPv6Network

_FORMS = "use one such as 10.0.0.200-10.0.0.219 or 10.0.0.192/28"


@dataclass(frozen=True, slots=True)
class Range:
    """All addresses from the first to the last, of one IP version."""

    first: Ip
    last: Ip

    @classmethod
    def read(cls, text: str) -> Range:
        """Return the range that a text describes; raises InvalidValue."""
        try:
            if "%" in text:  # a zone is only valid on one machine
                raise ValueError("it must not have a zone")
            if "/" in text:
                return cls.of(ipaddress.ip_network(text.strip()))
            first, *rest = (ipaddress.ip_address(part.strip()) for part in text.split("-"))
            (last,) = rest or (first,)
        except ValueError as error:
            why = f" ({error})" if "host bits" in str(error) else ""
            raise InvalidValue(f"is not a range of addresses{why}", _FORMS) from None
        if first.version != last.version:
            raise InvalidValue("mixes IPv4 and IPv6", "use addresses of one version")
        if int(first) > int(last):
            raise InvalidValue("ends before it begins", "write the lower address first")
        return cls(first, last)

    @classmethod
    def of(cls, network: Net) -> Range:
        """Return the range of a whole network, including its first and last address."""
        return cls(network[0], network[-1])

    @property
    def version(self) -> int:
        return self.first.version

    @property
    def count(self) -> int:
        """The number of addresses."""
        return int(self.last) - int(self.first) + 1

    @property
    def networks(self) -> list[Net]:
        """The fewest networks that contain exactly these addresses."""
        return list(ipaddress.summarize_address_range(self.first, self.last))

    def __contains__(self, address: Ip) -> bool:
        return address.version == self.version and int(self.first) <= int(address) <= int(self.last)

    def __iter__(self) -> Iterator[Ip]:
        make = type(self.first)
        return (make(number) for number in range(int(self.first), int(self.last) + 1))

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def overlap(self, other: Range) -> Range | None:
        """Return the addresses that both ranges contain."""
        if self.version != other.version:
            return None
        first, last = max(self.first, other.first, key=int), min(self.last, other.last, key=int)
        return Range(first, last) if int(first) <= int(last) else None


MULTICAST = {4: Range.of(ipaddress.ip_network("224.0.0.0/4")), 6: Range.of(ipaddress.ip_network("ff00::/8"))}
"""All multicast addresses, by IP version."""


def read(texts: Iterable[str]) -> list[Range]:
    """Return the ranges that texts describe; raises ValueError."""
    return [Range.read(text) for text in texts]


def blocks(ranges: Iterable[Range]) -> list[str]:
    """Return the fewest networks that cover some ranges, lowest first; a network with one address as that address.

    IPv4 comes before IPv6.
    """
    found: list[Net] = []
    each = [network for one in ranges for network in one.networks]
    for version in (4, 6):
        found += ipaddress.collapse_addresses(network for network in each if network.version == version)  # type: ignore[type-var]
    return [str(network[0] if network.num_addresses == 1 else network) for network in found]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return the fewest ranges that contain the same addresses, lowest first; IPv4 comes before IPv6."""
    found: list[Range] = []
    for each in sorted(ranges, key=lambda one: (one.version, int(one.first))):
        last = found[-1] if found else None
        if last is not None and last.version == each.version and int(each.first) <= int(last.last) + 1:
            found[-1] = Range(last.first, max(last.last, each.last, key=int))
        else:
            found.append(each)
    return found


def without(ranges: Iterable[Range], holes: Iterable[Range]) -> Iterator[Range]:
    """Yield the parts of ranges that are in no hole, lowest first; IPv4 comes before IPv6."""
    gone = merged(holes)
    for each in merged(ranges):
        start, end, make = int(each.first), int(each.last), type(each.first)
        for hole in filter(None, map(each.overlap, gone)):
            if start < int(hole.first):
                yield Range(make(start), make(int(hole.first) - 1))
            start = int(hole.last) + 1
        if start <= end:
            yield Range(make(start), make(end))


def overlaps(ranges: Iterable[Range]) -> Iterator[tuple[Range, Range, Range]]:
    """Yield each two ranges that overlap, and the addresses that they share."""
    for one, other in combinations(ranges, 2):
        if both := one.overlap(other):
            yield one, other, both


def address_range(value: object) -> object:
    """Read a range in any of its forms; a network is kept as one."""
    if not isinstance(value, str):
        return value
    found = Range.read(value)
    if found.first.is_multicast and found.last.is_multicast:
        raise InvalidValue(*NOT_UNICAST)
    return str(found.networks[0]) if "/" in value and found.count > 1 else str(found)


AddressRange = Annotated[str, Reads(address_range)]
