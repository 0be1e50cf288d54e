"""Lines that resolve names: of hosts files and dnsmasq.

Sources: hosts(5), which has no wildcards; dnsmasq(8): ``host-record`` for one name, ``address=/x/`` for x and
all below.
"""

from __future__ import annotations

from collections.abc import Iterable

WILDCARD = "*."


def hosts_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of a hosts file for pairs of address and name, without wildcards."""
    return [f"{address} {name}" for address, name in pairs if not name.startswith(WILDCARD)]


def dnsmasq_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return lines for dnsmasq for pairs of address and name."""
    return [
        f"address=/{name.removeprefix(WILDCARD)}/{address}"
        if name.startswith(WILDCARD)
        else f"host-record={name},{address}"
        for address, name in pairs
    ]
