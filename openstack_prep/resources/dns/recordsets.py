"""Recordsets as Designate stores them: lists of them, and the wait until its name servers have one.

Sources: DNS API v2, "Recordset"; Designate 23.0.0, objects/recordset.py (status), conf/worker.py and
conf/producer.py (how long a change takes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import tenacity

from openstack_prep.base.errors import ResourceFailed, WaitTimeout, is_transient
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.dns.record_data import canonical
from openstack_prep.resources.dns.zones import Dns, ZoneRecord, read, zones
from openstack_prep.resources.identity.project import Project

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
            records=tuple(canonical(kind, each) for each in raw["records"]),
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
