"""What the nodes of an RKE cluster do by its cluster.yml, and what those that stay will do.

Source: RKE's documentation, "Adding and Removing Nodes": what a node is to do is what cluster.yml says, at the next
``rke up``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from openstack_prep.base.errors import Mistake
from openstack_prep.kubernetes import cluster_yml
from openstack_prep.kubernetes.cluster import rke_files
from openstack_prep.kubernetes.cluster.rke_scene import RkeFields
from openstack_prep.kubernetes.nodes import groups
from openstack_prep.resources.files.marked_files import documents
from openstack_prep.resources.orchestration.stack_outputs import Outputs

PRECIOUS = ("controlplane", "etcd")
"""What a node of a cluster that runs does not lose without harm: the others count on it."""


@dataclass(frozen=True)
class NewRoles:
    """A node that stays and will do something else."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return f"roles {self.name}: {', '.join(self.before) or 'none'} -> {', '.join(self.after)}"

    @property
    def in_file(self) -> str:
        """What tells the same of cluster.yml."""
        return f"{cluster_yml.FILE}: nodes.{self.name}.role "


def changes(cluster: RkeFields, outputs: Outputs, there: Mapping[str, str]) -> tuple[NewRoles, ...]:
    """Return the nodes that will do something else than our files (texts by name) say, once the stack is as declared.

    Of RKE2 there are none: a node is a server or an agent by its stack, and cannot become the other.
    """
    before = _roles_in(there.get(cluster_yml.FILE, "")) if cluster.distribution == "rke" else {}
    usable = outputs.settled and not list(rke_files.of_outputs(cluster, outputs))
    names = [name.lower() for name, *_ in rke_files.machines(cluster, outputs)] if usable else list(before)
    count = rke_files.to_come(cluster, outputs) if usable else rke_files.how_many(cluster, None)
    count = len(names) if count is None else count
    found = []
    for index, name in enumerate(names[:count]):
        group = next((each for each in groups(cluster, count) if each.has(index)), None)
        if group and name in before and {*group.roles} != {*before[name]}:
            found.append(NewRoles(name, before[name], group.roles))
    return tuple(found)


def losses(found: tuple[NewRoles, ...]) -> Iterator[Mistake]:
    """Yield what a cluster that runs would lose by nodes that stay."""
    for each in found:
        lost = [role for role in PRECIOUS if role in each.before and role not in each.after]
        if lost:
            remedy = "write roles into the spec that keep it, or take it out of etcd first and consent"
            yield Mistake(str(each), f"it stays, and would be {' and '.join(lost)} no more", remedy)


def _roles_in(text: str) -> dict[str, tuple[str, ...]]:
    """Return the roles that a cluster.yml gives its nodes, by name."""
    read = documents(text) or [None]
    nodes: object = read[0].get("nodes") if isinstance(read[0], Mapping) else None
    found = {}
    for each in nodes if isinstance(nodes, list) else ():
        name, roles = (each.get("hostname_override"), each.get("role")) if isinstance(each, Mapping) else (None, None)
        if isinstance(name, str) and isinstance(roles, list):
            found[name] = tuple(map(str, roles))
    return found
