"""The servers and ports of a stack, including those of nested stacks.

Source: Orchestration API v1, "List resources" (nested_depth).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.heat.heat import PORT, SERVER, HeatResource, HeatStack
from openstack_prep.resources.heat.heat_list import stack_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


def servers_of(run: CloudRun, project: Resource | None, stack: str) -> frozenset[str] | None:
    """Return the ids of the servers of a project's stack; None if the stack does not exist yet.

    Raises NotAllowed if no connection may read it: a stack that is not visible must not be treated as missing.
    """
    return _ids_of(run, project, stack, SERVER)


def ports_in(run: CloudRun, project: Resource | None, stack: str) -> frozenset[str]:
    """Return the ids of the ports that are resources of a project's stack, whichever server has them."""
    return _ids_of(run, project, stack, PORT) or frozenset()


def _ids_of(run: CloudRun, project: Resource | None, stack: str, kind: str) -> frozenset[str] | None:
    seen = stack_of(run, project, stack)
    if seen is None:
        return None
    cloud, found = seen
    resources = _resources(run, cloud, found["stack_name"], found["id"])
    return frozenset(each.id for each in resources if each.type == kind and each.id)


@query
def _resources(run: CloudRun, cloud: Cloud, name: str, stack_id: str) -> Sequence[HeatResource]:
    """Return a stack's resources, including those of nested stacks."""
    return HeatStack(cloud, name, stack_id).resources
