"""Which reads lists of all projects answer: each path, and the parameters by which a read selects from the list.

Every filter here is one of equality in the service, too. Reads with any other parameter are sent as they are; so are
reads by a name of Neutron's and of others who leave the comparison to their database, which may ignore case.

Source: Identity API v3; Networking API v2.0; Image API v2. Nova and Cinder have no list of the quotas of all projects
(Nova 34.0.0, api/openstack/compute/quota_sets.py; Cinder 29.0.0, api/contrib/quotas.py: show, update, delete and
defaults, each of one project), Nova none of the key pairs of all users (compute/keypairs.py: index is of one user),
Keystone none of the application credentials of all users (Keystone 30.0.0, api/users.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from openstack_prep.base.raw import Raw

Values = Callable[[Raw], Iterable[object]]
"""The values of a row by which a parameter selects it."""
PAGE = 1000
"""Rows per request, as many as Keystone and Glance allow by default."""


def of(name: str) -> Values:
    """Return the values of a field of rows."""
    return lambda row: (row.get(name),)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A list of all projects.

    ``by`` are the parameters that select from it, the one with the fewest rows first. ``fixed`` are parameters of the
    list itself, ``per`` those of which each value has a list of its own. ``sure`` tells, by the parameters and the rows
    that match, whether the service would answer the same; otherwise it is asked.
    """

    member: str
    by: Mapping[str, Values]
    fixed: Raw = field(default_factory=dict)
    per: tuple[str, ...] = ()
    sure: Callable[[Raw, Sequence[Raw]], bool] = lambda params, rows: True


def _is_named(params: Raw, rows: Sequence[Raw]) -> bool:
    """Whether a name was found: Keystone's database may find one that differs in case, or in accents."""
    return bool(rows) or "name" not in params


def _has_default(params: Raw, rows: Sequence[Raw]) -> bool:
    """Whether a project has its default group: Neutron creates it when the groups of the project are listed.

    Neutron 29.0.0, db/securitygroups_db.py, get_security_groups.
    """
    return any(row.get("name") == "default" for row in rows)


def _scope_of(row: Raw) -> Iterable[object]:
    """Return the id of the project in which a role assignment applies."""
    return (row["scope"].get("project", {}).get("id"),)


WHOLE: Mapping[str, Mapping[str, Whole]] = {
    "identity": {
        "/projects": Whole(
            member="projects",
            by={
                "id": of("id"),
                "name": of("name"),
                "domain_id": of("domain_id"),
                "tags": lambda row: row.get("tags", ()),
            },
            sure=_is_named,
        ),
        "/users": Whole(member="users", by={"name": of("name")}, per=("domain_id",), sure=_is_named),
        "/groups": Whole(member="groups", by={"name": of("name")}, per=("domain_id",), sure=_is_named),
        "/role_assignments": Whole(
            member="role_assignments", by={"scope.project.id": _scope_of}, fixed={"include_names": True}
        ),
    },
    "network": {
        "/networks": Whole(member="networks", by={"project_id": of("project_id")}),
        "/subnets": Whole(member="subnets", by={"network_id": of("network_id"), "project_id": of("project_id")}),
        "/ports": Whole(
            member="ports",
            by={
                "device_id": of("device_id"),
                "network_id": of("network_id"),
                "project_id": of("project_id"),
                "device_owner": of("device_owner"),
            },
        ),
        "/routers": Whole(member="routers", by={"project_id": of("project_id")}),
        "/security-groups": Whole(member="security_groups", by={"project_id": of("project_id")}, sure=_has_default),
        "/floatingips": Whole(
            member="floatingips",
            by={"port_id": of("port_id"), "router_id": of("router_id"), "project_id": of("project_id")},
        ),
        "/trunks": Whole(member="trunks", by={"project_id": of("project_id")}),
        "/rbac-policies": Whole(
            member="rbac_policies",
            by={"object_id": of("object_id"), "target_tenant": of("target_tenant")},
            fixed={"object_type": "network", "action": "access_as_shared"},
        ),
    },
    "image": {
        "/images": Whole(
            member="images",
            by={"name": of("name"), "owner": of("owner")},
            fixed={"visibility": "all", "limit": PAGE},
            per=("os_hidden",),
        ),
    },
}
"""Lists of all projects by service and path."""

SAME: Mapping[str, re.Pattern[str]] = {
    "identity": re.compile(r"/roles|/role_inferences|/domains(/[^/]+)?"),
    "compute": re.compile(r"/flavors/detail|/flavors/[^/]+/os-flavor-access|/os-server-groups"),
    "network": re.compile(r"/networks|/extensions"),
    "image": re.compile(r"/images/[^/]+/members"),
    "block-storage": re.compile(r"/types"),
}
"""What the administrator reads of the whole cloud: the same request has the same answer for all specs."""


ONE: Mapping[str, tuple[re.Pattern[str], str]] = {"identity": (re.compile(r"(/projects)/([^/]+)"), "project")}
"""Reads of one resource that a list contains, by service: its path, and the member of the answer."""


def wanted(path: str, name: str, value: object) -> list[str]:
    """Return the values of which a parameter accepts any; Glance has a form of its own for several names."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    text = str(value)
    if path == "/images" and name == "name":
        return text.removeprefix('in:"').removesuffix('"').split('","') if text.startswith("in:") else [text[3:]]
    return [text]
