"""From a spec to the problems between its clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from openstack_prep.base import ranges
from openstack_prep.base.diagnostic import Diagnostic, by_weight
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.ranges import Range
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.kubernetes.cluster import rke_files
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.mesh.examination import Examination, MeshNodes, examine
from openstack_prep.kubernetes.mesh.view import VisibleNetworks, read
from openstack_prep.kubernetes.nodes import nodes_of
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.heat.stacks import Outputs, read_outputs, servers_of
from openstack_prep.resources.lists.neutron_records import AddressPair, GroupRecord, PortRecord, RuleRecord
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.security_group import SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SELF
from openstack_prep.resources.orchestration.existing import Existing
from openstack_prep.resources.orchestration.stack import Stack

# --- declaration ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeclaredProject:
    """What a spec declares for the project of a cluster."""

    cluster: RkeCluster
    resources: Sequence[Resource]

    def _mine(self) -> Iterator[object]:
        return (resource for resource in self.resources if getattr(resource, "owner", None) == self.cluster.owner)

    def ports(self, ports: Iterable[PortRecord]) -> list[PortRecord]:
        """Return the ports of the cluster's nodes, with the pairs that are declared for its stack."""
        pools = {pool.name: pool for pool in self._mine() if isinstance(pool, AddressPool)}
        wanted: list[Range] = []
        for each in self._mine():
            if isinstance(each, AddressPairs) and each.stack == self.cluster.stack:
                wanted += ranges.read(each.addresses or ())
                wanted += [one for name in each.pools if name in pools for one in pools[name].ranges]
        blocks = ranges.blocks(wanted)
        return [_with_pairs(port, blocks) for port in ports]

    def groups(self, groups: Mapping[str, GroupRecord], project_id: str | None) -> dict[str, GroupRecord]:
        """Return the project's security groups, with the rules that are declared for them."""
        ids = {group.name: group_id for group_id, group in groups.items() if group.project_id == project_id}
        found = dict(groups)
        for each in self._mine():
            if isinstance(each, SecurityGroupRules) and each.name in ids:
                group = found[ids[each.name]]
                found[group.id] = replace(group, security_group_rules=(*group.security_group_rules, *_rules(each, ids)))
        return found


def _with_pairs(port: PortRecord, blocks: Iterable[str]) -> PortRecord:
    """Return a port with further pairs, with its own MAC address."""
    pairs = (AddressPair(ip_address=block, mac_address=port.mac_address) for block in blocks)
    return replace(port, allowed_address_pairs=(*port.allowed_address_pairs, *pairs))


def _rules(declared: SecurityGroupRules, ids: Mapping[str, str]) -> Iterator[RuleRecord]:
    """Yield rules as Neutron will store them, without those for groups that no port of the mesh has."""
    for rule in declared.rules:
        remote = declared.name if rule.remote_group == SELF else rule.remote_group
        if remote is None or remote in ids:
            yield replace(rule.record(), remote_group_id=ids[remote] if remote else None)


def as_declared(visible: VisibleNetworks, clusters: Iterable[tuple[DeclaredProject, str | None]]) -> VisibleNetworks:
    """Return the networks with all rules that the spec declares for the clusters, and the ids of their projects."""
    groups = visible.groups
    for declared, project_id in clusters:
        groups = declared.groups(groups, project_id)
    return replace(visible, groups=groups)


def fixed_by_spec(
    found: Iterable[Diagnostic], left: Iterable[Diagnostic], words: str, *, own: bool
) -> Iterator[Diagnostic]:
    """Yield diagnostics; the fix of those that the declared rules and pairs would remove is to apply the spec.

    A rule or pair that is added by hand has no record, so destroy would leave it.  ``own``: the connection is in the
    project of all pairs, so that `address-pairs sync` may allow them.
    """
    remaining = {(diagnostic.code, diagnostic.where, diagnostic.what) for diagnostic in left}
    for diagnostic in found:
        if (diagnostic.code, diagnostic.where, diagnostic.what) in remaining:
            yield diagnostic
        else:
            verb = "address-pairs sync" if own and diagnostic.code in ("pairs.missing", "pairs.partial") else "apply"
            yield replace(diagnostic, fix=f"openstack-prep {verb} {words}")


# --- from spec --------------------------------------------------------------------------------


def look(run: CloudRun, resources: Sequence[Resource], *, words: str = "SPEC") -> Examination:
    """Return the traffic that must pass between the clusters of a mesh, and the problems found; only reads.

    ``words`` are the spec's file and options, for the commands in ``fix``.  Raises SpecError when fewer than two
    clusters take part, or when a stack has no outputs for its nodes; CloudError.
    """
    clusters = [resource for resource in resources if isinstance(resource, RkeCluster) and _takes_part(resource)]
    if len(clusters) < 2:
        named = ", ".join(str(cluster.key) for cluster in clusters) or "no cluster"
        fix = "declare cilium with a mesh in two or more of rke_clusters"
        raise SpecError([Mistake("rke_clusters", f"{named} takes part in a mesh", fix)])
    seen = [_read_nodes(run, resources, cluster, words) for cluster in clusters]
    return _look(run, [DeclaredProject(cluster, resources) for cluster in clusters], seen, words)


def _takes_part(cluster: RkeCluster) -> bool:
    return cluster.cilium is not None and cluster.cilium.mesh != "none"


@dataclass(frozen=True, kw_only=True)
class ClusterNodes:
    """What exists of a cluster: the ports of its nodes, or the networks that they will be on."""

    ports: Sequence[PortRecord] = ()
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles of the nodes, by the ids of their ports."""
    networks: tuple[str, ...] = ()
    """Ids of the network that the nodes will be on."""
    others: Sequence[PortRecord] = ()
    """All ports of its project."""
    by_bgp: bool = False
    """Whether its load balancer announces addresses by BGP."""
    speakers: bool = False
    """Whether its load balancer announces addresses by layer 2."""
    diagnostic: Diagnostic | None = None


def _read_nodes(run: CloudRun, resources: Sequence[Resource], cluster: RkeCluster, words: str) -> ClusterNodes:
    outputs = read_outputs(run, cluster.owner, cluster.stack)
    project_id = run.find_project_id(cluster.owner)
    ports = ports_of(run, project_id)
    if outputs is None or not outputs.settled:
        diagnostic = _unreadable(run, cluster, project_id, outputs, words)
        network = cluster.related.parameters(cluster).get("network")
        network_id = run.find_id(cluster.sibling(Existing, network, of="network")) if network else None
        return ClusterNodes(networks=(network_id,) if network_id else (), others=ports, diagnostic=diagnostic)
    mistakes = [
        cluster.mistake(f"{mistake.where}: {mistake.what}", mistake.fix)
        for mistake in rke_files.mistakes(cluster, outputs)
    ]
    if mistakes:
        raise SpecError(mistakes)
    machines = rke_files.machines(cluster, outputs)
    servers = servers_of(run, cluster.owner, cluster.stack) or ()
    names = {address: name for name, _, address in machines}
    nodes = [_named(port, names) for port in ports if port.device_id in servers]
    found = [port for port in nodes if port]
    does = {node.internal_address: node.roles for node in nodes_of(rke_files.as_declared(cluster, outputs), machines)}
    roles = {port.id: frozenset(role for at in _addresses(port) & does.keys() for role in does[at]) for port in found}
    protocols: set[str] = {pool.protocol for pool in cluster.metallb.pools} if cluster.metallb else set()
    if cluster.cilium and cluster.cilium.load_balancer:
        protocols |= cluster.cilium.load_balancer.protocols
    if cluster.kube_vip:
        protocols.add("layer2")
    return ClusterNodes(
        ports=found,
        roles=roles,
        others=ports,
        by_bgp="bgp" in protocols,
        speakers="layer2" in protocols,
        diagnostic=_without_port(resources, cluster, names, found, words),
    )


def _addresses(port: PortRecord) -> set[str]:
    return {fixed_ip.ip_address for fixed_ip in port.fixed_ips}


def _without_port(
    resources: Sequence[Resource],
    cluster: RkeCluster,
    names: Mapping[str, str],
    ports: Sequence[PortRecord],
    words: str,
) -> Diagnostic | None:
    """Return a diagnostic for nodes that the stack's outputs name and that have no port."""
    there = {address for port in ports for address in _addresses(port)}
    lost = [f"{name} {address}" for address, name in names.items() if address not in there]
    if not lost:
        return None
    stacks = [resource for resource in resources if isinstance(resource, Stack) and resource.name == cluster.stack]
    return Diagnostic(
        code="machine.missing",
        where=cluster.name,
        what=f"no server of stack/{cluster.stack} has a port with the address of {', '.join(lost)}",
        why="address pairs and security groups apply to its port",
        fix=f"openstack-prep apply {words}"
        if stacks
        else f"ask the owner of stack/{cluster.stack} to re-create these servers",
    )


def _unreadable(
    run: CloudRun, cluster: RkeCluster, project_id: str | None, outputs: Outputs | None, words: str
) -> Diagnostic:
    """Return a diagnostic for nodes that cannot be read: their stack does not exist, or is not visible."""
    hidden = project_id is not None and run.find_tenant(cluster.owner) is None
    state = (
        "is not visible: these credentials have no role in its project"
        if hidden
        else "does not exist yet"
        if outputs is None
        else "is not complete"
    )
    return Diagnostic(
        code="access.denied" if hidden else "stack.not-ready",
        where=cluster.name,
        what=f"stack/{cluster.stack} {state}; addresses, groups and pairs of its nodes were not checked",
        why="whether nodes reach one another depends on their ports",
        fix="name an entry of the project by --os-cloud" if hidden else f"openstack-prep apply {words}",
    )


def _named(port: PortRecord, names: Mapping[str, str]) -> PortRecord | None:
    """Return the port of a node, by an address in its stack's outputs; Nova gives ports no names."""
    name = next((names[address] for address in _addresses(port) & names.keys()), None)
    return replace(port, name=port.name or name) if name else None


def _look(run: CloudRun, clusters: Sequence[DeclaredProject], seen: Sequence[ClusterNodes], words: str) -> Examination:
    cloud = run.admin
    visible = read(
        cloud.network,
        cloud=cloud.name,
        project_id=cloud.project_id,
        sees_all="admin" in cloud.roles,
        ports=[port for each in seen for port in each.others],
        nodes=[port for each in seen for port in each.ports],
        networks=[network_id for each in seen for network_id in each.networks],
    )
    members = [rke_files.member(cluster.cluster) for cluster in clusters]
    nodes, declared = {}, {}
    for one, each in zip(clusters, seen, strict=True):
        ids = {subnet_id for port in each.ports for subnet_id in port.subnet_ids}
        subnets = [one for one in visible.subnets.values() if one.id in ids or one.network_id in each.networks]
        name = one.cluster.name
        nodes[name] = MeshNodes(
            ports=each.ports, subnets=subnets, roles=each.roles, by_bgp=each.by_bgp, speakers=each.speakers
        )
        declared[name] = replace(nodes[name], ports=one.ports(each.ports))
    found = examine(visible, members, nodes)
    projects = [(one, run.find_project_id(one.cluster.owner)) for one in clusters]
    left = examine(as_declared(visible, projects), members, declared)
    missing = [each.diagnostic for each in seen if each.diagnostic]
    pairs = [each for each in clusters[0].resources if isinstance(each, AddressPairs | AddressPool)]
    own = all(run.find_project_id(each.owner) == cloud.project_id for each in pairs)
    fixed = fixed_by_spec(found.findings, left.findings, words, own=own)
    return replace(found, findings=tuple(by_weight([*missing, *fixed])))
