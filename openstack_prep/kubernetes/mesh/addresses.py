"""Addresses that nodes use besides their own: the mesh address, and those of pods that are routed natively.

Source: Networking API v2.0, "Allowed address pairs" and "Routers" (routes).
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Sequence

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.kubernetes.mesh.routing import longest
from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks
from openstack_prep.neutron.rules import Address, Block, allowed_parts, allows, covers
from openstack_prep.resources.lists.neutron_records import PortRecord, Route, SubnetRecord

POD_NETWORKS = "kubectl get nodes -o custom-columns=NODE:.metadata.name,PODS:.spec.podCIDRs"
FOR_ALL = "  # or declare address_pairs in the spec, which also covers nodes added later"


def own_addresses(visible: VisibleNetworks, cluster: MeshCluster) -> Iterator[Diagnostic]:
    """Yield what keeps nodes from using the cluster's mesh address, or their pods' addresses."""
    if cluster.mesh_address:
        address = ipaddress.ip_address(cluster.mesh_address)
        on = [each for each in cluster.subnets if address in each.block]
        if not on and cluster.subnets:
            cidrs = ", ".join(each.cidr for each in cluster.subnets)
            yield Diagnostic(
                code="mesh-address.outside-subnet",
                where=cluster.name,
                what=f"the mesh address {address} lies in no subnet of the nodes: {cidrs}",
                why="whether the routers learn it by BGP is not visible to OpenStack"
                if cluster.by_bgp
                else "no router leads there, so the nodes of the other clusters get no answer",
                fix=f"check the routers for a route to {address}"
                if cluster.by_bgp
                else f"choose an address in {cidrs}",
                status=DiagnosticStatus.WARNING if cluster.by_bgp else DiagnosticStatus.ERROR,
            )
        block = ipaddress.ip_network(address)
        missing = [port for port in _of_version(cluster, block) if not allows(port, block)]
        yield from _without_pair(visible, cluster, missing, block, "the mesh address")
    for each in map(ipaddress.ip_network, cluster.pod_networks):
        yield from _pods(visible, cluster, each)


def _of_version(cluster: MeshCluster, block: Block) -> list[PortRecord]:
    return [port for port in cluster.ports if any(each.version == block.version for each in port.addresses)]


def _pods(visible: VisibleNetworks, cluster: MeshCluster, pods: Block) -> Iterator[Diagnostic]:
    """Yield the ports that may not send from their pods' addresses.

    Each node has a part of the pods' network, which Kubernetes chooses; OpenStack knows it only by routes to the node.
    """
    missing, undecided = defaultdict[Block, list[PortRecord]](list), list[PortRecord]()
    for port in _of_version(cluster, pods):
        parts = allowed_parts(port, pods)
        if pods in parts:
            continue
        routed = list(_routed_parts(visible, port, pods))
        for block in [each for each in routed if not allows(port, each)] if parts else [pods]:
            missing[block].append(port)
        if parts and not routed:
            undecided.append(port)
    for block, ports in missing.items():
        yield from _without_pair(visible, cluster, ports, block, "the pods'")
    if undecided:
        yield _partly(visible, cluster, undecided, pods)


def _routed_parts(visible: VisibleNetworks, port: PortRecord, pods: Block) -> Iterator[Block]:
    """Yield the parts of the pods' network that routers on the port's network send to the port."""
    routers = {each.device_id for each in visible.interfaces if each.network_id == port.network_id}
    for router_id in sorted(routers & visible.routers.keys()):
        for route in visible.routers[router_id].routes:
            block = ipaddress.ip_network(route.destination)
            if covers(pods, block) and block != pods and ipaddress.ip_address(route.nexthop) in port.addresses:
                yield block


def _partly(visible: VisibleNetworks, cluster: MeshCluster, ports: Sequence[PortRecord], pods: Block) -> Diagnostic:
    commands = [visible.openstack("port", "set", "--allowed-address", f"ip-address={pods}", each.id) for each in ports]
    return Diagnostic(
        code="pairs.partial",
        status=DiagnosticStatus.UNKNOWN,
        where=cluster.name,
        what=f"the ports {cluster.port_names(port.id for port in ports)} have allowed address pairs for a part of "
        f"the pods' {pods} only",
        why="Neutron drops what the pods of a node send from the rest; no route shows which part belongs to which node",
        fix=f"{' && '.join(commands)}  # unless {POD_NETWORKS} shows their pairs",
    )


def _without_pair(
    visible: VisibleNetworks, cluster: MeshCluster, ports: Sequence[PortRecord], wanted: Block, whose: str
) -> Iterator[Diagnostic]:
    if ports:
        pair = f"ip-address={wanted[0] if wanted.num_addresses == 1 else wanted}"
        commands = [visible.openstack("port", "set", "--allowed-address", pair, port.id) for port in ports]
        yield Diagnostic(
            code="pairs.missing",
            where=cluster.name,
            what=f"the ports {cluster.port_names(port.id for port in ports)} have no allowed address pair for "
            f"{whose} {pair.removeprefix('ip-address=')}",
            why="Neutron drops what a node sends, with its own MAC address, from an address that its port may not use",
            fix=" && ".join(commands) + FOR_ALL,
        )


def pod_routes(visible: VisibleNetworks, one: MeshCluster, other: MeshCluster) -> Iterator[Diagnostic]:
    """Yield the routers on the path that have no route to the pods of the other cluster."""
    for block in map(ipaddress.ip_network, other.pod_networks):
        for source in one.subnets:
            if source.ip_version == block.version and source.gateway and source not in other.subnets:
                yield from _along_path(visible, source, source.gateway, one, other, block)


def _along_path(
    visible: VisibleNetworks,
    source: SubnetRecord,
    gateway: Address,
    one: MeshCluster,
    other: MeshCluster,
    block: Block,
) -> Iterator[Diagnostic]:
    interface = visible.interface_at([source.network_id], gateway)
    passed: set[str] = set()
    while interface is not None and interface.device_id not in passed:
        router_id = interface.device_id
        passed.add(router_id)
        router = visible.routers.get(router_id)
        routes = router.routes if router else ()
        ids = {each.id for each in other.subnets}
        if any(each.id in ids for each in visible.connected(router_id)):
            yield from _last_router(visible, router_id, routes, one, other, block)
            return
        routes_by_prefix = ((ipaddress.ip_network(each.destination), each) for each in routes)
        route = longest(routes_by_prefix, block)
        if route is None:
            target = next(each for each in other.subnets if each.ip_version == block.version)
            to_nodes = longest(((ipaddress.ip_network(each.destination), each) for each in routes), target.block)
            if to_nodes is not None:  # otherwise the path to the nodes is missing, which routing reports
                yield _missing(visible, router_id, one, other, block, [(str(block), to_nodes.nexthop)])
            return
        networks = [port.network_id for port in visible.interfaces_of(router_id)]
        interface = visible.interface_at(networks, ipaddress.ip_address(route.nexthop))


def _last_router(
    visible: VisibleNetworks,
    router_id: str,
    routes: Sequence[Route],
    one: MeshCluster,
    other: MeshCluster,
    block: Block,
) -> Iterator[Diagnostic]:
    """Yield when the last router does not lead to the pods of each node."""
    hops = {
        ipaddress.ip_address(each.nexthop) for each in routes if block.overlaps(ipaddress.ip_network(each.destination))
    }
    missing = [address for address in other.addresses(block.version) if address not in hops]
    parts = {address: _known_part(visible, other, address, block) for address in missing}
    known = [(str(part), str(address)) for address, part in parts.items() if part]
    if known:
        yield _missing(visible, router_id, one, other, block, known)
    if unknown := [str(address) for address, part in parts.items() if not part]:
        fix = _routes_by_kubectl(visible, router_id, other, block, unknown)
        yield _without_route(visible, router_id, one, other, block, unknown, fix)


def _known_part(visible: VisibleNetworks, cluster: MeshCluster, address: Address, pods: Block) -> Block | None:
    """Return the pods' part of a node, if a route to the node or the only pair of its port shows it."""
    routes = (route for router in visible.routers.values() for route in router.routes)
    here = (ipaddress.ip_network(each.destination) for each in routes if each.nexthop == str(address))
    routed = {block for block in here if covers(pods, block) and block != pods}
    ports = (port for port in cluster.ports if address in port.addresses)
    allowed = {block for port in ports for block in allowed_parts(port, pods) if block != pods}
    found = routed or allowed
    return found.pop() if len(found) == 1 else None


def _routes_by_kubectl(
    visible: VisibleNetworks, router_id: str, cluster: MeshCluster, pods: Block, addresses: Sequence[str]
) -> str:
    """Return a line for the shell that adds the routes to nodes: only Kubernetes knows which pods each one has."""
    number = [*map(ipaddress.ip_network, cluster.pod_networks)].index(pods)  # podCIDRs has one per IP version
    path = f'{{range .items[*]}}{{.spec.podCIDRs[{number}]}} {{.status.addresses[*].address}}{{"\\n"}}{{end}}'
    add = f'{visible.openstack("router", "set")} --route "destination=$pods,gateway=$address" {router_id}'
    each = f"for address in $addresses; do case $address in {'|'.join(addresses)}) {add};; esac; done"
    nodes = shell.join(["kubectl", "get", "nodes", "-o", f"jsonpath={path}"])
    return f"{nodes} | while read -r pods addresses; do {each}; done  # with the kubeconfig of cluster {cluster.name}"


def _missing(
    visible: VisibleNetworks,
    router_id: str,
    one: MeshCluster,
    other: MeshCluster,
    block: Block,
    routes: Sequence[tuple[str, str]],
) -> Diagnostic:
    options = [word for cidr, hop in routes for word in ("--route", f"destination={cidr},gateway={hop}")]
    fix = visible.openstack("router", "set", *options, router_id)
    return _without_route(visible, router_id, one, other, block, [hop for _, hop in routes], fix)


def _without_route(
    visible: VisibleNetworks,
    router_id: str,
    one: MeshCluster,
    other: MeshCluster,
    block: Block,
    hops: Sequence[str],
    fix: str,
) -> Diagnostic:
    return Diagnostic(
        code="route.missing",
        where=f"{one.name} to {other.name}",
        what=f"{visible.router(router_id)} has no route to the pods' {block} by {', '.join(hops)}",
        why="without a tunnel, only routes lead to the pods",
        fix=fix,
    )
