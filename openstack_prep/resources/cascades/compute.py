"""What Nova and Glance take from the users of flavors, server groups and images."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, LossEffect, Unchecked
from openstack_prep.core.resource import deleted_ids
from openstack_prep.resources.cascades.row import (
    CascadeRow,
    CascadeTable,
    Deletions,
    Dependent,
    Read,
    WholeList,
    per_deletion,
    place,
)
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.nova_records import ServerGroupRecord, ServerRecord


def _servers(field: str) -> Read:
    """Return what reads the servers that have such a flavor or image: of all projects if the connection may."""

    def read(deletions: Deletions) -> Iterator[Dependent]:
        run, refused = deletions.run, None
        for deletion in deletions:
            for thing_id in sorted(deleted_ids(deletion.resource, deletion.observed)):
                if not _may_have_servers(run, deletion, field, thing_id):
                    continue
                which: Values = {field: thing_id}
                try:
                    listed = run.admin.compute.list("/servers/detail", "servers", all_tenants=True, **which)
                except NotAllowed as error:  # Nova 34.0.0, policies/servers.py: for administrators
                    listed, refused = run.admin.compute.list("/servers/detail", "servers", **which), error
                for raw in filter(deletions.stays, listed):
                    # the database may give the number of a deleted flavor, by which Nova filters, to another one
                    if field != "flavor" or raw["flavor"]["original_name"] == deletion.resource.name:
                        yield Dependent(deletion, raw["id"], raw["name"], place(run, raw))
        if refused is not None:
            raise refused

    return read


SERVERS = WholeList(
    service="compute",
    path="/servers/detail",
    member="servers",
    most=250,
    params=(("all_tenants", True),),
    has_limit=True,
)
"""All servers: Nova filters by one flavor or image."""


def _may_have_servers(run: CloudRun, deletion: Deletion, field: str, thing_id: str) -> bool:
    """Whether a server has such a flavor or image, or nobody has read all servers.

    Servers tell the name of their flavor, which an earlier one may have had, and not its id.
    """
    listed = SERVERS.read_for(run, deletion.resource.kind, deletion.id)
    if listed is None:
        return True
    if field == "flavor":
        return any(raw["flavor"]["original_name"] == deletion.resource.name for raw in listed)
    return any(raw["image"] and raw["image"]["id"] == thing_id for raw in listed)  # empty: booted from a volume


BOOTED = "servers of other projects that were booted from an image"


def servers_outside(run: CloudRun, image_id: str, allowed: Collection[str]) -> Iterator[DeletionLoss | Unchecked]:
    """Yield the servers that an image is taken from: those outside of the projects that still may use it."""
    try:
        listed = [*run.admin.compute.list("/servers/detail", "servers", all_tenants=True, image=image_id)]
    except NotAllowed as error:  # Nova 34.0.0, policies/servers.py: for administrators
        yield Unchecked(BOOTED, error.reason)
        return
    for raw in listed:
        if raw["tenant_id"] not in allowed:
            what = {"id": raw["id"], "name": raw["name"], "detail": place(run, raw)}
            yield DeletionLoss(effect=LossEffect.CUT_OFF, kind="server", **what)


def _access(run: CloudRun, deletion: Deletion) -> Iterable[Raw]:
    """Return the projects that others have let use a flavor that is not public: of each flavor Nova has a list."""
    restricted = {flavor.id for flavor in queries.flavors(run) if not flavor.is_public}
    guests = queries.flavor_access(run, deletion.id) if deletion.id in restricted else ()
    return [{"id": project_id} for project_id in guests]


def _members(run: CloudRun, deletion: Deletion) -> Iterable[Raw]:
    """Return the projects that others have shared an image with."""
    path = f"/images/{deletion.id}"
    if run.admin.image.get(path)["visibility"] != "shared":  # of others Glance refuses to list members
        return ()
    return [{"id": raw["member_id"]} for raw in run.admin.image.get(f"{path}/members")["members"]]


def guest_text(run: CloudRun, raw: Raw) -> str:
    return f"{queries.project_name(run, raw['id'])} may use it"


def _group_members(deletions: Deletions) -> Iterator[Dependent]:
    for deletion in deletions:
        for server_id in deletion.observed.record_as(ServerGroupRecord).server_ids:
            if server_id not in deletions.going:
                yield Dependent(deletion, server_id, detail="the group decides where it may be moved")


SECONDS = len("2026-11-27T08:15:00")
"""The length of a time of Nova or Cinder without fractions of a second."""


def _volumes(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the volumes that somebody has attached so that Nova deletes them with a server.

    Those that Nova itself has created for it have no name, and are older than its start (Nova 34.0.0,
    virt/block_device.py, DriverVolImageBlockDevice and DriverVolBlankBlockDevice).
    """
    run = deletions.run
    for deletion in deletions:
        server = deletion.observed.record_as(ServerRecord)
        for volume_id in server.own_volumes:
            if volume_id not in deletions.going:
                raw = run.admin.volume.get(f"/volumes/{volume_id}")["volume"]
                made, begun, ended = (
                    time[:SECONDS] for time in (raw["created_at"], server.created, server.launched_at)
                )
                if raw["name"] not in ("", f"{server.id}-blank-vol") or not begun <= made <= (ended or made):
                    yield Dependent(deletion, volume_id, raw["name"], f"attached to server {server.name}")


FLAVOR: CascadeTable = (
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="server",
        what="servers of other projects with a flavor",
        source="Nova 34.0.0, objects/flavor.py, destroy: servers keep a copy, and none can be resized back or created",
        read=_servers("flavor"),
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="project",
        what="projects that may use a flavor",
        source="Nova 34.0.0, objects/flavor.py, _flavor_destroy: FlavorProjects",
        read=per_deletion(_access, detail=guest_text),
    ),
)

IMAGE: CascadeTable = (
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="server",
        what=BOOTED,
        source="Nova 34.0.0, compute/api.py, rebuild and virt/libvirt/driver.py: need the image again",
        read=_servers("image"),
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="project",
        what="members of an image",
        source="Glance 33.0.0, db/sqlalchemy/api.py, image_destroy: _image_member_delete",
        read=per_deletion(_members, detail=guest_text),
    ),
)

SERVER_GROUP: CascadeTable = (
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="server",
        what="servers of a server group",
        source="Nova 34.0.0, objects/instance_group.py, destroy: members lose the policy",
        read=_group_members,
    ),
)

SERVER: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="volume",
        what="volumes that others have attached to a server",
        source="Nova 34.0.0, compute/manager.py, _cleanup_volumes: delete_on_termination",
        read=_volumes,
    ),
)
