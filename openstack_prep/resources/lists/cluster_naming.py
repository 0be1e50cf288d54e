"""How resources are recognised as those of a cluster: by the names and tags of programs that extensions know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from openstack_prep import extensions
from openstack_prep.resources.lists.neutron_records import GroupRecord, PortRecord, RuleRecord


class ClusterNaming:
    """The names and tags that programs give to the resources of one kind of cluster; the base knows none.

    ``Extension.clusters`` leads to a class derived from it.
    """

    def cluster_of(self, record: object) -> str:
        """Return the cluster that manages a resource, in words; empty if none is known."""
        return ""

    def removal_of(self, name: str) -> str:
        """Return the commands that remove the cluster of a resource with this name; empty if it names none."""
        return ""

    def is_own_rule(self, rule: RuleRecord, admitted: GroupRecord) -> bool:
        """Whether a program has created a rule for a group of its own, so that nobody misses the rule without it."""
        return False

    def tag_of(self, cluster_id: str) -> str:
        """Return the tag of the resources of the cluster with this id; empty if there is none."""
        return ""

    def nodes_of(self, ports: Sequence[PortRecord], cluster_id: str) -> list[PortRecord]:
        """Return the ports of the nodes of the cluster with this id."""
        return []

    def role_of(self, port: PortRecord, cluster_id: str) -> str:
        """Return the role in the name of a node's port, of the cluster with this id or of any; empty if it has none."""
        return ""


@cache
def cluster_namings() -> tuple[ClusterNaming, ...]:
    """Return those of all extensions; raises ExtensionError."""
    return tuple(extensions.load(extension.clusters)() for extension in extensions.installed() if extension.clusters)


def foreign_tags(tags: Sequence[str], wanted: str) -> list[str]:
    """Return the tags KEY=VALUE that have another value for the key of ``wanted``, such as of another cluster."""
    key = wanted.partition("=")[0] + "="
    return [tag for tag in tags if tag.startswith(key) and tag != wanted]
