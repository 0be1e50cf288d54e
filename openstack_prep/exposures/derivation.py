"""What the exposures of a spec need in OpenStack, and the names that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openstack_prep.core.model import Key, Resource
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.opened import with_opened
from openstack_prep.exposures.recordsets import with_recordsets


def derive(resources: Sequence[Resource], values: Mapping[str, Any]) -> Iterator[tuple[Resource, Key]]:
    """Yield the resources of a spec with what each cluster's exposures need, which comes from that cluster."""
    found = list(resources)
    origins = {each.key: each.key for each in resources}
    for cluster in (each for each in resources if isinstance(each, ExposedCluster)):
        found = [*with_recordsets(with_opened(found, cluster), cluster)]
        for each in found:
            origins.setdefault(each.key, cluster.key)
    yield from ((each, origins[each.key]) for each in found)
