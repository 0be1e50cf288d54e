"""A subnet's allocation pools, in the API's answers and as options of ``openstack subnet set``."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from openstack_prep.base.ranges import Ip
from openstack_prep.base.raw import Raw


def pools(subnet: Raw) -> list[tuple[Ip, Ip]]:
    """Return the first and last address of each of a subnet's allocation pools."""
    ends = ((each["start"], each["end"]) for each in subnet["allocation_pools"])
    return [(ipaddress.ip_address(first), ipaddress.ip_address(last)) for first, last in ends]


def pools_beside(subnet: Raw, kept_out: Iterable[Ip]) -> tuple[int, list[str]]:
    """Return the client's options that add all free ranges to a subnet's allocation pools, and how many addresses.

    The gateway, the addresses to keep out, and network and broadcast address of IPv4 are no part of them.
    """
    block = ipaddress.ip_network(subnet["cidr"])
    first, last = int(block.network_address) + 1, int(block.broadcast_address) - (block.version == 4)
    gateway = [ipaddress.ip_address(subnet["gateway_ip"])] if subnet["gateway_ip"] else []
    apart = {int(each) for each in [*gateway, *kept_out] if each.version == block.version}
    taken = sorted([*((int(a), int(b)) for a, b in pools(subnet)), *((each, each) for each in apart)])
    count, words, start = 0, [], first
    for low, high in [*taken, (last + 1, last + 1)]:
        if start < low:
            address = type(block.network_address)
            words += ["--allocation-pool", f"start={address(start)},end={address(low - 1)}"]
            count += low - start
        start = max(start, high + 1)
    return count, words


def pools_without(subnet: Raw, kept_out: Iterable[Ip]) -> list[str]:
    """Return the options of the client that exclude addresses from a subnet's allocation pools."""
    words = ["--no-allocation-pool"]
    for first, last in pools(subnet):
        start, end = int(first), int(last)
        inside = sorted({int(each) for each in kept_out if each.version == first.version and start <= int(each) <= end})
        for before, after in zip([start - 1, *inside], [*inside, end + 1], strict=True):
            if before + 1 < after:
                words += ["--allocation-pool", f"start={type(first)(before + 1)},end={type(first)(after - 1)}"]
    return words
