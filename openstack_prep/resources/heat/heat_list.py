"""The stacks of a project, as Heat lists them: one request per project.

Source: Orchestration API v1, "List stacks".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Resource
from openstack_prep.resources.lists.queries import stacks_of as stacks_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether a project has stacks that the spec manages."""
    cloud = run.find_tenant(project)
    if cloud is None or not cloud.has("orchestration"):
        return False
    return any(run.ownership.tag in (raw.get("tags") or ()) for raw in stacks_of(run, cloud))


def stack_names(run: CloudRun, project: Resource | None) -> list[str]:
    """Return the names of a project's stacks, as far as a connection to it lists them."""
    cloud = run.find_tenant(project)
    return [each["stack_name"] for each in stacks_of(run, cloud)] if cloud is not None else []


DEPTH = 5  # levels of nested stacks: Heat's default maximum


def stack_of(
    run: CloudRun, project: Resource | None, name: str, *, elsewhere: bool = False
) -> tuple[Cloud, Raw] | None:
    """Return a project's stack, by name or id, and the connection that sees it; None if the stack does not exist yet.

    Whoever has the role admin in any project sees the stacks of all projects: ``elsewhere`` accepts a stack of another
    project if the project has none. Raises NotUnique, and NotAllowed if no connection may list stacks: a stack that is
    not visible must not be treated as missing.
    """
    cloud = run.find_tenant(project)
    if cloud is None:
        if run.acting_user(project) is not None or run.find_project_id(project) is None:
            return None  # the user who would have created it does not exist yet
        cloud = run.tenant(project)
    named = [each for each in stacks_of(run, cloud) if name in (each["stack_name"], each["id"])]
    own = [each for each in named if each.get("project") in (None, cloud.project_id)]
    found = only_one(own or (named if elsewhere else ()), f"stack/{name}")
    return (cloud, found) if found else None
