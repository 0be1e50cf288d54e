"""The servers of a stack, those of nested stacks included.

Source: Orchestration API v1, "List resources" (nested_depth).
"""

from __future__ import annotations

from functools import partial

from openstack_prep.model import Resource
from openstack_prep.resources.heat import HeatStack
from openstack_prep.site import Site, only_one

SERVER = "OS::Nova::Server"


def servers_of(site: Site, project: Resource | None, stack: str) -> frozenset[str] | None:
    """Return the ids of the servers that a project's stack has made; None when there is no such stack yet.

    Raises NotAllowed when nobody may look: what we cannot see, we must not take for absent.
    """
    cloud = site.find_tenant(project)
    if cloud is None:
        if site.acting_user(project) is not None or site.find_project_id(project) is None:
            return None  # who would have made it is not there yet
        cloud = site.tenant(project)
    listed = site.once(("stacks", project), partial(cloud.orchestration.list, "/stacks", "stacks"))
    found = only_one((each for each in listed if each["stack_name"] == stack), f"stack/{stack}")
    if found is None:
        return None
    resources = site.once(("stack resources", found["id"]), lambda: HeatStack(cloud, stack, found["id"]).resources)
    return frozenset(
        each["physical_resource_id"]
        for each in resources
        if each["resource_type"] == SERVER and each["physical_resource_id"]
    )
