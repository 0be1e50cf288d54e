"""The stacks of a project, as Heat lists them: one list a project.

Source: Orchestration API v1, "List stacks".
"""

from __future__ import annotations

from collections.abc import Sequence

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.site import Site, only_one
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query

GONE = "DELETE_COMPLETE"  # Heat lists it still for a moment


def stack_of(site: Site, project: Resource | None, name: str, *, elsewhere: bool = False) -> tuple[Cloud, Raw] | None:
    """Return a project's stack, by name or id, and who may see it; None when there is no such stack yet.

    Whoever has the role admin anywhere is shown the stacks of all projects: ``elsewhere`` takes one of
    another's when the project has none.  Raises NotUnique, and NotAllowed when nobody may look: what we
    cannot see, we must not take for absent.
    """
    cloud = site.find_tenant(project)
    if cloud is None:
        if site.acting_user(project) is not None or site.find_project_id(project) is None:
            return None  # who would have made it is not there yet
        cloud = site.tenant(project)
    named = [each for each in stacks_of(site, cloud) if name in (each["stack_name"], each["id"])]
    own = [each for each in named if each.get("project") in (None, cloud.project_id)]
    found = only_one(own or (named if elsewhere else ()), f"stack/{name}")
    return (cloud, found) if found else None


@query
def stacks_of(site: Site, cloud: Cloud) -> Sequence[Raw]:
    """Return the stacks that one identity sees, without those that are gone."""
    return [each for each in cloud.orchestration.list("/stacks", "stacks") if each["stack_status"] != GONE]
