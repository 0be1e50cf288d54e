"""What Nova and Glance take from the users of flavors, server groups and images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from openstack_prep.base.raw import Values
from openstack_prep.core.deletion_loss import Deletion, LossEffect
from openstack_prep.resources.cascades.row import CascadeRow, CascadeTable, Deletions, Dependent, place
from openstack_prep.resources.lists import queries


def _servers(filtered_by: str) -> Callable[[Deletions], Iterator[Dependent]]:
    """Return what reads the servers of all projects that have such a flavor or image."""

    def read(asked: Deletions) -> Iterator[Dependent]:
        for of in asked.every:
            for each in sorted(of.resource.deleted_ids(of.observed)):
                which: Values = {"all_tenants": True, filtered_by: each}
                for raw in filter(asked.stays, asked.run.admin.compute.list("/servers/detail", "servers", **which)):
                    # the database may give the number of a deleted flavor, by which Nova filters, to another one
                    if filtered_by != "flavor" or raw["flavor"]["original_name"] == of.resource.name:
                        yield Dependent(of, raw["id"], raw["name"], place(asked.run, raw))

    return read


def _access(asked: Deletions) -> Iterator[Dependent]:
    """Yield the projects that others have let use flavors that are not public."""
    run = asked.run
    restricted = {raw["id"] for raw in queries.flavors(run) if not raw["os-flavor-access:is_public"]}
    for of in asked.every:
        if of.id in restricted:
            listed = run.admin.compute.get(f"/flavors/{of.id}/os-flavor-access")["flavor_access"]
            yield from _projects(asked, of, (raw["tenant_id"] for raw in listed))


def _members(asked: Deletions) -> Iterator[Dependent]:
    """Yield the projects that others have shared images with."""
    glance = asked.run.admin.image
    for of in asked.every:
        if glance.get(f"/images/{of.id}")["visibility"] == "shared":  # of others Glance refuses to list members
            members = glance.get(f"/images/{of.id}/members")["members"]
            yield from _projects(asked, of, (raw["member_id"] for raw in members))


def _projects(asked: Deletions, of: Deletion, ids: Iterable[str]) -> Iterator[Dependent]:
    for project_id in ids:
        if project_id not in asked.going:
            yield Dependent(of, project_id, detail=f"{queries.project_name(asked.run, project_id)} may use it")


def _group_members(asked: Deletions) -> Iterator[Dependent]:
    for of in asked.every:
        group = asked.run.admin.compute.get(f"/os-server-groups/{of.id}")["server_group"]
        for server_id in group["members"]:
            if server_id not in asked.going:
                yield Dependent(of, server_id, detail="the group decides where it may be moved")


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
        read=_access,
    ),
)

IMAGE: CascadeTable = (
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="server",
        what="servers of other projects that were booted from an image",
        source="Nova 34.0.0, compute/api.py, rebuild and virt/libvirt/driver.py: need the image again",
        read=_servers("image"),
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="project",
        what="members of an image",
        source="Glance 33.0.0, db/sqlalchemy/api.py, image_destroy: _image_member_delete",
        read=_members,
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
