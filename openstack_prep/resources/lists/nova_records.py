"""Nova's servers and server groups: one frozen record each, created where the API's answer arrives.

Source: Compute API, "List Servers Detailed", "List Server Groups".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class ServerRecord:
    id: str
    name: str
    status: str
    metadata: Mapping[str, str]

    @classmethod
    def read(cls, raw: Raw) -> ServerRecord:
        return cls(
            id=raw["id"],
            name=raw.get("name") or "",
            status=raw.get("status") or "",
            metadata=raw.get("metadata") or {},
        )


def list_servers(cloud: Cloud, **query: Any) -> list[ServerRecord]:
    """Return servers with their details: those of the connection's project, unless the query says otherwise."""
    return [ServerRecord.read(raw) for raw in cloud.compute.list("/servers/detail", "servers", **query)]


@dataclass(frozen=True, kw_only=True)
class ServerGroupRecord:
    """A server group, without its policy, whose fields differ between microversions."""

    id: str
    name: str


def list_server_groups(cloud: Cloud) -> list[ServerGroupRecord]:
    """Return the server groups of the connection's project."""
    listed = cloud.compute.list("/os-server-groups", "server_groups")
    return [ServerGroupRecord(id=raw["id"], name=raw["name"]) for raw in listed]
