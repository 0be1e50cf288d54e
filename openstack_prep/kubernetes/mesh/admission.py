"""What the security groups of nodes let out to, and in from, the nodes of another cluster.

Source: Networking API v2.0, "Security group rules" and "Address groups"; groups only add to one another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from openstack_prep.base.finding import Finding
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.cilium import Passage
from openstack_prep.kubernetes.mesh import passages
from openstack_prep.kubernetes.mesh.scene import Block, Scene, Side, addresses_of, covers
from openstack_prep.resources.lists.neutron_records import RuleRecord
from openstack_prep.resources.network.security_group_rule import is_about

WORDS = {"ingress": "in from", "egress": "out to"}


@dataclass(frozen=True)
class Peer:
    """Some addresses at the other end: ``block`` is one node's, or a whole network; ``within`` is for a rule."""

    block: Block
    within: Block
    groups: frozenset[str] = frozenset()


def admission(scene: Scene, one: Side, other: Side, passage: Passage) -> Iterator[Finding]:
    """Yield where something does not get out of one cluster's nodes, or into the other's."""
    versions = {each["ip_version"] for each in one.subnets} & {each["ip_version"] for each in other.subnets}
    for version in sorted(versions):
        receivers = _receivers(other, passage, version)
        if receivers or _anywhere(passage):
            yield from Gate(scene, passage, version, "egress", one).closed(receivers)
            yield from Gate(scene, passage, version, "ingress", other).closed(_peers(one, passage, version))


def _anywhere(passage: Passage) -> bool:
    """Whether nobody knows the receiving address yet: MetalLB will choose one."""
    return passage.target == "mesh address" and passage.address is None


def _peers(side: Side, passage: Passage, version: int) -> list[Peer]:
    """Return the nodes of a cluster, or its pods."""
    if passage.target == "pods":
        networks = map(ipaddress.ip_network, side.pod_networks)
        return [Peer(each, each) for each in networks if each.version == version]
    found = []
    for port in side.ports:
        for address in addresses_of(port):
            if address.version == version:
                found.append(_peer(side, ipaddress.ip_network(address), frozenset(port["security_groups"])))
    return found


def _peer(side: Side, block: Block, groups: frozenset[str] = frozenset()) -> Peer:
    return Peer(block, next((each for each in side.blocks(block.version) if covers(each, block)), block), groups)


def _receivers(side: Side, passage: Passage, version: int) -> list[Peer]:
    if passage.target != "mesh address":
        return _peers(side, passage, version)
    block: Block | None = ipaddress.ip_network(passage.address) if passage.address else None
    return [_peer(side, block)] if block is not None and block.version == version else []


def _whom(peers: Sequence[Peer], lacking: Sequence[Peer], within: Block) -> str:
    """Return a network, or those of its nodes that are shut out where others are not."""
    few = [str(peer.block[0]) for peer in lacking if peer.within == within]
    some = len(few) < sum(peer.within == within for peer in peers)
    return f"{', '.join(few)} of {within}" if some else str(within)


@dataclass(frozen=True)
class Gate:
    """What the groups of one cluster's nodes let through of one thing, in one direction."""

    scene: Scene
    passage: Passage
    version: int
    direction: str
    side: Side

    def closed(self, peers: Sequence[Peer]) -> Iterator[Finding]:
        """Yield the ports that do not let it through to or from all of the others."""
        by_groups: dict[frozenset[str], list[Raw]] = {}
        for port in self.side.ports:
            if port.get("port_security_enabled", True):
                by_groups.setdefault(frozenset(port["security_groups"]), []).append(port)
        shut: dict[tuple[str, str], tuple[set[str], list[Raw]]] = {}  # one rule may be enough for several groups' ports
        for groups, ports in by_groups.items():
            lacking = [peer for peer in peers if not self._lets(groups, peer)]
            if lacking and (unseen := sorted(groups - self.scene.groups.keys())):
                yield self._unseen(unseen, ports)
                continue
            for within in dict.fromkeys(peer.within for peer in lacking):
                remedy = self._rule(groups, within) if groups else self._group(ports)
                ids, mine = shut.setdefault((_whom(peers, lacking, within), remedy), (set(), []))
                ids |= groups
                mine += ports
        for (whom, remedy), (ids, mine) in shut.items():
            yield self._finding(ids, mine, whom, remedy)

    def _lets(self, groups: Iterable[str], peer: Peer) -> bool:
        listed = (self.scene.groups.get(each, {}).get("security_group_rules", ()) for each in groups)
        rules = [RuleRecord.read(rule) for each in listed for rule in each]
        mine = [
            rule
            for rule in rules
            if is_about(
                rule, self.direction, self.version, self.passage.protocol, passages.number(self.passage, self.version)
            )
        ]
        if any(rule.remote_group_id in peer.groups for rule in mine if rule.remote_group_id):
            return True
        networks = [block for rule in mine if not rule.remote_group_id for block in self._remote(rule)]
        return any(covers(each, peer.block) for each in ipaddress.collapse_addresses(networks))

    def _remote(self, rule: RuleRecord) -> list[Any]:
        """Return the networks of the other side that a rule is for."""
        if rule.remote_address_group_id:
            listed = self.scene.address_groups.get(rule.remote_address_group_id, {}).get("addresses", ())
            networks = [ipaddress.ip_network(each, strict=False) for each in listed]
            return [each for each in networks if each.version == self.version]
        everywhere = "0.0.0.0/0" if self.version == 4 else "::/0"
        return [ipaddress.ip_network(rule.remote_ip_prefix or everywhere, strict=False)]

    @property
    def _where(self) -> str:
        source, to = self.passage.source, self.passage.to
        return f"within {to}" if source == to else f"{source} to {to}"

    # --- findings -----------------------------------------------------------------------------

    def _finding(self, groups: Iterable[str], ports: Sequence[Raw], whom: str, remedy: str) -> Finding:
        told = f"the ports {self.side.port_names(port['id'] for port in ports)}"
        names = ", ".join(sorted(self.scene.groups[each]["name"] for each in groups))
        way = f"{passages.told(self.passage)} {WORDS[self.direction]} {whom}"
        nothing = f"{told} have port security and no security group: nothing gets in or out"
        what = f"{told} (groups {names}) do not let {way}" if names else nothing
        return Finding(where=self._where, what=what, why=self.passage.why, remedy=remedy)

    def _rule(self, groups: Iterable[str], within: Block) -> str:
        """Return the command for a rule more, in the group that is most the cluster's own."""
        of_all = set.intersection(*(set(port["security_groups"]) for port in self.side.ports))
        raw = (self.scene.groups[each] for each in groups)

        def rank(group: Raw) -> tuple[bool, bool, bool, str]:
            foreign = group["project_id"] != self.side.ports[0]["project_id"]
            return foreign, group["name"] == "default", group["id"] not in of_all, group["name"]

        best = min(raw, key=rank)
        words = [
            f"--{self.direction}",
            "--ethertype",
            f"IPv{self.version}",
            *passages.options(self.passage, self.version),
        ]
        return self.scene.openstack(
            "security", "group", "rule", "create", *words, "--remote-ip", str(within), best["id"]
        )

    def _group(self, ports: Sequence[Raw]) -> str:
        """Return the commands that give ports a group: that of the other nodes, or a new one."""
        others = [each for port in self.side.ports for each in port["security_groups"]]
        name = others[0] if others else f"mesh-{self.side.name}"
        owner = self.scene.for_owner(ports[0])
        commands = [] if others else [self.scene.openstack("security", "group", "create", *owner, name)]
        commands += [self.scene.openstack("port", "set", "--security-group", name, port["id"]) for port in ports]
        return " && ".join(commands)

    def _unseen(self, groups: Sequence[str], ports: Sequence[Raw]) -> Finding:
        return Finding(
            where=self._where,
            what=f"security group {', '.join(groups)} of the ports {self.side.port_names(p['id'] for p in ports)} "
            f"is not yours to see: whether it lets {passages.told(self.passage)} through cannot be told",
            why=self.passage.why,
            remedy="look with an administrator's --os-cloud",
            level="warning",
        )
