"""Ports, as other kinds read them: one list per project.

Source: Networking API v2.0, "Ports".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base.errors import Mistake
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Observed
from openstack_prep.core.resource import BareReference, Undeclarable
from openstack_prep.core.run import query
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import AddressHolder, PortRecord

OWNER = "openstack-prep:reserved"
"""The device_owner of a port that reserves an address; "network:" and "compute:" have a meaning in Neutron."""


@query
def ports_of(run: CloudRun, project_id: str | None) -> Sequence[PortRecord]:
    """Return all ports of a project; empty if the project does not exist yet."""
    return list(map(PortRecord.read, queries.ports_in_project(run, project_id)))


def use_of(port: PortRecord) -> str:
    """Return how a port is used; empty if it only reserves its address."""
    if port.device_id:
        return f"attached to {port.device_id} ({port.device_owner})"
    return "" if port.device_owner in ("", OWNER) else f"used by {port.device_owner}"


def shown(port: AddressHolder) -> str:
    return f"port {port.name}".strip() + f" {port.id}"


@dataclass(frozen=True, kw_only=True)
class NamedPort(InProject, BareReference):
    """A port that others refer to by name: that of this spec, else the only one in the project with this name."""

    kind: ClassVar[str] = "port"

    name: str

    def find_one(self, run: CloudRun) -> Observed | None:
        named = [port for port in ports_of(run, run.find_project_id(self.owner)) if port.name == self.name]
        own = [port for port in named if run.ownership.manages(port.name, port.description)]
        oldest = min(own, key=lambda port: (port.created_at, port.id), default=None)
        port = oldest or only_one(named, str(self.key))
        return Observed(id=port.id, record=port) if port else None

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        return (port.name for port in ports_of(run, run.find_project_id(self.owner)))


@dataclass(frozen=True, kw_only=True)
class AwaitedPort(NamedPort, Undeclarable):
    """A port that an installer creates: no spec can declare it."""


def of_another(where: str, port_id: str, foreign: Sequence[str]) -> Mistake:
    """Return what is wrong with a port that has the expected name, but belongs to another cluster."""
    return Mistake(where, f"{port_id} has the tag {', '.join(foreign)} of another cluster", "correct the infraID")
