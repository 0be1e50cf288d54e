"""``rke mesh``: from a spec to the diagnosis of the network between its clusters."""

from __future__ import annotations

from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.executor import JOBS
from openstack_prep.kubernetes import mesh
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.spec import Spec
from openstack_prep.verbs import api


def look(cloud: Cloud, spec: Spec, *, path: str = "SPEC", jobs: int = JOBS) -> mesh.Examination:
    """Return the connections that the mesh of a spec's clusters needs, and what blocks them; reads only.

    ``path`` is the spec's file, for the commands of fixes. The connection belongs to an administrator, or is scoped to
    the spec's own project. Raises SpecError if fewer than two clusters take part, or if a stack does not report its
    nodes; CloudError.
    """
    if any(isinstance(each, RkeCluster) for each in spec.resources):
        spec = spec.limited_to(RkeCluster.kind)
    spec, site = api.open_site(cloud, spec, jobs)
    with cloud.reading():
        try:
            return mesh.look(site, spec.resources, path=path)
        except SpecError as error:
            raise SpecError(spec.placed(error.mistakes)) from None
