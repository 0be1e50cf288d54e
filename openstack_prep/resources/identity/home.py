"""The home project of a spec: it distinguishes two specs with the same name.

An ownership tag contains the name of its spec. For resources in a project, the project shows which of the specs with
that name manages them. For resources outside of projects (projects, users, flavors, key pairs), the tag names the home
project.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from urllib.parse import urlsplit

from openstack_prep.base.errors import NotAllowed, NotFound
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import OwnershipTag, Resource
from openstack_prep.core.run import query


def ownership(run: CloudRun) -> OwnershipTag:
    """Return the ownership tag for resources outside of projects."""
    return replace(run.ownership, home=_id(run, run.homes[0])) if run.homes else run.ownership


def family(run: CloudRun) -> frozenset[str]:
    """Return the ids of the home project and of all projects that share it: no other spec manages resources there.

    Empty while the home project does not exist. A further project that the spec works in may be the home project of
    another spec with the same name.
    """
    known = frozenset({_id(run, run.homes[0])} if run.homes else ()) - {""}
    for ids in _named(run):
        if ids & known:
            known |= ids
    return known


def is_ours(run: CloudRun, home: str) -> bool:
    """Whether a resource with the tag of a spec of our name is managed by this spec, judging by the tag's home project.

    It belongs to another spec if that project exists and this spec does not work in it; a project that is only named
    for a role does not count. A spec without a project works in that of the connection: two projects, two specs.
    """
    return not (home and run.homes) or home in frozenset().union(*_named(run)) or not exists(run, home)


def is_our_project(run: CloudRun, home: str) -> bool:
    """Whether a project with the tag of a spec of our name is managed by this spec, judging by the tag's home project.

    It only reads our own home project, because ``is_ours`` reads all projects of the spec, which may include this one.
    """
    return not (home and run.homes) or home in _shared_by(run, run.homes[0]) or not exists(run, home)


def file_ownership(run: CloudRun) -> OwnershipTag:
    """Return the ownership tag for files, which also names the cloud: its projects do not exist in another one."""
    return replace(ownership(run), place=_cloud(run)) if run.homes and run.admin.auth_url else run.ownership


def owns_file(run: CloudRun, tag: str) -> bool:
    """Whether a file with a tag of a spec of our name is managed by this spec.

    A home project that does not exist may have been deleted and created again, but not in another cloud, where it may
    well exist. Tags of earlier versions name no cloud.
    """
    project_id = OwnershipTag.home_in(tag)
    if not is_ours(run, project_id):
        return False
    cloud = OwnershipTag.place_in(tag)
    return not cloud or project_id in frozenset().union(*_named(run)) or cloud == _cloud(run)


def _cloud(run: CloudRun) -> str:
    """Return a digest of the address of Keystone, whatever its scheme and version."""
    address = urlsplit(run.admin.auth_url.lower())
    path = address.path.rstrip("/").removesuffix("/v3")
    return hashlib.sha256(f"{address.netloc}{path}".encode()).hexdigest()[:8]


def another_of_file(run: CloudRun, tag: str) -> str:
    """Return the other spec that a file names as the owner, or this one in another cloud; or an empty string."""
    ours_elsewhere = run.ownership.owns(tag) and not owns_file(run, tag)
    return another(run, tag) or (f"{run.ownership.spec} in another cloud" if ours_elsewhere else "")


def another(run: CloudRun, description: str | None) -> str:
    """Return the other spec that a description names as the owner, or an empty string.

    The home project distinguishes specs with the same name.
    """
    return other_spec(run, OwnershipTag.spec_in(description or ""), OwnershipTag.home_in(description))


def other_spec(run: CloudRun, spec: str | None, project_id: str) -> str:
    """Return the name of a spec and of its home project if it differs from this spec; otherwise an empty string."""
    if spec == run.ownership.spec:
        return "" if is_ours(run, project_id) else f"{spec} of project {_name(run, project_id)}"
    return spec or ""


def _named(run: CloudRun) -> list[frozenset[str]]:
    """Return, for each project that the spec works in, its id and the id of the home project that its own tag names."""
    return [_shared_by(run, project) for project in run.homes]


def _shared_by(run: CloudRun, project: Resource | None) -> frozenset[str]:
    found = run.look(project) if project else None
    return frozenset({_id(run, project), (found.home or "") if found and found.ours else ""}) - {""}


def _id(run: CloudRun, project: Resource | None) -> str:
    found = run.find_project_id(project)
    return "" if found in (None, "None") else str(found)  # "None" is the id for a token without a project


def exists(run: CloudRun, project_id: str) -> bool:
    """Whether a project with this id exists, as far as the credentials may read it."""
    return _record(run, project_id) is not None


def _name(run: CloudRun, project_id: str) -> str:
    """Return a project's name, or its id if the credentials may not read it."""
    record = _record(run, project_id) or {}
    return str(record.get("name") or project_id)


@query
def _record(run: CloudRun, project_id: str) -> Raw | None:
    """Return a project; None if it does not exist, and an empty record if the credentials may not read it."""
    try:
        record: Raw = run.admin.identity.get(f"/projects/{project_id}")["project"]
    except NotFound as error:
        if not error.of_resource:
            raise
        return None
    except NotAllowed:  # it may exist
        return {}
    return record
