"""A subnet's allocation pools, as addresses and as options of ``openstack subnet set``."""

from __future__ import annotations

from collections.abc import Iterable

from openstack_prep.base.ranges import Ip, Range
from openstack_prep.resources.lists.neutron_records import SubnetRecord


def pools(subnet: SubnetRecord) -> list[Range]:
    return list(map(Range.read, subnet.allocation_pools))


def pools_beside(subnet: SubnetRecord, kept_out: Iterable[Ip]) -> tuple[int, list[str]]:
    """Return the client's options that add all free ranges to a subnet's allocation pools, and how many addresses.

    The gateway, the addresses to keep out, and network and broadcast address of IPv4 are no part of them.
    """
    block = subnet.block
    first, last = int(block.network_address) + 1, int(block.broadcast_address) - (block.version == 4)
    gateway = [subnet.gateway] if subnet.gateway else []
    apart = {int(each) for each in [*gateway, *kept_out] if each.version == block.version}
    taken = sorted([*((int(pool.first), int(pool.last)) for pool in pools(subnet)), *((each, each) for each in apart)])
    count, words, start = 0, [], first
    for low, high in [*taken, (last + 1, last + 1)]:
        if start < low:
            address = type(block.network_address)
            words += ["--allocation-pool", f"start={address(start)},end={address(low - 1)}"]
            count += low - start
        start = max(start, high + 1)
    return count, words


def pools_without(subnet: SubnetRecord, kept_out: Iterable[Ip]) -> list[str]:
    """Return the options of the client that exclude addresses from a subnet's allocation pools."""
    words = ["--no-allocation-pool"]
    for pool in pools(subnet):
        start, end, address = int(pool.first), int(pool.last), type(pool.first)
        inside = sorted({int(each) for each in kept_out if each.version == pool.version and start <= int(each) <= end})
        for before, after in zip([start - 1, *inside], [*inside, end + 1], strict=True):
            if before + 1 < after:
                words += ["--allocation-pool", f"start={address(before + 1)},end={address(after - 1)}"]
    return words
