"""MAC addresses for interfaces that no OpenStack manages: locally administered, stable per name, never those of others.

Sources: IEEE 802c-2017 (of locally administered addresses, those whose second digit is 2 are for administrators);
kubemacpool v0.51.1, config/release/kubemacpool.yaml (RANGE_START, RANGE_END); OVN-Kubernetes, go-controller/pkg/util/
net.go (IPAddrToHWAddr: 0a:58, then the IPv4 address); Neutron, neutron/conf/common.py (base_mac fa:16:3e:00:00:00);
QEMU and libvirt (52:54:00); Docker, libnetwork netutils/utils_linux.go (genMAC: 02:42).
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from openstack_prep.base.fields import Reads, mac
from openstack_prep.base.invalid import InvalidValue

_FORM = "use one such as d2:00:00:00:00:00-d2:ff:ff:ff:ff:ff"


@dataclass(frozen=True, slots=True)
class MacRange:
    """All MAC addresses from the first to the last."""

    first: int
    last: int

    @classmethod
    def read(cls, text: str) -> MacRange:
        """Return the range that a text describes; raises InvalidValue."""
        try:
            first, last = (number_of(str(mac(part.strip()))) for part in text.split("-"))
        except ValueError:
            raise InvalidValue("is not a range of MAC addresses", _FORM) from None
        if first > last:
            raise InvalidValue("ends before it begins", "write the lower MAC address first")
        return cls(first, last)

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def overlaps(self, other: MacRange) -> bool:
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{text_of(self.first)}-{text_of(self.last)}"


def number_of(text: str) -> int:
    return int(text.replace(":", ""), 16)


def text_of(number: int) -> str:
    digits = f"{number:012x}"
    return ":".join(digits[each : each + 2] for each in range(0, 12, 2))


def _prefix(text: str) -> MacRange:
    missing = 6 - len(text.split(":"))
    return MacRange(number_of(text + ":00" * missing), number_of(text + ":ff" * missing))


DEFAULT_RANGE = "d2:00:00:00:00:00-d2:ff:ff:ff:ff:ff"
KUBEMACPOOL = "02:00:00:00:00:00-02:ff:ff:ff:ff:ff"
RESERVED = {
    "OVN-Kubernetes": _prefix("0a:58"),
    "Neutron (base_mac)": _prefix("fa:16:3e"),
    "QEMU and libvirt": _prefix("52:54:00"),
    "Docker": _prefix("02:42"),
}
"""Who else assigns locally administered MAC addresses, each without asking the others."""


def mac_range(value: object) -> object:
    """Read a range of MAC addresses, first-last."""
    return str(MacRange.read(value)) if isinstance(value, str) else value


def mac_range_or_none(value: object) -> object:
    """Read a range of MAC addresses, or false for none."""
    if value is not False and not isinstance(value, str):
        raise InvalidValue("is not a range of MAC addresses", f"{_FORM}, or false for none")
    return mac_range(value)


MacRangeText = Annotated[str, Reads(mac_range)]
MacRangeOrNone = Annotated[str | Literal[False], Reads(mac_range_or_none)]


def contradictions(macs: str, kubemacpool: str) -> Iterator[InvalidValue]:
    """Yield why MAC addresses cannot be taken from a range."""
    wanted, pool = MacRange.read(macs), MacRange.read(kubemacpool)
    octets = {each >> 40 for each in (wanted.first, wanted.last)}
    if any(octet & 0b11 != 0b10 for octet in octets) or len(octets) > 1:
        what = f"macs {macs} are not all locally administered unicast addresses with the same first octet"
        yield InvalidValue(what, f"the second digit is 2, 6, a or e; {_FORM}")
    if wanted.overlaps(pool):
        yield InvalidValue(f"macs {macs} overlap the range of kubemacpool {kubemacpool}", "choose another range")
    for who, reserved in RESERVED.items():
        if wanted.overlaps(reserved):
            yield InvalidValue(f"macs {macs} overlap {reserved} of {who}", "choose another range")


def refuse(mac: str, kubemacpool: str) -> str:
    """Return why an interface on a network with kubemacpool cannot have a MAC address; empty if it can."""
    if number_of(mac) >> 40 & 1:
        return "is a multicast address"
    return f"is in the range of kubemacpool {kubemacpool}" if number_of(mac) in MacRange.read(kubemacpool) else ""


def derive(macs: str, seed: str, taken: Container[str]) -> str | None:
    """Return the MAC address for a seed: the same each time, or the next one that is not taken; None if all are."""
    within = MacRange.read(macs)
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()) % within.size
    for step in range(within.size):
        found = text_of(within.first + (start + step) % within.size)
        if found not in taken:
            return found
    return None
