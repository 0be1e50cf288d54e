"""The ``default`` security group of a deleted project.

Neutron keeps it, and creates it again if somebody lists the groups of such a project. A destroy deletes it right after
the project, because it holds the lease until then. A run that is killed between the two requests leaves it behind;
therefore it is tagged before, and the next destroy finds it by that tag.

Source: Networking API v2.0, "Standard Attributes Tag Extension"; Neutron 29.0.0, db/securitygroups_db.py,
_ensure_default_security_group and delete_security_group (an administrator may delete a group called default).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self
from urllib.parse import quote

import tenacity

from openstack_prep.base.errors import CloudError, is_transient
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.resources.identity import home

ATTEMPTS = 5
PAUSE = 0.5  # seconds before the second attempt; doubled each time


def tag_of(ownership: OwnershipTag) -> str:
    """Return the tag of a default group whose project is about to be deleted."""
    return f"{ownership.tag}~default"


def announce(run: CloudRun, group_id: str) -> None:
    """Tag a group before its project is deleted; without the tag, a killed run would leave it behind."""
    with contextlib.suppress(CloudError):
        run.admin.network.put(f"/security-groups/{group_id}/tags/{quote(tag_of(run.ownership), safe='')}")


def remove(run: CloudRun, group_id: str) -> None:
    """Delete the group of a project that has just been deleted; temporary failures are retried here.

    A step that fails temporarily is decided again, and would find no project any more, and nothing left to do.
    Raises CloudError, for which nothing is decided again.
    """
    patient = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_transient),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_exponential(PAUSE),
        reraise=True,
    )
    try:
        patient(run.admin.network.delete, f"/security-groups/{group_id}")
    except CloudError as error:
        what = f"{error}; the project is deleted, and its security group default is left; run destroy again"
        raise CloudError(what, status=error.status) from error


@dataclass(frozen=True, kw_only=True)
class LeftGroup(Resource[CloudRun], Undeclarable):
    """A default group that an interrupted destroy has left behind."""

    kind: ClassVar[str] = "default_group"

    name: str
    """Its id, because all of these groups have the same name."""

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {each.key: observed for each, observed in cls.scan(run, None)}
        return {each.key: found[each.key] for each in wanted if each.key in found}

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the groups with our tag whose project no longer exists."""
        if not run.admin.has("network"):
            return
        for raw in run.admin.network.list("/security-groups", "security_groups", tags=tag_of(run.ownership)):
            if raw["name"] == "default" and not home.exists(run, raw["project_id"]):
                yield cls(name=raw["id"]), Observed(id=raw["id"], ours=True)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        run.admin.network.delete(f"/security-groups/{observed.id}")
