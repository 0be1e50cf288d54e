"""The storage of the lease: the description of a project's default security group, read and swapped."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from openstack_prep.base.errors import CloudError, LeaseHeld, NotAllowed, NotFound, PrepError
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import process
from openstack_prep.cloud.lease.text import Description, Entry, digest
from openstack_prep.cloud.queries import in_project
from openstack_prep.core.model import Resource

CHANGED = (409, 412)
"""Neutron's answer if somebody else has changed the group first."""


class Vanished(PrepError):
    """The project was deleted while its lease was read."""


@dataclass(frozen=True)
class Group:
    """A project's default security group as it was read."""

    cloud: Cloud
    id: str
    revision: int
    text: Description

    def again(self) -> Group:
        """Read it again, by its id: a list would create the group of a deleted project again."""
        return _group(self.cloud, self.cloud.network.get(f"/security-groups/{self.id}")["security_group"])

    def swap(self, text: Description) -> Group:
        """Write the description unless it was changed since it was read; raises CloudError with status 412 then."""
        answer = self.cloud.network.put(
            f"/security-groups/{self.id}",
            {"security_group": {"description": text.write()}},
            headers={"If-Match": f"revision_number={self.revision}"},
        )
        return _group(self.cloud, answer["security_group"])


def _group(cloud: Cloud, raw: dict[str, object]) -> Group:
    if "revision_number" not in raw:
        raise NotFound("this Neutron does not support revisions (extension standard-attr-revisions)")
    return Group(
        cloud, str(raw["id"]), int(str(raw["revision_number"])), Description.read(str(raw.get("description") or ""))
    )


@dataclass(frozen=True)
class Sight:
    """The lease of a spec as it was before anything else was read.

    ``project`` is where the lease is stored, None for the connection's own. ``group`` is None if it was not readable.
    """

    spec: str
    project: Resource | None
    declared: bool = False
    """Whether the spec declares the project."""
    existed: bool = True
    """Whether the project existed."""
    group: Group | None = None
    ended: bool = False
    """Whether the holder's process had ended by then, such as after a kill: nobody was at work."""

    @property
    def holder(self) -> Entry | None:
        """Who has the lease."""
        return self.group.text.of_spec(digest(self.spec)) if self.group else None

    @property
    def worker(self) -> Entry | None:
        """Who was at work on the spec."""
        return None if self.ended else self.holder


def look(run: CloudRun, spec: str, project: Resource | None, *, declared: bool = False) -> Sight:
    """Return the present lease; problems are reported when the lease is taken. One request."""
    group, existed = None, True
    with contextlib.suppress(CloudError):
        existed = project is None or project_id(run, project) is not None
        group = read(run, project) if existed else None
    seen = Sight(spec, project, declared, existed, group)
    return replace(seen, ended=seen.holder is not None and process.has_ended(seen.holder))


def project_id(run: CloudRun, project: Resource | None) -> str | None:
    found = run.find_project_id(project)
    return None if found == "None" else found  # the id for an unscoped token


def read(run: CloudRun, project: Resource | None) -> Group:
    """Return the default group of a project, read by whoever may see it; raises NotFound, NotAllowed."""
    owner = project_id(run, project)
    if owner is None:
        raise NotFound("the connection is not scoped to a project")

    try:
        # the whole list, because the scan needs it, too
        found, cloud = _default_of(in_project(run, "security-groups", "security_group", owner)), run.admin
    except NotAllowed:
        found = []
    if not found and (tenant := run.find_tenant(project)) not in (None, run.admin):
        assert tenant is not None
        listed = tenant.network.list("/security-groups", "security_groups", name="default", project_id=owner)
        found, cloud = _default_of(listed), tenant
    if not found:
        raise NotFound("the credentials in use cannot see the project's default security group")
    return _group(cloud, found[0])


def _default_of(groups: Sequence[Values]) -> list[Values]:
    return [group for group in groups if group.get("name") == "default"]


def unlock(sight: Sight) -> None:
    """Remove the lease of the run that was seen to hold it; raises LeaseHeld if another run holds it by then."""
    group, holder = sight.group, sight.holder
    while group is not None and holder is not None:
        try:
            group.swap(group.text.without(holder))
            return
        except CloudError as error:
            if error.status not in CHANGED:
                raise
        group = group.again()
        now = group.text.of_spec(holder.spec)
        if now is not None and now.run != holder.run:
            raise LeaseHeld(f"spec {sight.spec} is now being applied by {now}; nothing was changed")
        holder = now
