"""Records of the roles that a spec has given: tags of the project, because an assignment has no room for any.

Without a record, nothing tells such a role from one that somebody has given to a user of the spec by hand. So there is
a record only while the role exists: it is written after the role was given, and removed before the role is. A run that
is killed in between leaves a role without a record, which ``--prune`` keeps.

Source: Keystone 30.0.0, resource/schema.py, _project_tags_list_properties, at most 80.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.run import fact
from openstack_prep.resources.identity import project_tags
from openstack_prep.resources.identity.project import Project, ProjectRecord

MOST = 60
"""Most tags of a project with which a role is recorded; the others are for people and other programs."""
UNRECORDED = (
    "nothing records that this spec has given it, so somebody may have given it by hand; "
    "to remove it, run openstack role remove"
)


@dataclass
class RoleRecords:
    """The tags of one project, changed by one thread at a time."""

    run: CloudRun
    project_id: str
    tags: frozenset[str]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tag: str) -> bool:
        """Record a role; return whether it is recorded. Raises CloudError."""
        with self._lock:
            if tag not in self.tags and len(self.tags) < MOST:
                self.tags = project_tags.change(self.run, self.project_id, add=[tag])
            return tag in self.tags

    def remove(self, tag: str) -> None:
        """Remove the record of a role; raises CloudError."""
        with self._lock:
            if tag in self.tags:
                self.tags = project_tags.change(self.run, self.project_id, remove=[tag])


@fact
def records_in(run: CloudRun, project: Project) -> RoleRecords:
    """Return the records in an existing project, for all steps of a run."""
    return RoleRecords(run, run.id(project), tags_of(run, project))


def tags_of(run: CloudRun, project: Project) -> frozenset[str]:
    """Return the tags of a project."""
    observed = run.look(project)
    return observed.record.tags if observed and isinstance(observed.record, ProjectRecord) else frozenset()
