"""The RKE and RKE2 clusters of a spec: their files, and the problems between them."""

from __future__ import annotations

from collections.abc import Sequence

from openstack_prep.base import shell
from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.entries import ADMINISTRATOR
from openstack_prep.core.executor import JOBS
from openstack_prep.kubernetes import mesh
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.spec import Spec
from openstack_prep.verbs.opening import Wanted, open_run


def render_clusters(cloud: Cloud, wanted: Wanted, *, jobs: int = JOBS) -> dict[str, dict[str, str]]:
    """Return the texts of the files of RKE2 and RKE clusters, by cluster and by file name; nothing is written.

    ``cloud`` is an administrator's connection, or one of the spec's project; ``wanted`` is a spec or a list of
    resources, whose stacks must exist. ``jobs`` is how many requests are sent at a time. Stars replace what nobody may
    see. To write the files, apply the spec. Raises SpecError when a stack or its outputs are missing; CloudError.
    """
    spec, run = open_run(cloud, wanted, jobs)
    with cloud.reading(ADMINISTRATOR):
        return {cluster.name: cluster.render(run) for cluster in spec.chosen if isinstance(cluster, RkeCluster)}


def examine_mesh(
    cloud: Cloud, spec: Spec, *, path: str = "SPEC", options: Sequence[str] = (), jobs: int = JOBS
) -> mesh.Examination:
    """Return the traffic that must pass between the clusters of a spec's mesh, and the problems found; only reads.

    ``path`` is the spec's file, and ``options`` are further words, for the commands in ``fix``.  The connection is an
    administrator's, or of the spec's own project.  Raises SpecError when fewer than two clusters take part, or when a
    stack has no outputs for its nodes; CloudError.
    """
    if any(isinstance(resource, RkeCluster) for resource in spec.resources):
        spec = spec.limited_to(RkeCluster.kind)
    spec, run = open_run(cloud, spec, jobs)
    with cloud.reading():
        try:
            return mesh.look(run, spec.resources, words=shell.join([*options, path]))
        except SpecError as error:
            raise SpecError(spec.placed(error.mistakes)) from None
