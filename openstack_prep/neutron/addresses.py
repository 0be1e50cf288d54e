"""Types of addresses and networks, and which network contains another one."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Block = ipaddress.IPv4Network | ipaddress.IPv6Network


def covers(outer: Block, inner: Block) -> bool:
    """Whether a network contains another one of the same IP version."""
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]
