"""Which problems of a mesh the spec itself fixes: rules and pairs that it declares, and that do not exist yet."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from openstack_prep.base import ranges
from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw
from openstack_prep.core.model import Resource
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.mesh.visible import VisibleNetworks
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.network.security_group import SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SELF


@dataclass(frozen=True)
class Declared:
    """What a spec declares for the project of a cluster."""

    cluster: RkeCluster
    resources: Sequence[Resource]

    def _mine(self) -> Iterator[object]:
        return (each for each in self.resources if getattr(each, "owner", None) == self.cluster.owner)

    def ports(self, ports: Iterable[Raw]) -> list[Raw]:
        """Return the ports of the cluster's nodes, with the pairs that are declared for its stack."""
        pools = {each.name: each for each in self._mine() if isinstance(each, AddressPool)}
        wanted: list[Range] = []
        for each in self._mine():
            if isinstance(each, AddressPairs) and each.stack == self.cluster.stack:
                wanted += ranges.read(each.addresses or ())
                wanted += [one for name in each.pools if name in pools for one in pools[name].ranges]
        more = [{"ip_address": block} for block in ranges.blocks(wanted)]
        return [{**port, "allowed_address_pairs": [*port["allowed_address_pairs"], *more]} for port in ports]

    def groups(self, groups: Mapping[str, Raw], project_id: str | None) -> dict[str, Raw]:
        """Return the project's security groups, with the rules that are declared for them."""
        ids = {group["name"]: group_id for group_id, group in groups.items() if group["project_id"] == project_id}
        found = dict(groups)
        for each in self._mine():
            if isinstance(each, SecurityGroupRules) and each.name in ids:
                group = found[ids[each.name]]
                rules = list(_raw(each, ids))
                found[group["id"]] = {**group, "security_group_rules": [*group["security_group_rules"], *rules]}
        return found


def _raw(declared: SecurityGroupRules, ids: Mapping[str, str]) -> Iterator[Raw]:
    """Yield rules as the API has them, without those for groups that no port of the mesh has."""
    for rule in declared.rules:
        remote = declared.name if rule.remote_group == SELF else rule.remote_group
        if remote is None or remote in ids:
            yield {**rule.body(), "remote_group_id": ids[remote] if remote else None}


def as_declared(visible: VisibleNetworks, clusters: Iterable[tuple[Declared, str | None]]) -> VisibleNetworks:
    """Return the networks with all rules that the spec declares for the clusters, and the ids of their projects."""
    groups = visible.groups
    for declared, project_id in clusters:
        groups = declared.groups(groups, project_id)
    return replace(visible, groups=groups)


def fixed_by_spec(found: Iterable[Diagnostic], left: Iterable[Diagnostic], path: str) -> Iterator[Diagnostic]:
    """Yield diagnostics; the fix of those that the declared rules and pairs would remove is to apply the spec.

    A rule or pair that is added by hand has no record, so destroy would leave it.
    """
    remaining = {(each.code, each.where, each.what) for each in left}
    for each in found:
        if (each.code, each.where, each.what) in remaining:
            yield each
        else:
            verb = "address-pairs sync" if each.code in ("pairs.missing", "pairs.partial") else "apply"
            yield replace(each, fix=f"openstack-prep {verb} {shlex.quote(path)}")
