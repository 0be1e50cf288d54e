"""Recordsets as Designate stores them: lists of them, and the wait until its name servers have one.

Sources: DNS API v2, "Recordset"; Designate 23.0.0, objects/recordset.py (status), conf/worker.py and
conf/producer.py (how long a change takes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import tenacity

from openstack_prep.base.errors import ConfigError, NotAllowed, ResourceFailed, WaitTimeout, is_transient
from openstack_prep.base.fields import Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Observed, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.core.run import query
from openstack_prep.resources.dns.record_data import canonical
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

# --- Zones that exist, as a project sees them: its own, and those that other projects share with it ------
# Sources: DNS API v2, "Zones", "Recordset"; Designate 23.0.0, api/middleware.py (X-Auth-Sudo-Project-ID), central/
# service.py (get_zone: other zones are not found, also by an administrator), utils.py (``limit=max``).


ALL = "max"
"""As many per page as the service allows; by default it returns twenty."""


@dataclass(frozen=True)
class Dns:
    """Designate, as a member of one project: its own user, or an administrator on behalf of the project."""

    cloud: Cloud
    project_id: str

    @property
    def headers(self) -> Mapping[str, str]:
        return {} if self.cloud.project_id == self.project_id else {"X-Auth-Sudo-Project-ID": self.project_id}

    def list(self, path: str, name: str) -> Sequence[Values]:
        return self.cloud.dns.list(path, name, headers=self.headers, limit=ALL)

    def get(self, path: str) -> Values:
        return self.cloud.dns.ask("GET", path, headers=self.headers)

    def send(self, method: str, path: str, body: Raw) -> Values:
        return self.cloud.dns.ask(method, path, json=body, headers=self.headers)

    def delete(self, path: str) -> None:
        self.cloud.dns.delete(path, headers=self.headers)


@dataclass(frozen=True, kw_only=True)
class ZoneRecord:
    """A zone of Designate."""

    id: str
    name: str
    project_id: str
    is_primary: bool
    """Whether its records are those of Designate: a secondary zone is a copy from elsewhere."""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        name = raw["name"].lower().removesuffix(".")
        return cls(id=raw["id"], name=name, project_id=raw["project_id"], is_primary=raw.get("type") == "PRIMARY")


@dataclass(frozen=True, kw_only=True)
class DnsZone(InProject, Undeclarable):
    """A zone that exists, and that the project may use."""

    kind: ClassVar[str] = "dns_zone"

    name: Name
    """Name of the zone, without the final dot."""

    def find_one(self, run: CloudRun) -> Observed | None:
        project_id = run.find_project_id(self.owner)
        listed = zones(run, self.owner, project_id) if project_id else ()
        found = only_one((zone for zone in listed if zone.name == self.name), str(self.key))
        return Observed(id=found.id, record=found) if found else None

    def list_alternatives(self, run: CloudRun) -> Iterable[str]:
        project_id = run.find_project_id(self.owner)
        return (zone.name for zone in (zones(run, self.owner, project_id) if project_id else ()))


@query
def zones(run: CloudRun, owner: Project | None, project_id: str) -> Sequence[ZoneRecord]:
    """Return the zones that a project may use; raises ConfigError if the cloud has no Designate.

    A zone that is being deleted is left out: Designate refuses every change in it, and deletes its recordsets.
    """
    if not run.admin.has("dns"):
        raise ConfigError(f"cloud {run.admin.name!r} has no DNS service (Designate), which recordsets need")
    listed = read(run, owner, project_id, "/zones", "zones")
    return [ZoneRecord.read(raw) for raw in listed if raw.get("action") != "DELETE"]


def read(run: CloudRun, owner: Project | None, project_id: str, path: str, name: str) -> Sequence[Values]:
    """Return a list as the administrator, or as the project's own user if Designate refuses the administrator."""
    refusal: NotAllowed | None = None
    for dns in _readers(run, owner, project_id):
        try:
            return dns.list(path, name)
        except NotAllowed as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _readers(run: CloudRun, owner: Project | None, project_id: str) -> Iterator[Dns]:
    yield Dns(run.admin, project_id)
    tenant = _of_project(run, owner, project_id)
    if tenant is not None and tenant is not run.admin:
        yield Dns(tenant, project_id)


def writer(run: CloudRun, owner: Project | None) -> Dns:
    """Return who creates, changes and deletes recordsets in a project; Designate stores the project, not the user."""
    project_id = run.id(owner) if owner else run.admin.project_id
    return Dns(_of_project(run, owner, project_id) or run.admin, project_id)


def _of_project(run: CloudRun, owner: Project | None, project_id: str) -> Cloud | None:
    """Return the connection of the project's own user; that of ``clouds: tenant:`` may be to another project."""
    tenant = run.find_tenant(owner)
    return tenant if tenant is not None and tenant.project_id == project_id else None


ACTIVE, PENDING, ERROR = "ACTIVE", "PENDING", "ERROR"
DEADLINE = 300.0  # seconds; by default Designate collects changes for 5, waits 5, and asks each name server ten times
PAUSE, LONGEST = 0.5, 5.0  # seconds between two looks at the status


@dataclass(frozen=True, kw_only=True)
class RecordsetRecord:
    """A recordset of Designate."""

    id: str
    zone_id: str
    project_id: str
    name: str
    zone: str
    type: str
    records: tuple[str, ...]
    ttl: int | None
    description: str
    status: str

    @classmethod
    def read(cls, raw: Raw) -> Self:
        kind = raw["type"]
        return cls(
            id=raw["id"],
            zone_id=raw["zone_id"],
            project_id=raw["project_id"],
            name=raw["name"].lower().removesuffix("."),
            zone=(raw.get("zone_name") or "").lower().removesuffix("."),
            type=kind,
            records=tuple(canonical(kind, record) for record in raw["records"]),
            ttl=raw["ttl"],
            description=raw["description"] or "",
            status=raw["status"],
        )


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether a project has recordsets that the spec manages."""
    return any(run.ownership.owns(record.description) for record in in_project(run, project))


def in_project(run: CloudRun, project: Resource | None) -> Sequence[RecordsetRecord]:
    """Return the recordsets that belong to a project, in zones that it may use."""
    project_id = run.find_project_id(project)
    if project_id is None or not run.admin.has("dns"):
        return ()
    return _in_project(run, project if isinstance(project, Project) else None, project_id)


@query
def _in_project(run: CloudRun, project: Project | None, project_id: str) -> Sequence[RecordsetRecord]:
    usable = {zone.id for zone in zones(run, project, project_id)}
    listed = map(RecordsetRecord.read, read(run, project, project_id, "/recordsets", "recordsets"))
    return [record for record in listed if record.zone_id in usable]


@query
def in_zone(run: CloudRun, owner: Project | None, zone: ZoneRecord) -> Sequence[RecordsetRecord]:
    """Return all recordsets of a zone, also those of other projects that it is shared with."""
    project_id = run.find_project_id(owner)
    listed = read(run, owner, project_id, f"/zones/{zone.id}/recordsets", "recordsets") if project_id else ()
    return [RecordsetRecord.read(raw) for raw in listed]


def until_active(dns: Dns, record: RecordsetRecord, what: str) -> RecordsetRecord:
    """Return a recordset once Designate's name servers have its records; raises ResourceFailed, WaitTimeout."""
    path = f"/zones/{record.zone_id}/recordsets/{record.id}"

    def look() -> RecordsetRecord:
        return RecordsetRecord.read(dns.get(path))

    if record.status == PENDING:
        record = tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda now: now.status == PENDING)
            | tenacity.retry_if_exception(is_transient),
            stop=tenacity.stop_after_delay(DEADLINE),
            wait=tenacity.wait_exponential(PAUSE, max=LONGEST),
            retry_error_callback=lambda state: _too_late(what),
        )(look)
    if record.status == ERROR:
        raise ResourceFailed(
            f"{what}: Designate reports ERROR, so its name servers did not take the records; see the log of "
            "designate-worker, then apply again, which sends them again"
        )
    return record


def _too_late(what: str) -> RecordsetRecord:
    raise WaitTimeout(
        f"{what}: Designate has not reached its name servers after {DEADLINE:.0f} s; see the log of designate-worker, "
        "then apply again, which waits again"
    )
