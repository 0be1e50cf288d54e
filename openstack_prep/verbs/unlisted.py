"""What only users of a project can list, for an audit or an export by somebody else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.cascades.project import ProjectScope, stacks
from openstack_prep.resources.identity.project import Project

OF_USERS = ("application_credential", "object_store")
"""Kinds that only users of the project can list."""


def unlisted(run: CloudRun, home: Project | None, kinds: Collection[str] = ()) -> Iterator[str]:
    """Yield what of a project only its users can list, if the connection is not one of them; ``kinds`` select some."""
    if run.find_project_id(home) is None or run.find_tenant(home) is not None:
        return
    for kind in OF_USERS:
        if not kinds or kind in kinds:
            command = f"openstack-prep export --kind {kind} with a connection of such a user"
            yield f"every {kind}: only users of project {home.name if home else ''} can list them; {command} shows them"


def hidden_stacks(run: CloudRun, home: Project | None) -> Iterable[Raw]:
    """Return the stacks of a project to which there is no connection, so that no kind lists them.

    Raises NotAllowed if the connection is no administrator's.
    """
    project_id = run.find_project_id(home)
    if project_id is None or run.find_tenant(home) is not None or not run.admin.has("orchestration"):
        return ()
    return stacks(run, ProjectScope(project_id, home))
