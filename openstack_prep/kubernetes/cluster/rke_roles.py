"""Changes of roles of nodes that remain in an RKE cluster.

Source: RKE's documentation, "Adding and Removing Nodes": the next ``rke up`` applies the roles of cluster.yml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from openstack_prep.base.errors import Mistake
from openstack_prep.kubernetes import cluster_yml
from openstack_prep.kubernetes.cluster import rke_files
from openstack_prep.kubernetes.cluster.rke_related import RkeFields
from openstack_prep.kubernetes.nodes import groups
from openstack_prep.resources.files.marked_files import documents
from openstack_prep.resources.orchestration.stack_outputs import Outputs

PRECIOUS = ("controlplane", "etcd")
"""Roles that a node of a running cluster must not lose unnoticed."""


@dataclass(frozen=True)
class NewRoles:
    """A node that remains in the cluster and changes its roles."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return f"roles {self.name}: {', '.join(self.before) or 'none'} -> {', '.join(self.after)}"

    @property
    def in_file(self) -> str:
        """Start of the same change in the drift of cluster.yml."""
        return f"{cluster_yml.FILE}: nodes.{self.name}.role "


def changes(cluster: RkeFields, outputs: Outputs, there: Mapping[str, str]) -> tuple[NewRoles, ...]:
    """Return the nodes whose roles will differ from the written files (texts by name) when the stack is as declared.

    Nodes of RKE2 do not change roles: the stack creates servers and agents separately.
    """
    before = _roles_in(there.get(cluster_yml.FILE, "")) if cluster.distribution == "rke" else {}
    usable = outputs.settled and not list(rke_files.output_mistakes(cluster, outputs))
    names = [name.lower() for name, *_ in rke_files.machines(cluster, outputs)] if usable else list(before)
    count = rke_files.planned_nodes(cluster, outputs) if usable else rke_files.count_nodes(cluster, None)
    count = len(names) if count is None else count
    found = []
    for index, name in enumerate(names[:count]):
        group = next((each for each in groups(cluster, count) if each.has(index)), None)
        if group and name in before and {*group.roles} != {*before[name]}:
            found.append(NewRoles(name, before[name], group.roles))
    return tuple(found)


def list_losses(found: tuple[NewRoles, ...]) -> Iterator[Mistake]:
    """Yield roles that remaining nodes of a running cluster would lose."""
    for each in found:
        lost = [role for role in PRECIOUS if role in each.before and role not in each.after]
        if lost:
            what = f"would lose {' and '.join(f'role {role}' for role in lost)} while remaining in the cluster"
            fix = "declare roles in the spec that keep it, or remove the node from etcd and allow the change"
            yield Mistake(str(each), what, fix)


def _roles_in(text: str) -> dict[str, tuple[str, ...]]:
    """Return the roles of the nodes in a cluster.yml, by name."""
    read = documents(text) or [None]
    nodes: object = read[0].get("nodes") if isinstance(read[0], Mapping) else None
    found = {}
    for each in nodes if isinstance(nodes, list) else ():
        name, roles = (each.get("hostname_override"), each.get("role")) if isinstance(each, Mapping) else (None, None)
        if isinstance(name, str) and isinstance(roles, list):
            found[name] = tuple(map(str, roles))
    return found
