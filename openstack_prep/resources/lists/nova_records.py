"""Nova's servers, server groups and flavors: one frozen record each, created where the API's answer arrives.

Source: Compute API, "List Servers Detailed" (delete_on_termination since microversion 2.3), "List Server Groups"
(policy and rules since 2.64), "List Flavors With Details" (description since 2.55, extra specs since 2.61).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openstack_prep.base.invalid import rare_character
from openstack_prep.base.raw import Raw, record_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


UNPRINTABLE = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))
"""Categories of characters that Nova's names do not have; of unassigned ones (Cn) each Python has its own list."""


def name_fault(name: str) -> tuple[str, str] | None:
    """Return what Nova does not accept in the name of a new flavor or server group, and the fix.

    Source: Nova 34.0.0, api/validation/parameter_types.py (name, valid_name_regex, _is_printable).
    """
    if name != name.strip():
        return f"name {name!r} begins or ends with a space, which Nova does not accept", "remove it"
    if any(unicodedata.category(each) in UNPRINTABLE for each in name):
        return f"name {name!r} has a character without a visible form, which Nova does not accept", "remove it"
    if rare := rare_character([name]):
        return f"name {name!r} has {rare}, which Nova does not accept", "remove it"
    return None


@dataclass(frozen=True, kw_only=True)
class ServerRecord:
    id: str
    name: str = ""
    status: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    launched_at: str = ""
    """When it was last started on a host; empty if it never was."""
    own_volumes: tuple[str, ...] = ()
    """Ids of the attached volumes that Nova deletes with the server."""

    @classmethod
    def read(cls, raw: Raw) -> ServerRecord:
        attached = raw.get("os-extended-volumes:volumes_attached") or ()
        deleted = tuple(each["id"] for each in attached if each.get("delete_on_termination"))
        return record_of(cls, raw, launched_at=raw.get("OS-SRV-USG:launched_at") or "", own_volumes=deleted)


def list_servers(cloud: Cloud, **query: Any) -> list[ServerRecord]:
    """Return servers with their details: those of the connection's project, unless the query says otherwise."""
    return [ServerRecord.read(raw) for raw in cloud.compute.list("/servers/detail", "servers", **query)]


@dataclass(frozen=True, kw_only=True)
class ServerGroupRecord:
    id: str
    name: str
    project_id: str
    policy: str
    max_server_per_host: int | None = None
    server_ids: tuple[str, ...] = ()
    """Ids of its members."""

    @classmethod
    def read(cls, raw: Raw) -> ServerGroupRecord:
        most = raw["rules"].get("max_server_per_host")
        return record_of(cls, raw, max_server_per_host=most, server_ids=tuple(raw.get("members") or ()))


def list_server_groups(cloud: Cloud) -> list[ServerGroupRecord]:
    """Return the server groups of the connection's project."""
    return [ServerGroupRecord.read(raw) for raw in cloud.compute.list("/os-server-groups", "server_groups")]


def list_all_server_groups(cloud: Cloud) -> list[ServerGroupRecord]:
    """Return the server groups of all projects; this list has no links to its next pages."""
    found: list[ServerGroupRecord] = []
    while page := cloud.compute.get("/os-server-groups", all_projects=True, offset=len(found))["server_groups"]:
        found += map(ServerGroupRecord.read, page)
    return found


FLAVOR_FIELDS = {
    "vcpus": "vcpus",
    "ram": "ram",
    "disk": "disk",
    "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
    "swap": "swap",
    "rxtx_factor": "rxtx_factor",
    "is_public": "os-flavor-access:is_public",
}
"""Nova's names of the fields that it never changes."""


@dataclass(frozen=True, kw_only=True)
class FlavorRecord:
    name: str
    id: str
    vcpus: int = 0
    ram: int = 0
    """MiB."""
    disk: int = 0
    """GiB of the root disk; 0: the size of the image."""
    ephemeral: int = 0
    """GiB."""
    swap: int = 0
    """MiB."""
    rxtx_factor: float | None = None
    is_public: bool = True
    description: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, raw: Raw) -> FlavorRecord:
        own = {name: raw.get(theirs) for name, theirs in FLAVOR_FIELDS.items()}
        own["swap"] = own["swap"] or None  # Nova reports "" for no swap
        # name and id from the answer itself, which names the request if it lacks one
        return record_of(cls, {**raw, **own}, name=raw["name"], id=raw["id"])


def list_flavors(cloud: Cloud, **query: Any) -> list[FlavorRecord]:
    """Return flavors: those that the connection's project may use, unless the query says otherwise."""
    return [FlavorRecord.read(raw) for raw in cloud.compute.list("/flavors/detail", "flavors", **query)]
