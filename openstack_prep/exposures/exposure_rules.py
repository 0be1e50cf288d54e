"""What is wrong with an exposure: its pool, its address, and others that have the same address or names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from typing import TypeAlias

from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.ranges import Range
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.exposures.neighbours import ExposureFields, ExposureNeighbours, Pool, held, holders
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.pool import key_of
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import SubnetRecord
from openstack_prep.resources.network.reserved_ports import OWNER, addresses_of, shown
from openstack_prep.resources.network.subnet import Subnet

Finding: TypeAlias = tuple[str, str, str]
"""What is wrong, the fix, and the code; an empty code is that of the plan."""
WITHOUT_ADDRESS = ("node-port", "floating-ip")
"""Ways that need no address of their own: a Service on the nodes' addresses, and a port that exists already."""
OF_A_PORT = ("floating-ip", "service-host", "node-port")
"""Ways in which a machine's own address answers."""


def findings(
    run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours, held_address: str | None
) -> Iterator[Finding]:
    """Yield everything that is wrong; ``held_address`` is the address that the exposure holds by now."""
    yield from _others(run, exposure, neighbours, exposure.address or held_address)
    if exposure.pool is None:
        yield from _without_pool(run, exposure, neighbours)
        return
    pools = neighbours.named(exposure.pool)
    if len(pools) > 1:
        kinds = " and ".join(each.kind for each in pools)
        yield f"pool {exposure.pool} is the name of an {kinds}", "rename one of them", Code.SPEC_CONTRADICTION
        return
    for pool in pools:
        yield from _in_file(run, exposure, pool) if isinstance(pool, PoolFile) else _in_neutron(run, exposure, pool)
        if _registered(pool):
            yield from _room(run, exposure, neighbours, pool)


def _registered(pool: Pool) -> bool:
    return isinstance(pool, PoolFile) or pool.reserve == "ports"


# --- pools --------------------------------------------------------------------------------


def _in_file(run: CloudRun, exposure: ExposureFields, pool: PoolFile) -> Iterator[Finding]:
    if exposure.how == "bridge" and not pool.macs:
        yield f"pool_file/{pool.name} has no MAC addresses (macs: false)", "set macs to a range", ""
    if exposure.address is None:
        return
    if why := pool.settings.refuse(exposure.address):
        yield f"{exposure.address} {why} in pool_file/{pool.name}", "choose another address", ""
    yield from _taken(run, exposure, pool, key_of(run.ownership.spec, exposure.name))


def _in_neutron(run: CloudRun, exposure: ExposureFields, pool: AddressPool) -> Iterator[Finding]:
    if pool.reserve == "outside":
        if exposure.address is None:
            fix = "choose one, or set reserve: ports"
            yield f"address is missing: address_pool/{pool.name} (reserve: outside) records no claims", fix, ""
        if exposure.how == "bridge":
            fix = "set reserve: ports, or use a pool file"
            yield f"address_pool/{pool.name} (reserve: outside) records no MAC addresses", fix, ""
    if exposure.address is None:
        return
    yield from _taken(run, exposure, pool, f"exposure/{exposure.name}")


def _taken(run: CloudRun, exposure: ExposureFields, pool: Pool, own: str) -> Iterator[Finding]:
    holder = holders(run, pool).get(exposure.address or "")
    if holder and holder != own:
        what = f"{exposure.address} of {pool.kind}/{pool.name} is claimed by {holder}"
        yield what, "choose another address, or release it there in a separate apply", Code.ADDRESS_IN_USE


def _room(run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours, pool: Pool) -> Iterator[Finding]:
    """Yield that a pool has too few addresses, once for all exposures of the pool."""
    wanting = [each for each in neighbours.exposures if each.pool == pool.name]
    if wanting and (wanting[0].name, wanting[0].owner) != (exposure.name, exposure.owner):
        return
    mine = held(run, pool)
    explicit = [each.address for each in wanting if each.address]
    more = [each for each in wanting if each.address is None and each.name not in mine]
    taken = {*holders(run, pool), *explicit}
    if isinstance(pool, PoolFile):
        free = sum(1 for _, _ in zip(pool.settings.free(taken), more, strict=False))
    else:
        free = sum(each.count for each in ranges.without(pool.ranges, ranges.read(taken)))
    if free < len(more):
        what = f"{pool.kind}/{pool.name} has {free} free addresses, but {len(more)} exposures need one"
        yield what, "add addresses to the pool", Code.ADDRESS_IN_USE


# --- addresses that are given -------------------------------------------------------------


def _without_pool(run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours) -> Iterator[Finding]:
    if exposure.how == "bridge":
        yield "how: bridge needs a pool, which reserves a MAC address", "set pool", ""
    elif exposure.address is None and exposure.how not in WITHOUT_ADDRESS:
        yield f"how: {exposure.how} needs an address", "set pool, or address", ""
    for pool in neighbours.pools:
        if exposure.address and _registered(pool) and _contains(pool, exposure.address):
            what = f"{exposure.address} belongs to {pool.kind}/{pool.name}, which may give it to another exposure"
            yield what, f"set pool: {pool.name}", ""
            return
    if exposure.address and exposure.how not in OF_A_PORT:
        yield from _in_subnets(run, exposure, neighbours, exposure.address)


def _contains(pool: Pool, address: str) -> bool:
    if isinstance(pool, PoolFile):
        return any(ip_address(address) in each for each in ranges.read(pool.addresses))
    return pool.has(ip_address(address))


def _in_subnets(
    run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours, address: str
) -> Iterator[Finding]:
    """Yield conflicts with the subnets of the project; an address outside of all of them is of another network."""
    for room in _rooms(run, exposure, neighbours):
        if ip_address(address) not in room.cidr:
            continue
        listed = queries.ports_in_subnet(run, room.id) if room.id else ()
        port = next((each for each in listed if address in addresses_of(each, room.id)), None)
        if port is not None and port.device_owner not in ("", OWNER):
            what = f"{address} is used by {shown(port)} ({port.device_owner})"
            yield what, "choose another address", Code.ADDRESS_IN_USE
        whole = room if port is None else replace(room, pools=())  # the port keeps Neutron from assigning it
        for what, _ in whole.conflicts([Range.read(address)], outside=True):
            yield what, "choose another address, or reserve it with address_pools", ""


def _rooms(run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours) -> Iterator[Room]:
    declared = {each.name: each for each in neighbours.subnets}
    project_id = run.find_project_id(exposure.owner)
    records: dict[str, SubnetRecord] = {}
    if project_id:
        records = {each.name: each for each in Subnet.listing(run, project_id)}
    for name in {**declared, **records}:
        room = Room.of(name, records.get(name), declared.get(name))
        if room is not None:
            yield room


# --- other exposures ----------------------------------------------------------------------


def _others(
    run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours, address: str | None
) -> Iterator[Finding]:
    """Yield what earlier exposures of the spec have as well."""
    names = [(each.name, each.owner) for each in neighbours.exposures]
    place = names.index((exposure.name, exposure.owner)) if (exposure.name, exposure.owner) in names else 0
    fix = "choose distinct ones"
    for other in neighbours.exposures[:place]:
        same = {each.key for each in exposure.ports} & {each.key for each in other.ports}
        if exposure.address and exposure.address == other.address:
            if exposure.pool and exposure.pool == other.pool and any(map(_registered, neighbours.named(exposure.pool))):
                what = f"{address} is also the address of exposure/{other.name}; a pool gives it to one of them"
                yield what, "list all ports in one exposure, or give addresses without a pool", Code.ADDRESS_IN_USE
            elif same:
                shown_ports = ", ".join(f"{port}/{protocol}" for protocol, port in sorted(same))
                what = f"{address} and port {shown_ports} are also those of exposure/{other.name}"
                yield what, fix, Code.ADDRESS_IN_USE
        elif not _leads_to_the_same(exposure, other) and (both := sorted(set(exposure.names) & set(other.names))):
            yield f"{', '.join(both)} also leads to exposure/{other.name}, at another address", fix, ""
        if exposure.name == other.name and exposure.pool == other.pool and exposure.pool:
            yield f"exposure/{other.name} of another project claims the same name in {exposure.pool}", fix, ""


def _leads_to_the_same(one: ExposureFields, other: ExposureFields) -> bool:
    """Whether the names of two exposures lead to one address: their floating IP, or that of the nodes."""
    if one.floating_ip or other.floating_ip:
        return one.floating_ip == other.floating_ip
    return not any((one.pool, one.address, other.pool, other.address))
