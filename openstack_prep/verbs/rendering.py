"""``rke render``: the files of RKE and RKE2 clusters, without writing them."""

from __future__ import annotations

from openstack_prep.cloud.connection import ADMINISTRATOR, Cloud
from openstack_prep.core.observing import JOBS
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.verbs import api


def render_clusters(cloud: Cloud, wanted: api.Wanted, *, jobs: int = JOBS) -> dict[str, dict[str, str]]:
    """Return the texts of the files of RKE clusters, by cluster and by file, with stars for what nobody may see.

    Their stacks must stand.  To write them, apply a spec ``limited_to("rke_cluster")``.  Raises SpecError.
    """
    spec, run = api.open_run(cloud, wanted, jobs)
    with cloud.reading(ADMINISTRATOR):
        return {each.name: each.render(run) for each in spec.chosen if isinstance(each, RkeCluster)}
