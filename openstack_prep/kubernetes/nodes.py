"""Which machine does what: the nodes of a cluster from its groups, and what is wrong with either.

Sources: Kubernetes' "Object Names and IDs", "Labels and Selectors" and "Taints and Tolerations"; RKE's
checks of its nodes (cluster/validation.go).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.kubernetes.model import Cluster, Node, NodeGroup, Role

Machine: TypeAlias = tuple[str, str, str]
"""Name, address to reach it at, address that the others know it by."""

DEFAULT_MASTERS = 3
LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = rf"(?P<prefix>{SUBDOMAIN}/)?{WORD}"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINT = re.compile(rf"(?P<key>{KEY})(=(?P<value>{WORD})?)?:(?P<effect>\w+)")
MASTER: tuple[Role, ...] = ("controlplane", "etcd", "worker")


def nodes_of(cluster: Cluster, machines: Sequence[Machine]) -> list[Node]:
    """Return the nodes, in the order of the machines; names in small letters, as RKE makes them.

    Without groups the first three (one, of less than three) are controlplane and etcd, and all are
    workers.  Raises SpecError for machines of no group and groups without a machine.
    """
    found = list(unmatched(cluster, len(machines)))
    if found:
        raise SpecError(found)
    return [
        Node(
            name=name.lower(),
            address=address,
            internal_address=internal,
            roles=group.roles,
            labels=dict(group.labels or {}),
            taints=group.taints,
            config=dict(group.config or {}),
        )
        for index, (name, address, internal) in enumerate(machines)
        for group in [next(each for each in groups(cluster, len(machines)) if each.has(index))]
    ]


def groups(cluster: Cluster, count: int) -> Sequence[NodeGroup]:
    """Return the groups that are declared, or those for so many machines that nothing is declared of."""
    if cluster.roles:
        return cluster.roles
    masters = DEFAULT_MASTERS if count >= DEFAULT_MASTERS else 1
    return [
        NodeGroup(nodes=f"0-{masters - 1}", roles=MASTER),
        NodeGroup(nodes=f"{masters}-", roles=("worker",)),
    ]


def unmatched(cluster: Cluster, count: int) -> Iterator[Mistake]:
    """Yield machines, of so many, that belong to no group, and groups that have no machine."""
    for index, group in enumerate(cluster.roles):
        if not any(group.has(each) for each in range(count)):
            what = f"{group.nodes} matches no node: there are {_indexes(range(count))}"
            yield Mistake(f"roles[{index}].nodes", what, "correct it, or leave the group out")
        elif group.last is not None and group.last >= count:
            what = f"{group.nodes} goes past the last node: there are {_indexes(range(count))}"
            yield Mistake(f"roles[{index}].nodes", what, f"correct it, or write {_first(group)}- for all from there on")
    alone = [each for each in range(count) if not any(group.has(each) for group in groups(cluster, count))]
    if alone:
        yield Mistake("roles", f"nobody says what {_indexes(alone)} does", "add a group of theirs, such as 3-")


def _indexes(numbers: Sequence[int]) -> str:
    if not numbers:
        return "none"
    whole = numbers[-1] - numbers[0] + 1 == len(numbers) > 1
    return f"nodes {numbers[0]}-{numbers[-1]}" if whole else f"node {', '.join(map(str, numbers))}"


# --- what is wrong ------------------------------------------------------------------------


def group_mistakes(cluster: Cluster) -> Iterator[Mistake]:
    """Yield what is wrong with the groups whatever machines there are."""
    for (one, first), (two, second) in combinations(enumerate(cluster.roles), 2):
        both = max(_first(first), _first(second))
        if first.has(both) and second.has(both):
            what = f"node {both} is in roles[{one}], {first.nodes}, too"
            yield Mistake(f"roles[{two}].nodes", what, "let each node be in one group")
    for index, group in enumerate(cluster.roles):
        for key, value in (group.labels or {}).items():
            if not re.fullmatch(KEY, key):
                yield Mistake(f"roles[{index}].labels", f"{key!r} is no key of a label", "write NAME or DOMAIN/NAME")
            if value and not re.fullmatch(WORD, value):
                remedy = "use up to 63 letters, digits, hyphens, underscores and dots"
                yield Mistake(f"roles[{index}].labels", f"{value!r}, of {key}, is no value of a label", remedy)
        for number, taint in enumerate(group.taints):
            found = TAINT.fullmatch(taint)
            if not found or found["effect"] not in EFFECTS:
                what, remedy = f"{taint!r} is no taint", f"write KEY=VALUE:EFFECT; effects are {', '.join(EFFECTS)}"
                yield Mistake(f"roles[{index}].taints[{number}]", what, remedy)


def _first(group: NodeGroup) -> int:
    return int(group.nodes.partition("-")[0])


def node_mistakes(nodes: Sequence[Node]) -> Iterator[Mistake]:
    """Yield what is wrong with the names and addresses of nodes."""
    for node in nodes:
        if not re.fullmatch(SUBDOMAIN, node.name) or len(node.name) > 253:
            what = f"{node.name!r} is no name for a node"
            yield Mistake("nodes", what, "name machines with small letters, digits, hyphens and dots")
        for address in {node.address, node.internal_address}:
            if not is_address(address) and not re.fullmatch(SUBDOMAIN, address):
                yield Mistake("nodes", f"{address!r}, of {node.name}, is no address", "give an IP address or a name")
    for kind in ("name", "address", "internal_address"):
        for value, times in Counter(getattr(node, kind) for node in nodes).items():
            if times > 1:
                yield Mistake("nodes", f"{times} have the {kind} {value}", "give each its own")


def missing(roles: Iterable[Role], said: Sequence[Sequence[Role]]) -> Iterator[Mistake]:
    """Yield the roles that nobody has; without anything said there is nothing to tell."""
    for role in roles:
        if said and not any(role in each for each in said):
            yield Mistake("roles", f"no node is {role}", f"make at least one {role}")


def etcd_warning(etcd: int) -> Iterator[str]:
    """Yield that so many nodes with etcd are one too many."""
    if etcd and etcd % 2 == 0:
        yield f"{etcd} nodes are etcd: they outlive the loss of as many as {etcd - 1} do; make it odd"


def taint_parts(taint: str) -> tuple[str, str, str]:
    """Return key, value and effect of a taint; raises ValueError."""
    found = TAINT.fullmatch(taint)
    if not found:
        raise ValueError(f"{taint!r} is no taint; write KEY=VALUE:EFFECT")
    return found["key"], found["value"] or "", found["effect"]
