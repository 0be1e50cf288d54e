"""Zones as BIND reads them, with serials that only grow.

Sources: RFC 1035, section 5 (master files); RFC 1982 (serials); RFC 3596 (AAAA, ip6.arpa); BIND 9.18, where a
secondary ignores a zone whose serial did not grow.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

TTL = 300
_SOA = re.compile(r"\bSOA\s+\S+\s+\S+\s*\(?\s*(\d+)")


@dataclass(frozen=True)
class DnsRecord:
    """One record of a zone; ``name`` is relative to the zone, ``@`` is the zone itself."""

    name: str
    kind: str
    value: str

    @classmethod
    def address(cls, name: str, address: str) -> DnsRecord:
        """Return the A or AAAA record of an address."""
        return cls(name, "AAAA" if ":" in address else "A", address)

    def __str__(self) -> str:
        return f"{self.name} IN {self.kind} {self.value}"


def zone_text(origin: str, server: str, records: Iterable[DnsRecord], *, serial: int = 0) -> str:
    """Return a zone that the host ``server`` serves; ``origin`` and ``server`` are full names."""
    origin, server = (name.rstrip(".") for name in (origin, server))
    return "\n".join(
        [
            f"$ORIGIN {origin}.",
            f"$TTL {TTL}",
            f"@ IN SOA {server}. hostmaster.{origin}. ( {serial} 3600 600 604800 {TTL} )",
            f"@ IN NS {server}.",
            *map(str, records),
            "",
        ]
    )


# --- serials ------------------------------------------------------------------------------


def serial_of(text: str) -> int:
    """Return the serial of a zone; 0 if the text has none."""
    found = _SOA.search(text)
    return int(found[1]) if found else 0


def next_serial(previous_text: str, new_text: str, today: date) -> int:
    """Return the serial for a new text of a zone, whose own serial does not matter.

    It is the previous one as long as only comments differ. Otherwise it is ``YYYYMMDDnn``, and always higher than the
    previous one in the sense of RFC 1982, even if that is ahead of the calendar.
    """
    previous = serial_of(previous_text)
    if previous and _content(previous_text) == _content(new_text):
        return previous
    return max(int(f"{today:%Y%m%d}00"), previous + 1) % 2**32 or 1


def with_next_serial(previous_text: str, new_text: str, today: date) -> str:
    """Return the new text of a zone with its serial."""
    serial = next_serial(previous_text, new_text, today)
    return _SOA.sub(lambda found: found[0][: found.start(1) - found.start()] + str(serial), new_text, count=1)


def _content(text: str) -> list[str]:
    """Return the lines of a zone without comments, spaces that do not matter, and its serial."""
    lines = (" ".join(line.partition(";")[0].split()) for line in text.splitlines())
    kept = "\n".join(line for line in lines if line and not line.startswith("#"))
    found = _SOA.search(kept)
    return (kept[: found.start(1)] + kept[found.end(1) :] if found else kept).split("\n")


# --- reverse zones ------------------------------------------------------------------------


def reverse_zone(address: str) -> str:
    """Return the reverse zone of an address: the one of its /24, or of its /64 for IPv6."""
    labels = _pointer(address).split(".")
    return ".".join(labels[16 if ":" in address else 1 :])


def reverse_record(address: str, name: str) -> DnsRecord:
    """Return the PTR record of an address within its reverse zone."""
    owner = _pointer(address).removesuffix(f".{reverse_zone(address)}")
    return DnsRecord(owner, "PTR", f"{name.rstrip('.')}.")


def reverse_records(addresses: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[DnsRecord]]]:
    """Yield each reverse zone with the records of its addresses, from pairs of address and name."""
    zones: dict[str, list[DnsRecord]] = {}
    for address, name in sorted(addresses, key=lambda pair: (":" in pair[0], int(ipaddress.ip_address(pair[0])))):
        zones.setdefault(reverse_zone(address), []).append(reverse_record(address, name))
    yield from zones.items()


def _pointer(address: str) -> str:
    return ipaddress.ip_address(address).reverse_pointer
