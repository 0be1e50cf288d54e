"""Members of an image: the projects that it is shared with.

Source: Image API v2, "Sharing". Only an image with visibility shared has members. A member does not see the image in
its list until it accepts the image; an administrator may accept on its behalf.
"""

from __future__ import annotations

from collections.abc import Iterable

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.image.glance import ImageRecord


def answers(run: CloudRun, image: ImageRecord) -> dict[str, str]:
    """Return the answer of each member by project id: pending, accepted, or rejected."""
    if image.visibility != "shared":
        return {}
    members = run.admin.image.get(f"/images/{image.id}/members")["members"]
    return {each["member_id"]: each["status"] for each in members}


def share(run: CloudRun, image: ImageRecord, project_ids: Iterable[str]) -> None:
    """Make projects members and accept on their behalf; a rejection by a member is kept."""
    member_answers, path = answers(run, image), f"/images/{image.id}/members"
    for project_id in project_ids:
        if project_id not in member_answers:
            run.admin.image.post(path, {"member": project_id})
        if member_answers.get(project_id, "pending") == "pending":
            run.admin.image.put(f"{path}/{project_id}", {"status": "accepted"})
