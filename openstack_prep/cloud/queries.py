"""Lists that the lease and the kinds share."""

from __future__ import annotations

from collections.abc import Sequence

from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.run import query


@query
def in_project(run: CloudRun, collection: str, member: str, project_id: str) -> Sequence[Values]:
    """Return all Neutron resources of a kind in a project, such as ("security-groups", "security_group")."""
    return run.admin.network.list(f"/{collection}", f"{member}s", project_id=project_id)
