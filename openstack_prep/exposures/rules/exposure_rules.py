"""What the cloud and the pool files show to be wrong with an exposure: its address is taken, or its pool is full."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from ipaddress import ip_address

from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.ranges import Range
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.exposures.neighbours import (
    ExposureFields,
    ExposureNeighbours,
    Finding,
    Pool,
    held,
    holders,
    is_registered,
)
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.pool import key_of
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import SubnetRecord
from openstack_prep.resources.network.reserved_ports import OWNER, addresses_of, shown
from openstack_prep.resources.network.subnet import Subnet

WITHOUT_ADDRESS = ("node-port", "floating-ip")
"""Ways that need no address of their own: a Service on the nodes' addresses, and a port that exists already."""
OF_A_PORT = ("floating-ip", "service-host", "node-port")
"""Ways in which a machine's own address answers."""


def findings(run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours) -> Iterator[Finding]:
    """Yield what the cloud and the pool files show to be wrong."""
    if exposure.pool is None and exposure.address and exposure.how not in OF_A_PORT:
        yield from _in_subnets(run, exposure, neighbours, exposure.address)
    for pool in neighbours.named(exposure.pool):
        if exposure.address is not None:
            in_file = isinstance(pool, PoolFile)
            own = key_of(run.ownership.spec, exposure.name) if in_file else f"exposure/{exposure.name}"
            yield from _taken(run, exposure, pool, own)
        if is_registered(pool):
            yield from short_pool(exposure, neighbours, pool, held(run, pool), holders(run, pool))


# --- pools --------------------------------------------------------------------------------


def _taken(run: CloudRun, exposure: ExposureFields, pool: Pool, own: str) -> Iterator[Finding]:
    holder = holders(run, pool).get(exposure.address or "")
    if holder and holder != own:
        what = f"{exposure.address} of {pool.kind}/{pool.name} is claimed by {holder}"
        yield what, "choose another address, or release it there in a separate apply", Code.ADDRESS_IN_USE


def short_pool(
    exposure: ExposureFields, neighbours: ExposureNeighbours, pool: Pool, mine: Collection[str], others: Collection[str]
) -> Iterator[Finding]:
    """Yield that a pool has too few addresses, once for all exposures of the pool.

    ``mine`` are the names that hold one already, and ``others`` the addresses that are held.
    """
    wanting = [each for each in neighbours.exposures if each.pool == pool.name]
    if wanting and (wanting[0].name, wanting[0].owner) != (exposure.name, exposure.owner):
        return
    explicit = [each.address for each in wanting if each.address]
    more = [each for each in wanting if each.address is None and each.name not in mine]
    taken = {*others, *explicit}
    if isinstance(pool, PoolFile):
        free = sum(1 for _, _ in zip(pool.settings.free(taken), more, strict=False))
    else:
        free = sum(each.count for each in ranges.without(pool.ranges, ranges.read(taken)))
    if free < len(more):
        what = f"{pool.kind}/{pool.name} has {free} free addresses, but {len(more)} exposures need one"
        yield what, "add addresses to the pool", Code.ADDRESS_IN_USE


# --- addresses that are given -------------------------------------------------------------


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
