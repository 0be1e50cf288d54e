"""Whether the nodes of a cluster may answer at the addresses of its load balancer's pools.

Sources: heat_templates/rke2-cluster.yaml (api_address, extra_addresses); metallb/metallb issues 486 and 536, where an
address is assigned and nobody reaches it, because no address pair allows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.kubernetes.cluster.rke_related import RkeFields
from openstack_prep.kubernetes.service_pools import ServicePool
from openstack_prep.kubernetes.service_pools import ranges as ranges_of
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_room import Room
from openstack_prep.resources.addresses.node_addresses import (
    DeclaredAddresses,
    HeldRange,
    conflicts,
    held_by,
    without_pairs,
)
from openstack_prep.resources.addresses.stack_addresses import (
    EXTRA,
    api_holders,
    decides_itself,
    network_of,
    on_nodes,
    readable,
)
from openstack_prep.resources.heat.package import SHIPPED
from openstack_prep.resources.heat.parameters import items
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import NetworkRecord, PortRecord, SubnetRecord
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.existing import Existing


@dataclass(frozen=True, kw_only=True)
class ServedPool:
    """The addresses of one pool of a load balancer."""

    field: str
    """The field of the cluster that says them, such as ``metallb.pools[0].addresses``."""
    shown: str
    """The pool in messages, such as ``metallb pool rke2``."""
    ranges: tuple[Range, ...]
    of_spec: bool
    """Whether an address pool of the spec has them, which judges them in their subnet."""


def served_pools(cluster: RkeFields) -> Iterator[ServedPool]:
    """Yield the pools of all load balancers of a cluster."""
    sections: list[tuple[str, Sequence[ServicePool]]] = [("metallb", cluster.metallb.pools)] if cluster.metallb else []
    if cluster.cilium and cluster.cilium.load_balancer:
        sections.append(("cilium.load_balancer", cluster.cilium.load_balancer.pools))
    sections += [("kube_vip", cluster.kube_vip.pools)] if cluster.kube_vip else []
    addresses = cluster.related.addresses(cluster)
    for section, pools in sections:
        for index, pool in enumerate(pools):
            yield ServedPool(
                field=f"{section}.pools[{index}].{'pool' if pool.pool else 'addresses'}",
                shown=f"{section} pool {pool.kubernetes_name}",
                ranges=tuple(ranges_of(pool, addresses)),
                of_spec=pool.pool is not None,
            )


# --- the nodes of the stack -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StackNodes:
    """Where the nodes of a cluster are, as far as the parameters of its stack say."""

    stack: str
    parameters: Raw
    is_declared: bool
    is_shipped: bool
    decides_itself: bool
    """Whether the template may add pairs, turn port security off or take ports, in a way that only Heat evaluates."""

    @classmethod
    def of(cls, cluster: RkeFields, live: Raw | None = None) -> StackNodes:
        """Return the nodes of a cluster; ``live`` are the parameters of a stack that the spec does not declare."""
        stack = cluster.related.stack(cluster)
        template = cluster.related.template(cluster) or {}
        declared = {name: each.get("default") for name, each in (template.get("parameters") or {}).items()}
        given = declared | dict(stack.given if stack else live or {})
        return cls(
            stack=cluster.stack,
            parameters=given,
            is_declared=stack is not None,
            is_shipped=stack is not None and stack.template.startswith(SHIPPED),
            decides_itself=stack is not None and decides_itself(stack),
        )

    def network(self, declared: DeclaredAddresses) -> str | None:
        """Return the network of the nodes as the spec names it; None if nothing says it."""
        return network_of(self.parameters, declared)

    def selected_by(self, pairs: AddressPairs) -> bool:
        """Whether pairs select the ports of all nodes, as far as the spec says it."""
        return on_nodes(pairs, self.stack, self.parameters if self.is_shipped else None)

    @property
    def extra(self) -> list[Range]:
        """The addresses that the template allows on all nodes."""
        return readable(items(self.parameters.get(EXTRA) or ()))


# --- rules ------------------------------------------------------------------------------------


def list_mistakes(cluster: RkeFields, *, for_plan: bool) -> Iterator[Mistake]:
    """Yield what the spec alone shows to be wrong with the addresses of a cluster's pools."""
    nodes, declared = StackNodes.of(cluster), cluster.related.declared_addresses(cluster)
    if not nodes.is_declared:
        return  # what nobody declares is judged by the cloud
    rooms = declared.rooms(nodes.network(declared), for_plan=for_plan) if nodes.parameters.get("network") else []
    yield from _mistakes(cluster, nodes, declared, rooms)


def list_warnings(cluster: RkeFields) -> Iterator[str]:
    """Yield the pools outside of all subnets of the nodes whose addresses no pair allows."""
    nodes, declared = StackNodes.of(cluster), cluster.related.declared_addresses(cluster)
    network = nodes.network(declared)
    if not nodes.is_declared or nodes.decides_itself or declared.is_unfiltered(network):
        return
    rooms = [Range.of(room.cidr) for room in declared.rooms(network, for_plan=False)]
    allowed = [*declared.allowed(network, nodes.selected_by), *nodes.extra]
    for pool in served_pools(cluster):
        for part in ranges.without(pool.ranges, [*rooms, *allowed]):
            yield (
                f"{pool.field}: no address_pairs allow {part} of {pool.shown} on the nodes of stack/{nodes.stack}: "
                "unless port security is off there, Neutron drops the answers"
            )


def check(cluster: RkeFields, run: CloudRun, live: Raw) -> Iterator[Mistake]:
    """Yield what the cloud shows; ``live`` are the parameters of a stack that exists and is not declared."""
    nodes, declared = StackNodes.of(cluster, live), cluster.related.declared_addresses(cluster)
    network = nodes.network(declared)
    if network is None:
        return
    network_id = run.find_id(cluster.sibling(Existing, network, of="network"))
    rooms = list(_rooms(cluster, run, network, network_id, declared))
    if not nodes.is_declared:
        ports = _ports(cluster, run, network_id)
        filtered = [port for port in ports if port.port_security_enabled]
        own = [list(_own_pairs(port)) for port in filtered] or ([] if ports else [[]])
        for allowed in own:
            yield from _mistakes(cluster, nodes, declared, rooms, allowed)
        return
    if not _is_unfiltered(cluster, run, network_id):
        yield from _mistakes(cluster, nodes, declared, rooms)


def _mistakes(
    cluster: RkeFields,
    nodes: StackNodes,
    declared: DeclaredAddresses,
    rooms: Sequence[Room],
    own: Sequence[Range] = (),
) -> Iterator[Mistake]:
    """Yield the mistakes of all pools; ``own`` are the pairs that the ports have."""
    network = nodes.network(declared)
    unknown = nodes.decides_itself or declared.is_unfiltered(network)
    allowed = [*declared.allowed(network, nodes.selected_by), *nodes.extra, *own]
    holders = list(_holders(cluster, nodes, declared))
    for pool in served_pools(cluster):
        for part, room in without_pairs(pool.ranges, rooms, allowed) if not unknown else ():
            what = f"{part} of {pool.shown} is in subnet {room.name}, and no address_pairs allow it on the nodes of "
            what += f"stack/{nodes.stack}: Neutron drops the answers"
            fix = f"declare address_pairs with stack: {nodes.stack} and these addresses, or their address pool"
            yield cluster.mistake(f"{pool.field}: {what}", fix, Code.PAIRS_MISSING, pool.field)
        in_subnets = () if pool.of_spec else conflicts(pool.ranges, rooms, declared)
        for what, fix in (*in_subnets, *held_by(pool.ranges, holders)):
            yield cluster.mistake(f"{pool.field}: {what}", fix, Code.SPEC_CONTRADICTION, pool.field)


def _holders(cluster: RkeFields, nodes: StackNodes, declared: DeclaredAddresses) -> Iterator[HeldRange]:
    """Yield what has addresses that no pool may have: floating IPs, APIs, and pools of clusters on the same network."""
    yield from declared.holders()
    yield from api_holders(cluster.related.stacks.values(), declared, nodes.network(declared))
    for other in cluster.related.clusters.values():
        if other.name == cluster.name:
            return  # the later one of two clusters reports both
        other = replace(other, related=cluster.related)
        same = StackNodes.of(other).network(declared) == nodes.network(declared)
        if other.place == cluster.place and same:
            for pool in served_pools(other):
                yield from (HeldRange(each, f"{pool.shown} of {other.key}") for each in pool.ranges)


# --- the cloud --------------------------------------------------------------------------------


def _rooms(
    cluster: RkeFields, run: CloudRun, network: str, network_id: str | None, declared: DeclaredAddresses
) -> Iterator[Room]:
    """Yield the subnets of the nodes' network as they exist, and as the spec changes or creates them."""
    of_spec = {subnet.name: subnet for subnet in declared.subnets_of(network)}
    records: dict[str, SubnetRecord] = {}
    project_id = run.find_project_id(cluster.owner)
    if network_id and project_id:
        listed = Subnet.listing(run, project_id)
        records = {subnet.name: subnet for subnet in listed if subnet.network_id == network_id}
    for name in dict.fromkeys((*of_spec, *records)):
        room = Room.of(name, records.get(name), of_spec.get(name))
        if room:
            yield room


def _ports(cluster: RkeFields, run: CloudRun, network_id: str | None) -> list[PortRecord]:
    """Return the ports of the existing nodes on their network."""
    chosen = cluster.sibling(AddressPairs, cluster.name, stack=cluster.stack).chosen(run) or ()
    return [each for each in chosen if network_id is None or each.network_id == network_id]


def _own_pairs(port: PortRecord) -> Iterator[Range]:
    for pair in port.allowed_address_pairs:
        if pair.mac_address == port.mac_address:
            yield Range.read(pair.ip_address)


def _is_unfiltered(cluster: RkeFields, run: CloudRun, network_id: str | None) -> bool:
    """Whether port security is off: on the existing nodes, or on their network, from which new ports take it."""
    ports = _ports(cluster, run, network_id)
    if ports:
        return not any(port.port_security_enabled for port in ports)
    project_id = run.find_project_id(cluster.owner)
    listed = queries.records_in(run, NetworkRecord, project_id) if project_id and network_id else ()
    return any(network.id == network_id and network.port_security_enabled is False for network in listed)
