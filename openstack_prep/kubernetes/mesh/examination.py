"""Which traffic must pass between clusters, and which of it is blocked, as far as OpenStack knows.

Source: RKE's and RKE2's documentation of ports; Cilium's "Firewall Rules"; MetalLB's "Requirements".
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from typing import Literal

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_weight, errors, summary
from openstack_prep.base.raw import Values
from openstack_prep.base.style import columns
from openstack_prep.kubernetes.cilium import Member, Passage, required
from openstack_prep.kubernetes.mesh.routing import longest, routing
from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks
from openstack_prep.kubernetes.networks import split
from openstack_prep.neutron.rules import (
    DIVERTED,
    UNNOTICED,
    WHY,
    Address,
    Block,
    Traffic,
    allowed_parts,
    allows,
    covers,
    diverted,
    only_around,
    unnoticed,
    without_diverting,
)
from openstack_prep.neutron.rules import admission as admitted
from openstack_prep.resources.lists.neutron_records import GroupRecord, PortRecord, Route, SubnetRecord

# Whether the security groups of nodes let traffic out to, and in from, the nodes of another cluster.
#
# Source: Networking API v2.0, "Security group rules" and "Address groups"; groups only add to one another.

# --- passage ----------------------------------------------------------------------------------


ECHO = {4: 8, 6: 128}
"""The type of ICMP message that asks for an echo, by IP version."""


def passage_number(passage: Passage, version: int) -> int | None:
    """Return its destination port, or its type of ICMP message."""
    return ECHO[version] if passage.protocol == "icmp" else passage.port


def describe(passage: Passage) -> str:
    """Return its protocol and port, such as tcp 4240."""
    names = {"icmp": "ICMP echo", "any": "any protocol"}
    return names.get(passage.protocol) or " ".join(map(str, filter(None, (passage.protocol, passage.port))))


def options(passage: Passage, version: int) -> list[str]:
    """Return the client's options for a rule that lets it through."""
    if passage.protocol == "icmp":
        name = "icmp" if version == 4 else "ipv6-icmp"
        return ["--protocol", name, "--icmp-type", str(ECHO[version])]
    return ["--protocol", passage.protocol, *(["--dst-port", str(passage.port)] if passage.port else [])]


def row(passage: Passage, *, both_ways: bool) -> tuple[str, str, str, str]:
    """Return from where, to where, what and why."""
    what = "pods" if passage.target == "pods" else "nodes"
    to = f"{passage.address or 'the mesh address'} of" if passage.target == "mesh address" else f"{what} of"
    back = ", and back" if both_ways else ""
    return f"{what} of {passage.source}", f"{to} {passage.to}{back}", describe(passage), passage.why


# --- admission --------------------------------------------------------------------------------


WORDS = {"ingress": "in from", "egress": "out to"}


@dataclass(frozen=True)
class RemotePeer:
    """Addresses at the remote end: ``block`` is one node's or a network; ``within`` is the network to put in a rule."""

    block: Block
    within: Block
    groups: frozenset[str] = frozenset()


def admission(visible: VisibleNetworks, one: MeshCluster, other: MeshCluster, passage: Passage) -> Iterator[Diagnostic]:
    """Yield where a passage is blocked: on the way out of one cluster's nodes, or into the other's."""
    versions = {subnet.ip_version for subnet in one.subnets} & {subnet.ip_version for subnet in other.subnets}
    for version in sorted(versions):
        receivers = _receivers(other, passage, version)
        if receivers or _address_unknown(passage):
            yield from GroupFilter(visible, passage, version, "egress", one).blocked(receivers)
            yield from GroupFilter(visible, passage, version, "ingress", other).blocked(_peers(one, passage, version))


def _address_unknown(passage: Passage) -> bool:
    """Whether the receiving address is not known yet, because MetalLB will choose one."""
    return passage.target == "mesh address" and passage.address is None


def _peers(cluster: MeshCluster, passage: Passage, version: int) -> list[RemotePeer]:
    """Return the nodes of a cluster, or its pods."""
    if passage.target == "pods":
        networks = map(ipaddress.ip_network, cluster.pod_networks)
        return [RemotePeer(network, network) for network in networks if network.version == version]
    found = []
    for port in cluster.ports:
        for address in port.addresses:
            if address.version == version:
                found.append(_peer(cluster, ipaddress.ip_network(address), frozenset(port.security_groups)))
    return found


def _peer(cluster: MeshCluster, block: Block, groups: frozenset[str] = frozenset()) -> RemotePeer:
    return RemotePeer(
        block, next((each for each in cluster.blocks(block.version) if covers(each, block)), block), groups
    )


def _receivers(cluster: MeshCluster, passage: Passage, version: int) -> list[RemotePeer]:
    if passage.target != "mesh address":
        return _peers(cluster, passage, version)
    block: Block | None = ipaddress.ip_network(passage.address) if passage.address else None
    return [_peer(cluster, block)] if block is not None and block.version == version else []


def _remote_end(peers: Sequence[RemotePeer], refused: Sequence[RemotePeer], within: Block) -> str:
    """Return a network, or those of its nodes that are blocked if others are not."""
    few = [str(peer.block[0]) for peer in refused if peer.within == within]
    some = len(few) < sum(peer.within == within for peer in peers)
    return f"{', '.join(few)} of {within}" if some else str(within)


@dataclass(frozen=True)
class GroupFilter:
    """Whether the groups of one cluster's nodes let a passage through, in one direction."""

    visible: VisibleNetworks
    passage: Passage
    version: int
    direction: str
    cluster: MeshCluster

    def blocked(self, peers: Sequence[RemotePeer]) -> Iterator[Diagnostic]:
        """Yield the ports that do not let the passage through to or from all peers."""
        by_groups: dict[frozenset[str], list[PortRecord]] = {}
        for port in self.cluster.ports:
            if port.port_security_enabled:
                by_groups.setdefault(frozenset(port.security_groups), []).append(port)
        # one rule may be enough for the ports of several groups
        by_remote_end: dict[tuple[str, str], tuple[set[str], list[PortRecord]]] = {}
        for groups, ports in by_groups.items():
            refused = [peer for peer in peers if not self._admits(groups, peer)]
            if refused and (hidden := sorted(groups - self.visible.groups.keys())):
                yield self._unreadable(hidden, ports)
                continue
            for within in dict.fromkeys(peer.within for peer in refused):
                fix = self._rule(groups, within) if groups else self._group(ports)
                ids, mine = by_remote_end.setdefault((_remote_end(peers, refused, within), fix), (set(), []))
                ids |= groups
                mine += ports
        for (remote_end, fix), (ids, mine) in by_remote_end.items():
            yield self._blocks(ids, mine, remote_end, fix)

    def _admits(self, groups: Iterable[str], peer: RemotePeer) -> bool:
        known = (self.visible.groups[each] for each in groups if each in self.visible.groups)
        rules = (rule for group in known for rule in group.security_group_rules)
        found = admitted(rules, self._traffic, self.visible.addresses_of_groups)
        return bool(found.groups & peer.groups) or found.includes(peer.block)

    @property
    def _traffic(self) -> Traffic:
        number = passage_number(self.passage, self.version)
        return Traffic(direction=self.direction, version=self.version, protocol=self.passage.protocol, number=number)

    @property
    def _where(self) -> str:
        source, to = self.passage.source, self.passage.to
        return f"within {to}" if source == to else f"{source} to {to}"

    # --- diagnostics -----------------------------------------------------------------------------

    def _blocks(self, groups: Iterable[str], ports: Sequence[PortRecord], remote_end: str, fix: str) -> Diagnostic:
        ports_text = f"the ports {self.cluster.port_names(port.id for port in ports)}"
        names = ", ".join(sorted(self.visible.groups[each].name for each in groups))
        traffic = f"{describe(self.passage)} {WORDS[self.direction]} {remote_end}"
        nothing = f"{ports_text} have port security and no security group: nothing gets in or out"
        what = f"{ports_text} (groups {names}) do not let {traffic}" if names else nothing
        return Diagnostic(code="security-group.blocks", where=self._where, what=what, why=self.passage.why, fix=fix)

    def _rule(self, groups: Iterable[str], within: Block) -> str:
        """Return the command for the missing rule, in the group that belongs most closely to the cluster."""
        of_all = set.intersection(*(set(port.security_groups) for port in self.cluster.ports))
        in_question = (self.visible.groups[each] for each in groups)

        def rank(group: GroupRecord) -> tuple[bool, bool, bool, str]:
            foreign = group.project_id != self.cluster.ports[0].project_id
            return foreign, group.name == "default", group.id not in of_all, group.name

        best = min(in_question, key=rank)
        words = [
            f"--{self.direction}",
            "--ethertype",
            f"IPv{self.version}",
            *options(self.passage, self.version),
        ]
        return self.visible.openstack(
            "security", "group", "rule", "create", *words, "--remote-ip", str(within), best.id
        )

    def _group(self, ports: Sequence[PortRecord]) -> str:
        """Return the commands that give ports the groups that the other nodes have in common, or a new one."""
        nodes = (*self.cluster.ports, *self.cluster.others)
        others = [port.security_groups for port in nodes if port.security_groups]
        names = [each for each in others[0] if all(each in groups for groups in others)] if others else []
        commands = []
        if not names:
            names = [f"mesh-{self.cluster.name}"]
            owner = self.visible.for_owner(ports[0])
            commands = [self.visible.openstack("security", "group", "create", *owner, *names)]
        words = [word for name in names for word in ("--security-group", name)]
        commands += [self.visible.openstack("port", "set", *words, port.id) for port in ports]
        return " && ".join(commands)

    def _unreadable(self, groups: Sequence[str], ports: Sequence[PortRecord]) -> Diagnostic:
        return Diagnostic(
            code="security-group.unreadable",
            where=self._where,
            what=f"security group {', '.join(groups)} of the ports {self.cluster.port_names(p.id for p in ports)} "
            "is not visible with these credentials; whether it lets "
            f"{describe(self.passage)} through is unknown",
            why=self.passage.why,
            fix="run this with an administrator's --os-cloud",
            status=DiagnosticStatus.UNKNOWN,
        )


# Addresses that nodes use besides their own: the mesh address, and those of pods that are routed natively.
#
# Source: Networking API v2.0, "Allowed address pairs" and "Routers" (routes).

POD_NETWORKS = "kubectl get nodes -o custom-columns=NODE:.metadata.name,PODS:.spec.podCIDRs"
FOR_ALL = "  # or declare address_pairs in the spec, which also covers nodes added later"


def own_addresses(visible: VisibleNetworks, cluster: MeshCluster) -> Iterator[Diagnostic]:
    """Yield what keeps nodes from using the cluster's mesh address, or their pods' addresses."""
    if cluster.mesh_address:
        address = ipaddress.ip_address(cluster.mesh_address)
        on = [subnet for subnet in cluster.subnets if address in subnet.block]
        if not on and cluster.subnets:
            cidrs = ", ".join(subnet.cidr for subnet in cluster.subnets)
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
        ports = _of_version(cluster, block)
        yield from _by_ovn(visible, cluster, ports, block)
        missing = [port for port in ports if not allows(port, block)]
        yield from _without_pair(visible, cluster, missing, block, "the mesh address")
    for each in map(ipaddress.ip_network, cluster.pod_networks):
        yield from _pods(visible, cluster, each)


def _by_ovn(
    visible: VisibleNetworks, cluster: MeshCluster, ports: Sequence[PortRecord], wanted: Block
) -> Iterator[Diagnostic]:
    """Yield pairs with which OVN does not lead to the nodes that announce an address.

    Pairs to remove come before pairs to add: the command names those that stay.
    """
    networks = {port.network_id for port in ports}
    on_networks = [port for port in visible.ports if port.network_id in networks]
    address, secured = str(wanted[0]), [port for port in ports if port.port_security_enabled]
    elsewhere = diverted(address, secured, on_networks)
    if elsewhere:
        yield Diagnostic(
            code="pairs.missing",
            where=cluster.name,
            what=f"the ports {cluster.port_names(port.id for port in elsewhere)} have an allowed address pair for the "
            f"mesh address {address} with another MAC address",
            why=DIVERTED,
            fix=" && ".join(visible.openstack(*without_diverting(port, address)) for port in elsewhere),
        )
    add = ["port", "set", "--allowed-address", f"ip-address={address}"]
    around = only_around(address, on_networks)
    if around is not None and secured and all(allows(port, wanted) for port in secured):
        yield Diagnostic(
            code="pairs.missing",
            where=cluster.name,
            what=f"pairs allow the mesh address {address} only as part of {', '.join(around)}",
            why=WHY,
            fix=" && ".join(visible.openstack(*add, port.id) for port in secured) + FOR_ALL,
        )
    silent = around is not None and not secured
    unfiltered = list(ports) if silent else unnoticed(address, ports, on_networks)
    if unfiltered:
        enable = [*add, "--enable-port-security", "--security-group", "GROUP"]
        yield Diagnostic(
            code="pairs.missing",
            where=cluster.name,
            what=f"a port reserves the mesh address {address}, and port security is off on the ports "
            f"{cluster.port_names(port.id for port in unfiltered)}",
            why=WHY if silent else UNNOTICED,
            fix=" && ".join(visible.openstack(*enable, port.id) for port in unfiltered) + FOR_ALL,
            status=DiagnosticStatus.ERROR if silent else DiagnosticStatus.WARNING,
        )


def _of_version(cluster: MeshCluster, block: Block) -> list[PortRecord]:
    return [port for port in cluster.ports if any(address.version == block.version for address in port.addresses)]


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
    routers = {interface.device_id for interface in visible.interfaces if interface.network_id == port.network_id}
    for router_id in sorted(routers & visible.routers.keys()):
        for route in visible.routers[router_id].routes:
            block = ipaddress.ip_network(route.destination)
            if covers(pods, block) and block != pods and ipaddress.ip_address(route.nexthop) in port.addresses:
                yield block


def _partly(visible: VisibleNetworks, cluster: MeshCluster, ports: Sequence[PortRecord], pods: Block) -> Diagnostic:
    commands = [visible.openstack("port", "set", "--allowed-address", f"ip-address={pods}", port.id) for port in ports]
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


def sizes(visible: VisibleNetworks, one: MeshCluster, other: MeshCluster) -> Iterator[Diagnostic]:
    """Yield whether nodes of one cluster send packets that are too large for the network of the other one."""
    ours, theirs = (
        {
            subnet.network_id: visible.networks[subnet.network_id].mtu or 0
            for subnet in cluster.subnets
            if subnet.network_id in visible.networks
        }
        for cluster in (one, other)
    )
    taken = min(theirs.values(), default=0)
    for network_id, mtu in ours.items():
        if mtu > taken > 0:
            yield Diagnostic(
                code="network.mtu-differs",
                where=f"{one.name} to {other.name}",
                what=f"a network of {one.name} has an MTU of {mtu}, and one of {other.name} has {taken}",
                why="TCP finds out what fits; larger datagrams, such as those of tunnels, may be lost",
                fix=visible.openstack("network", "set", "--mtu", str(taken), network_id)
                + "  # all machines there get it with their next lease",
                status=DiagnosticStatus.WARNING,
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
        ids = {subnet.id for subnet in other.subnets}
        if any(subnet.id in ids for subnet in visible.connected(router_id)):
            yield from _last_router(visible, router_id, routes, one, other, block)
            return
        routes_by_prefix = ((ipaddress.ip_network(each.destination), each) for each in routes)
        route = longest(routes_by_prefix, block)
        if route is None:
            target = next(subnet for subnet in other.subnets if subnet.ip_version == block.version)
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
        ipaddress.ip_address(route.nexthop)
        for route in routes
        if block.overlaps(ipaddress.ip_network(route.destination))
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
    here = (ipaddress.ip_network(route.destination) for route in routes if route.nexthop == str(address))
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


# --- inside -----------------------------------------------------------------------------------


ALL = frozenset({"controlplane", "etcd", "worker"})
SERVERS = frozenset({"controlplane"})
ETCD = frozenset({"etcd"})
KUBERNETES = (
    (ALL, SERVERS, 6443, "nodes ask the Kubernetes API"),
    (ALL, ALL, 10250, "the Kubernetes API and metrics-server ask the kubelets"),
    (SERVERS | ETCD, ETCD, 2379, "the Kubernetes API keeps its state in etcd"),
    (ETCD, ETCD, 2380, "members of etcd agree with one another"),
)
"""Roles of those who send, roles of those who receive, TCP port, and what it is for."""
SPOKEN: tuple[Literal["tcp", "udp"], ...] = ("tcp", "udp")
SPEAKERS = 7946, "without it each of MetalLB's speakers believes that it is alone, and all announce one address"
JOINING = (ALL, SERVERS, 9345, "nodes of RKE2 join the cluster there")


def inside(
    visible: VisibleNetworks, cluster: MeshCluster, member: Member, required: Iterable[Passage]
) -> Iterator[Diagnostic]:
    """Yield what is blocked between the nodes of a cluster whose roles are known."""
    for sources, targets, port, why in (*KUBERNETES, *((JOINING,) if member.cluster.distribution == "rke2" else ())):
        passage = Passage(protocol="tcp", port=port, source=cluster.name, to=cluster.name, why=why)
        yield from _among(visible, cluster, sources, targets, passage)
    for protocol in SPOKEN if cluster.speakers else ():
        passage = Passage(protocol=protocol, port=SPEAKERS[0], source=cluster.name, to=cluster.name, why=SPEAKERS[1])
        yield from _among(visible, cluster, ALL, ALL, passage)
    between = (each for each in required if each.source == cluster.name and each.target == "nodes")
    for passage in {(each.protocol, each.port): each for each in between}.values():
        if passage.port != member.cilium.mesh_port:
            yield from _among(visible, cluster, ALL, ALL, replace(passage, to=cluster.name))


def _among(
    visible: VisibleNetworks, cluster: MeshCluster, sources: frozenset[str], targets: frozenset[str], passage: Passage
) -> Iterator[Diagnostic]:
    receivers = [port for port in cluster.ports if targets & cluster.roles.get(port.id, frozenset())]
    senders = [port for port in cluster.ports if sources & cluster.roles.get(port.id, frozenset())]
    if len(receivers) == 1:  # security groups do not filter what a machine sends to itself
        senders = [port for port in senders if port not in receivers]
    one, other = (replace(cluster, ports=ports, others=cluster.ports) for ports in (senders, receivers))
    yield from admission(visible, one, other, passage)


# --- examination ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Clusters of a mesh, the traffic that must pass between them, and the problems found."""

    clusters: tuple[MeshCluster, ...]
    passages: tuple[Passage, ...]
    findings: tuple[Diagnostic, ...]
    """Errors first."""

    @property
    def ok(self) -> bool:
        """Whether there are no errors; what these credentials do not show has the status unknown."""
        return not errors(self.findings)

    def data(self) -> Values:
        """Return it as plain data."""
        return {
            "clusters": [cluster.name for cluster in self.clusters],
            "ok": self.ok,
            "required": [asdict(passage) for passage in self.passages],
            "findings": [finding.data() for finding in self.findings],
        }

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the required traffic: from where, to where, what, why; traffic in both directions once."""
        required = {
            (describe(passage), passage.target, passage.source, passage.to): passage for passage in self.passages
        }
        for (what, target, source, to), each in required.items():
            back = (what, target, to, source) in required and target != "mesh address"
            if not back or source < to:
                yield row(each, both_ways=back)

    def __str__(self) -> str:
        end = f"{', '.join(cluster.name for cluster in self.clusters)}: {summary(self.findings)}"
        return "\n".join([*columns([HEADER, *self.rows()]), "", *map(str, self.findings), end])


@dataclass(frozen=True, kw_only=True)
class MeshNodes:
    """The nodes of one cluster."""

    ports: Sequence[PortRecord] = ()
    """The ports by which they reach one another."""
    subnets: Sequence[SubnetRecord] = ()
    """The subnets of these ports, or those that the ports will be in."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles of the nodes (controlplane, etcd, worker) by the ids of their ports; empty if they are not known."""
    by_bgp: bool = False
    """Whether MetalLB announces addresses by BGP."""
    speakers: bool = False
    """Whether MetalLB announces addresses by layer 2."""


HEADER = ("from", "to", "what", "why")


def examine(visible: VisibleNetworks, members: Sequence[Member], nodes: Mapping[str, MeshNodes]) -> Examination:
    """Evaluate what was read about the nodes of clusters, by the clusters' names: pure."""
    needed = required(members)
    clusters = {each.name: mesh_cluster(each, nodes[each.name]) for each in members}
    paths = [
        each
        for pair in permutations(clusters.values(), 2)
        for each in (*routing(visible, *pair), *pod_routes(visible, *pair), *sizes(visible, *pair))
    ]
    found = [each for cluster in clusters.values() for each in own_addresses(visible, cluster)]
    found += _each_command_once(paths)
    for passage in needed:
        found += admission(visible, clusters[passage.source], clusters[passage.to], passage)
    for member in members:
        found += inside(visible, clusters[member.name], member, needed)
    return Examination(
        clusters=tuple(clusters.values()), passages=tuple(needed), findings=tuple(by_weight(_each_command_once(found)))
    )


def mesh_cluster(member: Member, nodes: MeshNodes) -> MeshCluster:
    """Return a cluster as the other clusters of the mesh see it."""
    cilium, pods = member.cilium, split(member.cluster.cluster_cidr)
    return MeshCluster(
        name=member.name,
        ports=nodes.ports,
        subnets=nodes.subnets,
        roles=nodes.roles,
        pod_networks=tuple(pods) if cilium.routing == "native" else (),
        by_bgp=nodes.by_bgp,
        speakers=nodes.speakers,
        mesh_address=cilium.mesh_address if cilium.mesh_service == "LoadBalancer" else None,
    )


def _each_command_once(found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield diagnostics without those that an earlier command fixes: a route often serves both directions."""
    commands: set[str] = set()
    for diagnostic in found:
        if diagnostic.fix not in commands:
            yield diagnostic
        if diagnostic.fix.startswith("openstack "):
            commands.add(diagnostic.fix)
