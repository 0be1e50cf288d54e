"""The nodes of a cluster with their roles, and checks of nodes and of groups of nodes.

Sources: the Kubernetes documentation ("Object Names and IDs", "Labels and Selectors", "Taints and Tolerations");
RKE's checks of nodes (cluster/validation.go).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.kubernetes.model import LABEL, WORD, KubernetesCluster, Node, NodeGroup, Role

Machine: TypeAlias = tuple[str, str, str]
"""Name, address to reach the machine, internal address for the other nodes."""

DEFAULT_MASTERS = 3
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
KEY = rf"(?P<prefix>{SUBDOMAIN}/)?{WORD}"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINT = re.compile(rf"(?P<key>{KEY})(=(?P<value>{WORD})?)?:(?P<effect>\w+)")
MASTER: tuple[Role, ...] = ("controlplane", "etcd", "worker")
REQUIRED: tuple[Role, ...] = ("controlplane", "etcd")


def nodes_of(cluster: KubernetesCluster, machines: Sequence[Machine]) -> list[Node]:
    """Return the nodes in the order of the machines; names are in lower case, as RKE writes them.

    Without groups the first three machines (of fewer than three: the first) are controlplane and etcd, and all
    are workers.  Raises SpecError for machines without a group and groups without a machine.
    """
    if mistakes := list(unmatched(cluster, len(machines))):
        raise SpecError(mistakes)
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
        for group in [next(group for group in groups(cluster, len(machines)) if group.has(index))]
    ]


def groups(cluster: KubernetesCluster, count: int) -> Sequence[NodeGroup]:
    """Return the declared groups, else the default groups for ``count`` machines."""
    if cluster.roles:
        return cluster.roles
    masters = DEFAULT_MASTERS if count >= DEFAULT_MASTERS else 1
    return [
        NodeGroup(nodes=f"0-{masters - 1}", roles=MASTER),
        NodeGroup(nodes=f"{masters}-", roles=("worker",)),
    ]


def unmatched(cluster: KubernetesCluster, count: int) -> Iterator[Mistake]:
    """Yield groups without a machine, and those of ``count`` machines that have no group."""
    for index, group in enumerate(cluster.roles):
        if not any(group.has(each) for each in range(count)):
            what = f"{group.nodes} matches no node (the cluster has {_indexes(range(count))})"
            yield Mistake(f"roles[{index}].nodes", what, "correct the range, or remove the group")
        elif group.last is not None and group.last >= count:
            what = f"{group.nodes} exceeds the last node (the cluster has {_indexes(range(count))})"
            yield Mistake(f"roles[{index}].nodes", what, f"correct the range, or write {_first(group)}-")
    alone = [each for each in range(count) if not any(group.has(each) for group in groups(cluster, count))]
    if alone:
        what = f"{_indexes(alone)} {'has' if len(alone) == 1 else 'have'} no role"
        yield Mistake("roles", what, f"add a group for them, such as {alone[0]}-")


def _indexes(numbers: Sequence[int]) -> str:
    if len(numbers) < 2:
        return f"node {numbers[0]}" if numbers else "no nodes"
    contiguous = numbers[-1] - numbers[0] + 1 == len(numbers)
    return f"nodes {numbers[0]}-{numbers[-1]}" if contiguous else f"nodes {', '.join(map(str, numbers))}"


# --- checks -------------------------------------------------------------------------------


def group_mistakes(cluster: KubernetesCluster) -> Iterator[Mistake]:
    """Yield mistakes in the groups that do not depend on the machines."""
    for (one, first), (two, second) in combinations(enumerate(cluster.roles), 2):
        both = max(_first(first), _first(second))
        if first.has(both) and second.has(both):
            what = f"node {both} is also in roles[{one}] ({first.nodes})"
            yield Mistake(f"roles[{two}].nodes", what, "put each node into one group only")
    for index, group in enumerate(cluster.roles):
        for key, value in (group.labels or {}).items():
            if found := label_fault(key, value):
                yield Mistake(f"roles[{index}].labels", *found)
        for number, taint in enumerate(group.taints):
            if found := taint_fault(taint):
                yield Mistake(f"roles[{index}].taints[{number}]", *found)


def label_fault(key: str, value: str) -> tuple[str, str] | None:
    """Return what is wrong with a label, and the fix; None for a valid one."""
    if not re.fullmatch(KEY, key):
        return f"{key!r} is not a label key", "write NAME or DOMAIN/NAME"
    if value and not re.fullmatch(WORD, value):
        fix = "use at most 63 letters, digits, hyphens, underscores and dots"
        return f"{value!r} is not a valid value of label {key}", fix
    return None


def taint_fault(taint: str) -> tuple[str, str] | None:
    """Return what is wrong with a taint, and the fix; None for a valid one."""
    found = TAINT.fullmatch(taint)
    if found and found["effect"] in EFFECTS:
        return None
    return f"{taint!r} is not a taint", f"write KEY=VALUE:EFFECT with one of the effects {', '.join(EFFECTS)}"


def _first(group: NodeGroup) -> int:
    return int(group.nodes.partition("-")[0])


def node_mistakes(nodes: Sequence[Node]) -> Iterator[Mistake]:
    """Yield mistakes in the names and addresses of nodes."""
    for node in nodes:
        if not re.fullmatch(SUBDOMAIN, node.name) or len(node.name) > 253:
            what, fix = f"{node.name!r} is not a valid node name", "use lower-case letters, digits, hyphens and dots"
            yield Mistake("nodes", what, fix)
        for address in {node.address, node.internal_address}:
            if not is_address(address) and not re.fullmatch(SUBDOMAIN, address):
                yield Mistake(
                    "nodes", f"{address!r} of {node.name} is not an address", "use an IP address or a host name"
                )
    for kind in ("name", "address", "internal_address"):
        for value, times in Counter(getattr(node, kind) for node in nodes).items():
            if times > 1:
                yield Mistake("nodes", f"{times} nodes have the {kind} {value}", f"give each node its own {kind}")


def missing_roles(required: Iterable[Role], assigned: Sequence[Sequence[Role]]) -> Iterator[Mistake]:
    """Yield required roles that no node has; nothing when no roles are assigned yet."""
    for role in required:
        if assigned and not any(role in roles for roles in assigned):
            yield Mistake("roles", f"no node has role {role}", f"give at least one node role {role}")


def repelling(taints: Iterable[str]) -> list[str]:
    """Return the taints with which a node takes no pods without a toleration."""
    return [taint for taint in taints if taint.rpartition(":")[2] in ("NoSchedule", "NoExecute")]


def taint_warning(taints: Sequence[Iterable[str]]) -> Iterator[str]:
    """Yield a warning when no node takes pods without a toleration; ``taints`` are those of each node."""
    found = list(map(repelling, taints))
    if found and all(found):
        shown = ", ".join(dict.fromkeys(each for of_node in found for each in of_node))
        yield f"every node has a taint ({shown}), so pods that do not tolerate it stay Pending; leave a node without it"


def etcd_warning(etcd: int) -> Iterator[str]:
    """Yield a warning when the number of etcd nodes is even."""
    if etcd and etcd % 2 == 0:
        yield f"{etcd} etcd nodes tolerate no more failures than {etcd - 1}; use an odd number"


def worker_warning(assigned: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a warning when no node is a worker."""
    if assigned and not any("worker" in roles for roles in assigned):
        yield "no node has role worker, so pods run only where they tolerate the taints of the other roles"


def taint_parts(taint: str) -> tuple[str, str, str]:
    """Return key, value and effect of a taint; raises ValueError."""
    found = TAINT.fullmatch(taint)
    if not found:
        raise ValueError(f"{taint!r} is not a taint; write KEY=VALUE:EFFECT")
    return found["key"], found["value"] or "", found["effect"]
