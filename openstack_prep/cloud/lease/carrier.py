"""Where the lease lies: the description of a project's default security group, read and swapped."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from openstack_prep.base.errors import CloudError, LeaseHeld, NotAllowed, NotFound, PrepError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease.text import Description, Entry, digest
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Resource

CHANGED = (409, 412)
"""What Neutron answers when somebody was faster."""


class Vanished(PrepError):
    """The project went while we looked at its lease."""


@dataclass(frozen=True)
class Group:
    """A project's default security group as it was read."""

    cloud: Cloud
    id: str
    revision: int
    text: Description

    def again(self) -> Group:
        """Read it anew, by its id: a list would make the group of a deleted project anew."""
        return _group(self.cloud, self.cloud.network.get(f"/security-groups/{self.id}")["security_group"])

    def swap(self, text: Description) -> Group:
        """Write the description unless it was changed since; raises CloudError with status 412 then."""
        answer = self.cloud.network.put(
            f"/security-groups/{self.id}",
            {"security_group": {"description": text.write()}},
            headers={"If-Match": f"revision_number={self.revision}"},
        )
        return _group(self.cloud, answer["security_group"])


def _group(cloud: Cloud, raw: dict[str, object]) -> Group:
    if "revision_number" not in raw:
        raise NotFound("this Neutron counts no revisions (extension standard-attr-revisions)")
    return Group(
        cloud, str(raw["id"]), int(str(raw["revision_number"])), Description.read(str(raw.get("description") or ""))
    )


@dataclass(frozen=True)
class Sight:
    """The lease of a spec as it was seen before anything else was read.

    ``project`` is where it lies, None for the connection's own.  ``group`` is None when there was nothing to see.
    """

    spec: str
    project: Resource | None
    declared: bool = False
    """Whether the spec declares the project."""
    existed: bool = True
    """Whether the project existed."""
    group: Group | None = None

    @property
    def holder(self) -> Entry | None:
        """Who was at work on the spec."""
        return self.group.text.of_spec(digest(self.spec)) if self.group else None


def look(site: Site, spec: str, project: Resource | None, *, declared: bool = False) -> Sight:
    """Return the lease as it stands; what cannot be read is said by who wants to take it.  One request."""
    group, existed = None, True
    with contextlib.suppress(CloudError):
        existed = project is None or project_id(site, project) is not None
        group = read(site, project) if existed else None
    return Sight(spec, project, declared, existed, group)


def project_id(site: Site, project: Resource | None) -> str | None:
    found = site.find_project_id(project)
    return None if found == "None" else found  # an unscoped token's


def read(site: Site, project: Resource | None) -> Group:
    """Return the default group of a project as whoever may see it; raises NotFound, NotAllowed."""
    owner = project_id(site, project)
    if owner is None:
        raise NotFound("no project to keep it in")

    def listed(cloud: Cloud) -> list[dict[str, object]]:
        found = cloud.network.list("/security-groups", "security_groups", name="default", project_id=owner)
        return [group for group in found if group.get("name") == "default"]

    try:
        found, cloud = listed(site.admin), site.admin
    except NotAllowed:
        found = []
    if not found and (tenant := site.find_tenant(project)) not in (None, site.admin):
        assert tenant is not None
        found, cloud = listed(tenant), tenant
    if not found:
        raise NotFound("the project has no default security group that these credentials may see")
    return _group(cloud, found[0])


def unlock(sight: Sight) -> None:
    """Take a lease from the run that was seen to hold it; raises LeaseHeld when another one holds it by now."""
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
            raise LeaseHeld(f"spec {sight.spec} is being applied by {now} by now; nothing was changed")
        holder = now
