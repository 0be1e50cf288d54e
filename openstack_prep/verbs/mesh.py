"""``rke mesh``: from a spec to the problems between its clusters."""

from __future__ import annotations

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.executor import JOBS
from openstack_prep.kubernetes import mesh
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.spec import Spec
from openstack_prep.verbs import api


def look(cloud: Cloud, spec: Spec, *, path: str = "SPEC", jobs: int = JOBS) -> mesh.Examination:
    """Return the traffic that must pass between the clusters of a spec's mesh, and the problems found; only reads.

    ``path`` is the spec's file, for the commands in ``fix``.  The connection is an administrator's, or of the
    spec's own project.  Raises SpecError when fewer than two clusters take part, or when a stack has no outputs
    for its nodes; CloudError.
    """
    if any(isinstance(each, RkeCluster) for each in spec.resources):
        spec = spec.limited_to(RkeCluster.kind)
    spec, run = api.open_run(cloud, spec, jobs)
    with cloud.reading():
        try:
            return mesh.look(run, spec.resources, path=path)
        except SpecError as error:
            raise SpecError(spec.placed(error.mistakes)) from None
