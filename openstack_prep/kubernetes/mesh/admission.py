"""Whether the security groups of nodes let traffic out to, and in from, the nodes of another cluster.

Source: Networking API v2.0, "Security group rules" and "Address groups"; groups only add to one another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.kubernetes.cilium import Passage
from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks
from openstack_prep.neutron.rules import Block, Traffic, covers
from openstack_prep.neutron.rules import admission as admitted
from openstack_prep.resources.lists.neutron_records import GroupRecord, PortRecord

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
    versions = {each.ip_version for each in one.subnets} & {each.ip_version for each in other.subnets}
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
        return [RemotePeer(each, each) for each in networks if each.version == version]
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
        """Return the commands that give ports a group: that of the other nodes, or a new one."""
        others = [each for port in self.cluster.ports for each in port.security_groups]
        name = others[0] if others else f"mesh-{self.cluster.name}"
        owner = self.visible.for_owner(ports[0])
        commands = [] if others else [self.visible.openstack("security", "group", "create", *owner, name)]
        commands += [self.visible.openstack("port", "set", "--security-group", name, port.id) for port in ports]
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
