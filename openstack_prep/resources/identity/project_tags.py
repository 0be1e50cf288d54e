"""Changes of a project's tags, which several specs and other programs share.

Keystone has requests for one tag, but reads all tags of the project for each and writes them again: of two at a time,
one can undo the other. So the tags are read again afterwards. Source: Keystone 30.0.0, resource/core.py
(create_project_tag, delete_project_tag), api/projects.py (ProjectTagResource.put: 400 for a tag that exists).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from urllib.parse import quote

from openstack_prep.base.errors import CloudError, is_transient
from openstack_prep.cloud.cloud_run import CloudRun

ROUNDS = 5
PAUSE = 0.2
"""Longest pause before a change that was undone is repeated, in seconds, so that two programs do not keep step."""


def change(run: CloudRun, project_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> frozenset[str]:
    """Add missing tags in this order, remove present ones, and return all tags by then; raises CloudError."""
    missing, surplus = list(add), list(remove)
    for left in reversed(range(ROUNDS)):
        refused = None
        try:
            for tag in missing:
                run.admin.identity.put(_path(project_id, tag))
            for tag in surplus:
                run.admin.identity.delete(_path(project_id, tag))
        except CloudError as error:  # the answer was lost, or another program has done the same: the tags show it
            if not is_transient(error) and error.status not in (400, 404):
                raise
            refused = error
        tags = frozenset(run.admin.identity.get(f"/projects/{project_id}")["project"]["tags"])
        missing, surplus = [tag for tag in missing if tag not in tags], [tag for tag in surplus if tag in tags]
        if not missing and not surplus:
            return tags
        if left:
            time.sleep(random.uniform(0, PAUSE))
    if refused:
        raise refused
    what = f"project {project_id}: somebody else keeps changing its tags, which undoes changes of these"
    raise CloudError(f"{what}: {', '.join([*missing, *surplus])}", retryable=True)


def _path(project_id: str, tag: str) -> str:
    return f"/projects/{project_id}/tags/{quote(tag, safe='')}"
