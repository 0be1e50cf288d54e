"""What is refused about exposures: by their declarations alone, and beside what exists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from ipaddress import ip_address

from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.ranges import Range
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.exposures.endpoint import Way
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
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.addresses.node_addresses import DeclaredAddresses, conflicts, held_by, without_pairs
from openstack_prep.resources.addresses.stack_addresses import api_holders, extra_addresses
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import SubnetRecord
from openstack_prep.resources.network.port import OWNER, shown
from openstack_prep.resources.network.reserved_ports import addresses_of
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.existing import Existing

# --- exposure ---------------------------------------------------------------------------------


WITHOUT_ADDRESS = ("node-port", "floating-ip")
"""Ways that need no address of their own: a Service on the nodes' addresses, and a port that exists already."""
ON_NODES: tuple[Way, ...] = ("metallb", "cilium", "kube-vip", "external-ip")
"""Ways in which the nodes of a cluster answer for the address, with their own MAC addresses."""
OF_A_PORT = ("floating-ip", "service-host", "node-port")
"""Ways in which a machine's own address answers."""


def exposure_findings(run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours) -> Iterator[Finding]:
    """Yield what the cloud and the pool files show to be wrong."""
    if exposure.pool is None and exposure.address and exposure.how not in OF_A_PORT:
        yield from _exposure_in_subnets(run, exposure, neighbours, exposure.address)
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


def _exposure_in_subnets(
    run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours, address: str
) -> Iterator[Finding]:
    """Yield conflicts with the subnets of the project; an address outside of all of them is of another network."""
    networks = neighbours.networks.get(exposure.cluster)
    of_nodes = {
        run.find_id(exposure.sibling(Existing, network, of="network")) for network in sorted(networks or ())
    } - {None}
    for room in _rooms(run, exposure, neighbours, of_nodes if networks else None):
        if ip_address(address) not in room.cidr:
            continue
        listed = queries.ports_in_subnet(run, room.id) if room.id else ()
        port = next((holder for holder in listed if address in addresses_of(holder, room.id)), None)
        if port is not None and port.device_owner not in ("", OWNER):
            what = f"{address} is used by {shown(port)} ({port.device_owner})"
            yield what, "choose another address", Code.ADDRESS_IN_USE
        whole = room if port is None else replace(room, pools=())  # the port keeps Neutron from assigning it
        for what, _ in whole.conflicts([Range.read(address)], outside=True):
            yield what, "choose another address, or reserve it with address_pools", ""


def _rooms(
    run: CloudRun, exposure: ExposureFields, neighbours: ExposureNeighbours, of_nodes: Collection[str | None] | None
) -> Iterator[Room]:
    """Yield the subnets in the networks of the nodes, given by id; of all networks if nothing says where nodes are."""
    declared = {subnet.name: subnet for subnet in _subnets_of_nodes(exposure, neighbours)}
    project_id = run.find_project_id(exposure.owner)
    records: dict[str, SubnetRecord] = {}
    if project_id:
        found = Subnet.listing(run, project_id)
        records = {subnet.name: subnet for subnet in found if of_nodes is None or subnet.network_id in of_nodes}
    for name in {**declared, **records}:
        room = Room.of(name, records.get(name), declared.get(name))
        if room is not None:
            yield room


def _subnets_of_nodes(exposure: ExposureFields, neighbours: ExposureNeighbours) -> list[Subnet]:
    """Return the declared subnets that the nodes are in; all if nothing says which: others may have the same CIDR."""
    networks = neighbours.networks.get(exposure.cluster)
    return [subnet for subnet in neighbours.subnets if not networks or subnet.network in networks]


# --- declaration ------------------------------------------------------------------------------


def declaration_findings(
    exposure: ExposureFields, neighbours: ExposureNeighbours, *, for_plan: bool
) -> Iterator[Finding]:
    """Yield what is wrong as the spec declares it; no cloud is needed. ``for_plan``: as in Context."""
    yield from _others(exposure, neighbours)
    if exposure.how in (*ON_NODES, "bridge"):
        yield from _beside_nodes(exposure, neighbours, for_plan=for_plan)
    if exposure.pool is None:
        yield from _without_pool(exposure, neighbours, for_plan=for_plan)
        return
    pools = neighbours.named(exposure.pool)
    if len(pools) > 1:
        kinds = " and ".join(each.kind for each in pools)
        yield f"pool {exposure.pool} is the name of an {kinds}", "rename one of them", Code.SPEC_CONTRADICTION
        return
    for pool in pools:
        yield from _in_file(exposure, pool) if isinstance(pool, PoolFile) else _in_neutron(exposure, pool)
        if is_registered(pool):
            yield from short_pool(exposure, neighbours, pool, (), ())


# --- addresses that nodes answer for --------------------------------------------------------


def _beside_nodes(exposure: ExposureFields, neighbours: ExposureNeighbours, *, for_plan: bool) -> Iterator[Finding]:
    """Yield the addresses that the ports of the nodes may not use, and those that something else has.

    Only the networks of the nodes count: others may have the same addresses.
    """
    declared, served = neighbours.addresses, _served(exposure, neighbours)
    networks = neighbours.networks.get(exposure.cluster, frozenset())
    known = exposure.how in ON_NODES and exposure.cluster not in neighbours.undecided
    for part, room in _without_pairs(exposure, neighbours, networks, for_plan=for_plan) if known else ():
        what = f"{part} is in subnet {room.name}, and no address_pairs allow it on nodes: Neutron drops the answers"
        yield what, _pairs_fix(exposure), Code.PAIRS_MISSING
    pools = neighbours.named(exposure.pool)
    reserved = {declared.network_of(pool.subnet) for pool in pools if isinstance(pool, AddressPool)}
    apis = [
        one
        for network in networks.union(filter(None, reserved))
        for one in api_holders(neighbours.stacks, declared, network)
    ]
    for what, fix in held_by(served, [*declared.holders(), *apis]):
        yield what, fix, Code.SPEC_CONTRADICTION
    if any(isinstance(pool, PoolFile) for pool in pools):
        for what, fix in conflicts(served, _rooms_of(declared, networks, for_plan=for_plan), declared):
            yield what, fix, Code.SPEC_CONTRADICTION


def declaration_warnings(exposure: ExposureFields, neighbours: ExposureNeighbours) -> Iterator[str]:
    """Yield the addresses in subnets of the spec that no pairs allow, if nothing says where the nodes are."""
    known = exposure.cluster not in neighbours.clusters or neighbours.networks.get(exposure.cluster)
    if known or exposure.how not in ON_NODES or exposure.cluster in neighbours.undecided:
        return
    networks = {subnet.network for subnet in neighbours.subnets if subnet.network}
    for part, room in _without_pairs(exposure, neighbours, networks, for_plan=False):
        where = f"{part} is in subnet {room.name}, and no address_pairs allow it"
        where += f": if nodes of {exposure.cluster} are there, Neutron drops the answers"
        yield f"{where}; {_pairs_fix(exposure)}"


def _pairs_fix(exposure: ExposureFields) -> str:
    return f"set nodes of exposed_cluster/{exposure.cluster}, which adds the pairs, or declare address_pairs"


def _served(exposure: ExposureFields, neighbours: ExposureNeighbours) -> list[Range]:
    """Return the addresses that an exposure has, or may get from its pool."""
    if exposure.address:
        return [Range.read(exposure.address)]
    found: list[Range] = []
    for pool in neighbours.named(exposure.pool):
        found += pool.claimable() if isinstance(pool, PoolFile) else pool.ranges
    return found


def _rooms_of(declared: DeclaredAddresses, networks: Iterable[str], *, for_plan: bool) -> list[Room]:
    return [room for network in sorted(networks) for room in declared.rooms(network, for_plan=for_plan)]


def _without_pairs(
    exposure: ExposureFields, neighbours: ExposureNeighbours, networks: Iterable[str], *, for_plan: bool
) -> Iterator[tuple[Range, Room]]:
    """Yield the addresses that no pair allows on the nodes in the subnets of networks with port security."""
    declared, cluster = neighbours.addresses, exposure.cluster
    rooms = _rooms_of(
        declared, (network for network in networks if not declared.is_unfiltered(network)), for_plan=for_plan
    )
    allowed = declared.allowed(None, lambda pairs: neighbours.may_select(cluster, pairs))
    allowed += [one for stack in neighbours.stacks_of(cluster) for one in extra_addresses(stack)]
    if not (neighbours.homes.get(cluster) and neighbours.stacks_of(cluster)):  # else Heat creates the nodes' ports
        allowed += declared.allowed_on_ports()
    return without_pairs(_served(exposure, neighbours), rooms, allowed)


# --- its pool -------------------------------------------------------------------------------


def _in_file(exposure: ExposureFields, pool: PoolFile) -> Iterator[Finding]:
    if exposure.how == "bridge" and not pool.macs:
        yield (
            f"pool_file/{pool.name} has no MAC addresses (macs: false)",
            "set macs to a range",
            Code.SPEC_CONTRADICTION,
        )
    if exposure.address and (why := pool.settings.refuse(exposure.address)):
        yield f"{exposure.address} {why} in pool_file/{pool.name}", "choose another address", Code.SPEC_CONTRADICTION


def _in_neutron(exposure: ExposureFields, pool: AddressPool) -> Iterator[Finding]:
    if pool.reserve == "ports":
        return
    if exposure.address is None:
        fix = "choose one, or set reserve: ports"
        yield (
            f"address is missing: address_pool/{pool.name} (reserve: outside) records no claims",
            fix,
            Code.SPEC_CONTRADICTION,
        )
    if exposure.how == "bridge":
        fix = "set reserve: ports, or use a pool file"
        yield f"address_pool/{pool.name} (reserve: outside) records no MAC addresses", fix, Code.SPEC_CONTRADICTION


def _without_pool(exposure: ExposureFields, neighbours: ExposureNeighbours, *, for_plan: bool) -> Iterator[Finding]:
    if exposure.how == "bridge":
        yield "how: bridge needs a pool, which reserves a MAC address", "set pool", Code.SPEC_CONTRADICTION
    elif exposure.address is None and exposure.how not in WITHOUT_ADDRESS:
        yield f"how: {exposure.how} needs an address", "set pool, or address", Code.SPEC_CONTRADICTION
    for pool in neighbours.pools:
        if exposure.address and is_registered(pool) and _contains(pool, exposure.address):
            what = f"{exposure.address} belongs to {pool.kind}/{pool.name}, which may give it to another exposure"
            yield what, f"set pool: {pool.name}", Code.SPEC_CONTRADICTION
            return
    if exposure.address and exposure.how not in OF_A_PORT:
        yield from _declaration_in_subnets(exposure, neighbours, exposure.address, for_plan=for_plan)


def _declaration_in_subnets(
    exposure: ExposureFields, neighbours: ExposureNeighbours, address: str, *, for_plan: bool
) -> Iterator[Finding]:
    """Yield what is wrong with an address in the declared subnets; a port may keep it out of allocation pools."""
    for subnet in _subnets_of_nodes(exposure, neighbours):
        room = Room.declared(subnet, for_plan=for_plan)
        if room is not None and ip_address(address) in room.cidr:
            for what, _ in replace(room, pools=()).conflicts([Range.read(address)], outside=True):
                yield what, "choose another address, or reserve it with address_pools", Code.SPEC_CONTRADICTION


def _contains(pool: Pool, address: str) -> bool:
    if isinstance(pool, PoolFile):
        return any(ip_address(address) in each for each in ranges.read(pool.addresses))
    return pool.has(ip_address(address))


# --- other exposures ------------------------------------------------------------------------


def _others(exposure: ExposureFields, neighbours: ExposureNeighbours) -> Iterator[Finding]:
    """Yield what earlier exposures of the spec have as well."""
    fix = "choose distinct ones"
    for other in neighbours.earlier(exposure):
        same = {port.key for port in exposure.ports} & {port.key for port in other.ports}
        if exposure.address and exposure.address == other.address:
            if (
                exposure.pool
                and exposure.pool == other.pool
                and any(map(is_registered, neighbours.named(exposure.pool)))
            ):
                what = (
                    f"{exposure.address} is also the address of exposure/{other.name}; a pool gives it to one of them"
                )
                yield what, "list all ports in one exposure, or give addresses without a pool", Code.ADDRESS_IN_USE
            elif same:
                ports = ", ".join(f"{port}/{protocol}" for protocol, port in sorted(same))
                what = f"{exposure.address} and port {ports} are also those of exposure/{other.name}"
                yield what, fix, Code.ADDRESS_IN_USE
        elif not _may_share_names(exposure, other, neighbours) and (
            both := sorted(set(exposure.names) & set(other.names))
        ):
            what = f"{', '.join(both)} also leads to exposure/{other.name}, at another address"
            yield what, "choose distinct ones, or an IPv4 and an IPv6 address", Code.SPEC_CONTRADICTION
        if exposure.name == other.name and exposure.pool == other.pool and exposure.pool:
            yield (
                f"exposure/{other.name} of another project claims the same name in {exposure.pool}",
                fix,
                Code.SPEC_CONTRADICTION,
            )


def _may_share_names(one: ExposureFields, other: ExposureFields, neighbours: ExposureNeighbours) -> bool:
    """Whether a name may lead to two exposures: to one address, or to one by its A and to one by its AAAA records.

    Source: RFC 3596, section 2; the two types of records are independent of each other.
    """
    versions = [_versions(exposure, neighbours) for exposure in (one, other)]
    return _leads_to_the_same(one, other) or (all(versions) and versions[0].isdisjoint(versions[1]))


def _versions(exposure: ExposureFields, neighbours: ExposureNeighbours) -> set[int]:
    """Return the IP versions that the names of an exposure may lead to; none if they lead to its nodes."""
    if exposure.floating_ip:
        return {4}
    if exposure.address:
        return {ip_address(exposure.address).version}
    return {each.version for pool in neighbours.named(exposure.pool) for each in ranges.read(pool.addresses)}


def _leads_to_the_same(one: ExposureFields, other: ExposureFields) -> bool:
    """Whether the names of two exposures lead to one address: their floating IP, or that of the nodes."""
    if one.floating_ip or other.floating_ip:
        return one.floating_ip == other.floating_ip
    return not any((one.pool, one.address, other.pool, other.address))
