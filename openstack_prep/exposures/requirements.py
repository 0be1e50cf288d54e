"""What exposures need in OpenStack, as resources of other kinds: rules, address pairs, and attached floating IPs."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name
from openstack_prep.base.ranges import Range, without
from openstack_prep.base.ranges import read as read_ranges
from openstack_prep.core.model import Context, Resource
from openstack_prep.exposures.cluster_fields import ClusterFields, NodeSelection
from openstack_prep.exposures.endpoint import Exposed, PlacedExposure, Way
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.external_ips.settings import hops, nodes_of
from openstack_prep.exposures.machine_pairs import MachinePairs, on_networks
from openstack_prep.exposures.neighbours import Pool
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.rules import ON_NODES
from openstack_prep.resources.addresses.address_pairs import AddressPairs, PairOrigin
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import AttachedFloatingIP, FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.dns.record_data import RecordType
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.lists.neutron_records import Route
from openstack_prep.resources.network.reserved_ports import port_name
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import ANYWHERE, SecurityGroupRule, in_words

T = TypeVar("T")
IN_GROUPS: tuple[Way, ...] = (*ON_NODES, "floating-ip", "node-port", "bridge")
"""Ways in which requests pass the security groups of nodes."""


MOST_PAIRS = 10
"""Neutron's default for max_allowed_address_pair."""


def with_opened(resources: Sequence[Resource], cluster: ClusterFields) -> tuple[Resource, ...]:
    """Return the resources of a spec with what the exposures of a cluster need in OpenStack beyond them; idempotent."""
    found = list(resources)
    exposures: list[Any] = [
        resource for resource in resources if isinstance(resource, Exposed) and resource.cluster == cluster.name
    ]
    mine = cluster.of_project(exposures)
    if cluster.open_in and (rules := list(_rules(mine, resources))):
        _open(found, cluster, cluster.open_in, rules)
    if cluster.nodes:
        found += _pairs(cluster, [each for each in mine if each.how in ON_NODES], found)
        found += _machine_pairs(cluster, mine, found)
    found += _attachments(mine, found)
    for router in cluster.of_project(resource for resource in resources if isinstance(resource, Router)):
        if router.name == cluster.router and router.routes is not None:
            found[found.index(router)] = replace(router, routes=_routes(cluster, mine, router.routes))
    return tuple(found)


# --- routes of a router ---------------------------------------------------------------------


def route_mistakes(cluster: ClusterFields, routers: Iterable[Router]) -> Iterator[Mistake]:
    """Yield a mistake if the router of static routes does not declare its routes.

    Apply manages the routes of a router as a whole: only a spec that declares them, perhaps as [], agrees to the loss
    of those that others have added, and says what remains when the last exposure goes.
    """
    if cluster.external_ips is None or not cluster.external_ips.static_routes:
        return  # which is a mistake of its own
    for router in cluster.of_project(routers):
        if router.name == cluster.router and router.routes is None:
            what = f"router {router.name} declares no routes"
            fix = f"declare routes (perhaps []) of router {router.name}: "
            fix += "exposures add to them, and apply removes all others"
            yield cluster.mistake(what, fix, Code.SPEC_CONTRADICTION)


def _routes(cluster: ClusterFields, exposures: Iterable[Exposed], before: Sequence[Route]) -> tuple[Route, ...]:
    """Return the routes of a router with those to the addresses of Services with externalIPs."""
    if cluster.external_ips is None or not cluster.external_ips.static_routes:
        return tuple(before)
    placed = [PlacedExposure(exposure=exposure, address=exposure.address) for exposure in exposures]
    found = hops(cluster.external_ips, placed)
    new = (Route(destination=each.destination, nexthop=hop) for each in found for hop in each.next_hops)
    return tuple(dict.fromkeys((*before, *new)))


# --- rules of security groups ---------------------------------------------------------------


def _rules(exposures: Iterable[Any], resources: Sequence[Resource]) -> Iterator[SecurityGroupRule]:
    for exposure in exposures:
        if exposure.how not in IN_GROUPS:
            continue
        remotes = exposure.allowed_cidrs or [
            ANYWHERE[0 if version == 4 else 1] for version in versions(exposure, resources)
        ]
        for port in exposure.ports:
            number = port.node_port if exposure.how == "node-port" else port.port
            for remote in remotes if number else ():
                yield SecurityGroupRule(
                    protocol=port.protocol,
                    ports=str(number),
                    remote_ip_prefix=remote,
                    description=f"to {exposure.name}",
                )


def versions(exposure: Any, resources: Sequence[Resource]) -> list[int]:
    """Return the IP versions of an exposure's address; IPv4 if it has none."""
    if exposure.address:
        return [ipaddress.ip_address(exposure.address).version]
    pools = exposure.of_project(resource for resource in resources if isinstance(resource, (AddressPool, PoolFile)))
    ranges = [one for pool in pools if pool.name == exposure.pool for one in read_ranges(pool.addresses)]
    return sorted({one.first.version for one in ranges}) or [4]


def _open(found: list[Resource], cluster: ClusterFields, name: str, rules: Sequence[SecurityGroupRule]) -> None:
    """Add rules to a security group of the spec, or to one that it does not declare."""
    groups = cluster.of_project(each for each in found if isinstance(each, SecurityGroup))
    group = next((each for each in groups if each.name == name), None)
    if group is not None:
        found[found.index(group)] = replace(group, rules=_merged(group.rules or (), rules))
        return
    bare = [each for each in found if isinstance(each, SecurityGroupRules) and each.name == name]
    for each in cluster.of_project(bare):
        found[found.index(each)] = replace(each, rules=_merged(each.rules, rules))
        return
    found.append(cluster.sibling(SecurityGroupRules, name, rules=_merged((), rules)))


def _merged(before: Sequence[SecurityGroupRule], rules: Sequence[SecurityGroupRule]) -> tuple[SecurityGroupRule, ...]:
    """Return rules with further ones; rules that Neutron considers equal appear once, as they were first declared."""
    by_words: dict[str, SecurityGroupRule] = {}
    for rule in (*before, *rules):
        by_words.setdefault(in_words(rule.record(), rule.remote_group), rule)
    return tuple(by_words.values())


# --- address pairs --------------------------------------------------------------------------


def _pairs(cluster: ClusterFields, exposures: Sequence[Any], found: Sequence[Resource]) -> Iterator[Resource]:
    """Yield address pairs for the addresses that no address pairs of the spec allow on the nodes yet."""
    assert cluster.nodes is not None
    whole = f"exposures-{cluster.name}"
    pools = {pool.name: pool for pool in cluster.of_project(e for e in found if isinstance(e, AddressPool))}
    files = {file.name: file for file in found if isinstance(file, PoolFile)}
    there = cluster.of_project(pairs for pairs in found if isinstance(pairs, AddressPairs))
    lacking: dict[str, tuple[Mapping[str, Any], list[Any]]] = {}
    for exposure in exposures:
        for suffix, choice in _chosen(cluster, cluster.nodes, exposure):
            same = [one for one in there if all(getattr(one, field) == value for field, value in choice.items())]
            if not any(_allows(pairs, exposure, pools, files) for pairs in same):
                lacking.setdefault(f"{whole}{suffix}", (choice, []))[1].append(exposure)
    # one carrier answers for an address until somebody has moved it to another: the pairs of the old one stay
    moves = cluster.external_ips is not None and cluster.external_ips.carriers == "one"
    for name, (choice, wanting) in lacking.items():
        chosen = {each.pool for each in wanting if not each.address and each.pool in pools}
        # OVN answers for an address that a port reserves, unless another port has a pair with exactly this address
        single = {name for name in chosen if pools[name].reserve == "ports" and pools[name].count <= MOST_PAIRS}
        addresses = {str(each) for name in single for one in pools[name].ranges for each in one}
        given = sorted(addresses | {each.address for each in wanting if each.address} | _of_files(wanting, files))
        of_pools = sorted(chosen - single)
        if given or of_pools:
            fields = {"pools": tuple(of_pools), "prune": not (moves and name != whole), **choice}
            fields["origin"] = PairOrigin(implied_by=cluster.key)
            yield cluster.sibling(AddressPairs, _free(name, there), addresses=tuple(given) or None, **fields)


def _free(name: str, others: Collection[AddressPairs]) -> str:
    """Return a name for address pairs that no others have: a spec may call its own as it likes."""
    while any(pairs.name == name for pairs in others):
        name += ":more"
    return name


def _chosen(cluster: ClusterFields, nodes: NodeSelection, exposure: Exposed) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the ports that answer for an exposure, as fields of address pairs: of all nodes, or of its carriers."""
    names = carriers(cluster, exposure, exposure.address, nodes.ports)
    if names is None:
        yield "", nodes.choice
    for name in names or ():
        yield f".{name}", {"ports": (name,)}  # names of clusters contain no dot


def carriers(
    cluster: ClusterFields, exposure: Exposed, address: str | None, ports: Collection[str]
) -> list[str] | None:
    """Return the nodes that carry an address of Services with externalIPs; None if all do, or if no port says which.

    Only ports with the names of the nodes say which port belongs to which node.
    """
    if cluster.external_ips is None or exposure.how != "external-ip" or address is None:
        return None
    names = [node.name for node in nodes_of(cluster.external_ips, address)]
    return names if {*names} <= {*ports} else None


def _of_files(exposures: Iterable[Any], files: Mapping[str, PoolFile]) -> set[str]:
    """Return the addresses that exposures may get from pool files, one by one if they are few."""
    named = {exposure.pool for exposure in exposures if not exposure.address and exposure.pool in files}
    parts = [one for name in sorted(named) for one in files[name].claimable()]
    few = sum(part.count for part in parts) <= MOST_PAIRS
    return {str(address) for one in parts for address in one} if few else set(map(str, parts))


def _machine_pairs(cluster: ClusterFields, exposures: Sequence[Any], found: Sequence[Resource]) -> Iterator[Resource]:
    """Yield the pairs of virtual machines if any of them may be attached to a network of OpenStack."""
    assert cluster.nodes is not None
    pools: list[Pool] = [*cluster.of_project(_declared(found, AddressPool)), *_declared(found, PoolFile)]
    settings = cluster.virtualization
    there = cluster.of_project(_declared(found, AddressPairs))
    if settings is None or any(isinstance(pairs, MachinePairs) and pairs.cluster == cluster.name for pairs in there):
        return
    name = _free(f"exposures-{cluster.name}:machines", there)  # neither names of clusters nor ".NODE" have a colon
    if any(
        on_networks(exposure, [one for one in pools if one.name == exposure.pool], settings) for exposure in exposures
    ):
        fields = {"cluster": cluster.name, "settings": settings, "origin": PairOrigin(implied_by=cluster.key)}
        yield cluster.sibling(MachinePairs, name, **fields, **cluster.nodes.choice)


def _declared(resources: Iterable[Resource], kind: type[T]) -> list[T]:
    return [resource for resource in resources if isinstance(resource, kind)]


def _allows(
    pairs: AddressPairs, exposure: Any, pools: Mapping[str, AddressPool], files: Mapping[str, PoolFile]
) -> bool:
    """Whether address pairs allow an exposure's address, or all addresses that it may get."""
    if exposure.pool in pairs.pools:
        return True
    named = [one for name in pairs.pools if name in pools for one in pools[name].ranges]
    allowed = [*map(Range.read, pairs.addresses or ()), *named]
    if exposure.address:
        return any(ipaddress.ip_address(exposure.address) in each for each in allowed)
    return exposure.pool in files and not [*without(files[exposure.pool].claimable(), allowed)]


# --- floating IPs ---------------------------------------------------------------------------


def _attachments(exposures: Iterable[Any], found: Sequence[Resource]) -> Iterator[Resource]:
    """Yield the attachment of each floating IP to the port that reserves the exposure's address."""
    for exposure in exposures:
        there = exposure.of_project(one for one in found if isinstance(one, AttachedFloatingIP))
        pools = exposure.of_project(one for one in found if isinstance(one, AddressPool) and one.reserve == "ports")
        known = {one.name for one in exposure.of_project(o for o in found if isinstance(o, FloatingIP))}
        free = exposure.floating_ip in known and all(one.label != exposure.floating_ip for one in there)
        if free and exposure.address and any(one.name == exposure.pool for one in pools):
            fields = {"project": exposure.project, "project_domain": exposure.project_domain}
            port = port_name(exposure.pool, exposure.address)
            yield FloatingIPAttachment(port=port, floating_ip=exposure.floating_ip, **fields)


# --- recordsets ------------------------------------------------------------------------------


TYPES: Mapping[int, RecordType] = {4: "A", 6: "AAAA"}


@dataclass(frozen=True, kw_only=True)
class ExposedRecordset(Recordset):
    """A recordset with the addresses of exposures, some of which only their pools will know."""

    identity: ClassVar[frozenset[str]] = Recordset.identity | {"exposures"}

    exposures: tuple[Name, ...] = ()
    """Exposures whose addresses the pool chooses."""

    @property
    def has_records(self) -> bool:
        return bool(self.exposures) or super().has_records

    def find_sources(self, context: Context) -> tuple[Resource, ...]:
        """Return also the exposures whose addresses are records."""
        named = (
            exposure
            for exposure in context.declared(Exposure)
            if exposure.name in self.exposures and self.name in exposure.names
        )
        return (*super().find_sources(context), *(part for exposure in named for part in exposure.resolve(context)))


def with_recordsets(resources: Sequence[Resource], cluster: ClusterFields) -> tuple[Resource, ...]:
    """Return the resources of a spec with the recordsets for the names of a cluster's exposures; idempotent."""
    exposures: list[Any] = [
        resource for resource in resources if isinstance(resource, Exposed) and resource.cluster == cluster.name
    ]
    return (*resources, *_of_names(cluster, cluster.of_project(exposures), resources))


def _of_names(cluster: ClusterFields, exposures: Iterable[Any], resources: Sequence[Resource]) -> Iterator[Recordset]:
    """Yield the recordsets for the names of a cluster's exposures, without those that the spec declares itself."""
    settings = cluster.names.designate
    if settings is None:
        return
    wanted: dict[tuple[str, RecordType], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for exposure in exposures:
        for kind, source, value in _sources(exposure, resources):
            for name in exposure.names:
                values = wanted[name, kind][source]
                values += [] if value in values else [value]
    place: dict[str, Any] = {"project": cluster.project, "project_domain": cluster.project_domain}
    if settings.project:
        place = {"project": settings.project, "project_domain": settings.project_domain}
    there = {resource.key for resource in resources}
    for (name, kind), sources in wanted.items():
        zone = settings.zone_of(name)
        fields: dict[str, Any] = {source: tuple(values) for source, values in sources.items()}
        found = ExposedRecordset(name=name, zone=zone or name, type=kind, ttl=settings.ttl, **fields, **place)
        if zone and found.key not in there:
            yield found


def _sources(exposure: Any, resources: Sequence[Resource]) -> Iterator[tuple[RecordType, str, str]]:
    """Yield the type of the record of an exposure, and the field of a recordset that says its address."""
    if exposure.floating_ip:
        yield TYPES[4], "floating_ips", exposure.floating_ip
    elif exposure.address:
        yield TYPES[ipaddress.ip_address(exposure.address).version], "records", exposure.address
    elif exposure.pool and len(found := versions(exposure, resources)) == 1:
        yield TYPES[found[0]], "exposures", exposure.name


def recordset_mistakes(
    cluster: ClusterFields, exposures: Iterable[Exposed], resources: Sequence[Resource]
) -> Iterator[Mistake]:
    """Yield the names that get no recordset, each with its reason."""
    settings = cluster.names.designate
    for exposure in exposures if settings else ():
        for index, name in enumerate(exposure.names):
            where = f"exposures.{exposure.name}.names[{index}]"
            assert settings is not None
            if settings.zone_of(name) is None:
                what = f"{name} is in none of Designate's zones {', '.join(settings.zones)}"
                yield Mistake(where, what, "add its zone to names.designate.zones")
            elif not list(_sources(exposure, resources)):
                what = f"no address is known that {name} leads to"
                yield Mistake(where, what, "set address, floating_ip, or a pool with addresses of one IP version")
