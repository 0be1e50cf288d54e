"""Recordsets: the records of one name and type in a zone of Designate that exists.

Sources: DNS API v2, "Recordset"; Designate 23.0.0: central/service.py (who may change them, CNAME beside others, child
zones), storage/sqlalchemy/tables.py (unique_recordset: a zone has one recordset per name and type, so two runs create
no twins), objects/recordset.py (the status, and 160 characters of description).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self, get_args

from annotated_types import Ge, Le

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound
from openstack_prep.base.fields import Name, Reads, Text
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect
from openstack_prep.core.model import (
    Adoptable,
    Change,
    Coherent,
    Context,
    FromContext,
    Key,
    Observed,
    OwnershipTag,
    Resource,
    identity_digest,
)
from openstack_prep.core.resource import Unguarded
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.dns import record_data
from openstack_prep.resources.dns.record_data import RecordType, canonical, is_within, recordset_name, zone_name
from openstack_prep.resources.dns.recordsets import (
    ACTIVE,
    ERROR,
    DnsZone,
    RecordsetRecord,
    ZoneRecord,
    in_project,
    in_zone,
    until_active,
    writer,
    zones,
)
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import ByProjectUser

LONGEST_DESCRIPTION = 160
Ttl = Annotated[int, Ge(0), Le(2**31 - 1)]


@dataclass(frozen=True)
class RecordsetNeighbours(FromContext):
    """The related resources of a recordset."""

    sources: tuple[Resource, ...] = ()
    """Those whose addresses are records."""


@dataclass(frozen=True, kw_only=True)
class Recordset(ByProjectUser, Adoptable[CloudRun], Coherent, Unguarded):
    """The DNS records of one name and type, in a zone of Designate that exists.

    The zone belongs to the project, or its owner shares it with the project (``openstack zone share create``). For a
    zone of another project, an administrator can also name that project here. Apply waits until Designate's name
    servers have the records.
    """

    kind: ClassVar[str] = "recordset"
    identity: ClassVar[frozenset[str]] = ByProjectUser.identity | {"zone", "type", "floating_ips"}
    implied: ClassVar[frozenset[str]] = frozenset({"status"})

    name: Annotated[Name, Reads(recordset_name)]
    """Whole name, such as shop.example.com or ``*.apps.example.com``."""
    zone: Annotated[Name, Reads(zone_name)]
    """Name of the zone that contains it, such as example.com."""
    type: RecordType
    """Type of the records."""
    records: tuple[Text, ...] = ()
    """Data of each record, such as 192.0.2.10; names need no final dot, and TXT records no quotation marks."""
    floating_ips: tuple[Name, ...] = ()
    """Floating IPs of this spec whose addresses are further records, for type A."""
    ttl: Ttl | None = None
    """Seconds for which resolvers may cache the records; default: those of the zone."""
    description: str | None = None
    """Free text; an ownership tag is appended, and 160 characters are the limit for both together."""
    neighbours: RecordsetNeighbours = field(default=RecordsetNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @property
    def key(self) -> Key:
        return Key(self.kind, f"{self.name}/{self.type}", (*self.place, self.zone))

    # --- before anything is read ----------------------------------------------------------

    def contradictions(self) -> Iterable[InvalidValue]:
        yield from record_data.contradictions(self.name, self.zone, self.type, self.records)
        if self.floating_ips and self.type != "A":
            yield InvalidValue("floating IPs are IPv4 addresses", "set type: A, or remove floating_ips")
        if not self.has_records:
            yield InvalidValue("there are no records", "set records")

    @property
    def has_records(self) -> bool:
        return bool(self.records or self.floating_ips)

    def resolve(self, context: Context) -> Sequence[Resource]:
        found = self.neighbours.sources or self.find_sources(context)
        return (replace(self, neighbours=RecordsetNeighbours(found)),)

    def find_sources(self, context: Context) -> tuple[Resource, ...]:
        """Return the declared resources whose addresses are records."""
        found = (_floating_ip(self, context, name) for name in self.floating_ips)
        return tuple(floating_ip for floating_ip in found if floating_ip)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        for name in self.floating_ips:
            if _floating_ip(self, context, name) is None:
                known = ", ".join(floating_ip.name for floating_ip in context.declared(FloatingIP)) or "none"
                what = f"floating IP {name} is not in floating_ips (known: {known})"
                yield self.mistake(what, "declare it, or correct the name", Code.SPEC_UNRESOLVED, "floating_ips")
        for other in context.declared(Recordset):
            same = (other.name, other.zone, other.owner) == (self.name, self.zone, self.owner)
            if same and self.type == "CNAME" != other.type:
                yield self._beside_cname(str(other.key))

    def _beside_cname(self, other: str, fix: str = "keep one of them") -> Mistake:
        what = f"a CNAME is the only record of its name, and {other} has the same name"
        return self.mistake(what, fix, Code.SPEC_CONTRADICTION)

    def references(self) -> Iterable[Resource]:
        return (*super().references(), self.sibling(DnsZone, self.zone))

    def follows(self) -> Iterable[Key]:
        return tuple(source.key for source in self.neighbours.sources)

    def desired(self) -> Values:
        return super().desired() | {"records": self._data | {*map(_named, self.neighbours.sources)}, "status": ACTIVE}

    @property
    def _data(self) -> frozenset[str]:
        return frozenset(canonical(self.type, each) for each in self.records)

    # --- existing state -------------------------------------------------------------------

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for each in wanted:
            zone = each._zone(run)
            record = each._record(in_zone(run, each.owner, zone)) if zone else None
            if record:
                found[each.key] = each._observed(run, record)
        return found

    def _zone(self, run: CloudRun) -> ZoneRecord | None:
        found = run.look(self.sibling(DnsZone, self.zone))
        return found.record_as(ZoneRecord) if found else None

    def _record(self, listed: Iterable[RecordsetRecord]) -> RecordsetRecord | None:
        named = (recordset for recordset in listed if (recordset.name, recordset.type) == (self.name, self.type))
        return only_one(named, str(self.key))  # of two runs at once, Designate refuses the second

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the recordsets that belong to a project, without those that Designate writes itself."""
        for record in in_project(run, owner):
            if record.type not in get_args(RecordType) or (record.type, record.name) == ("NS", record.zone):
                continue
            fields: dict[str, Any] = {"ttl": record.ttl, "description": OwnershipTag.strip(record.description) or None}
            place = {"name": record.name, "zone": record.zone, "type": record.type, **cls.placing(owner)}
            declared = cls(records=tuple(sorted(record.records)), **place, **fields)
            yield declared, declared._observed(run, record)

    @classmethod
    def scan_tagged(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield those of ``scan``; one with other records than a run of the spec has written declares none."""
        for declared, observed in cls.scan(run, owner):
            record = observed.record_as(RecordsetRecord)
            is_written = OwnershipTag.name_in(record.description) == declared._digest(record.records)
            yield declared if is_written else replace(declared, records=()), observed

    def _observed(self, run: CloudRun, record: RecordsetRecord) -> Observed:
        named = OwnershipTag.home_in(record.description)
        ours = run.ownership.owns(record.description) and home.is_ours(run, named)
        return Observed(
            id=record.id,
            ours=ours,
            home=named,
            managed_by=home.another(run, record.description),
            values={
                "records": self._in_words(run, record.records),
                "ttl": record.ttl,
                "description": OwnershipTag.strip(record.description),
                "status": record.status if ours else ACTIVE,  # others look after their own
            },
            outputs={"records": ", ".join(sorted(record.records))},
            record=record,
        )

    def _in_words(self, run: CloudRun, records: Iterable[str]) -> frozenset[str]:
        """Return records in the vocabulary of the spec: addresses of its own resources by their names."""
        found = set()
        for record in records:
            names = {_named(source) for source in self.neighbours.sources if _address(run, source) == record}
            found |= names | ({record} if record in self._data or not names else set())
        return frozenset(found)

    # --- checks ---------------------------------------------------------------------------

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        described = self._described(run, self.description)
        if len(described) > LONGEST_DESCRIPTION:
            what = f"the description with its ownership tag has {len(described)} characters"
            yield self.mistake(what, f"shorten it to {LONGEST_DESCRIPTION} in total", field="description")
        zone = self._zone(run)
        if zone is None:  # reported as a missing reference
            return
        if not zone.is_primary:
            what = f"{self.zone} is a secondary zone, whose records come from elsewhere"
            yield self.mistake(what, "declare them at its primary name server", field="zone")
        project_id = run.find_project_id(self.owner)
        seen = zones(run, self.owner, project_id) if project_id else ()
        inner = [each.name for each in seen if is_within(self.name, each.name) and each.name.endswith(f".{self.zone}")]
        if inner:
            below = max(inner, key=len)
            yield self.mistake(f"{self.name} belongs to the zone {below}", f"set zone: {below}", field="zone")
        if observed is None:
            yield from self._conflicts(run, in_zone(run, self.owner, zone))
            return
        owners = (zone.project_id, observed.record_as(RecordsetRecord).project_id)
        if not observed.ours and self.adopt and project_id not in owners:
            what = "belongs to another project, and only that project and the zone's may change it"
            yield self.mistake(what, "set project to one of them, or choose a different name", field="adopt")

    def _conflicts(self, run: CloudRun, listed: Iterable[RecordsetRecord]) -> Iterator[Mistake]:
        for recordset in listed:
            if recordset.name == self.name and "CNAME" in (recordset.type, self.type) and recordset.type != self.type:
                seen = self._observed(run, recordset)
                command = shell.join(["openstack", "recordset", "delete", f"{self.zone}.", recordset.id])
                fix = f"choose another name, or ask its owner to delete it: it is {seen.owner}"
                fix = f"delete it first: {command}" if seen.ours else fix
                yield self._beside_cname(f"{recordset.type} {', '.join(recordset.records)}", fix)

    # --- operations -----------------------------------------------------------------------

    def _described(self, run: CloudRun, text: str | None, digest: str = "") -> str:
        """Return a description with the ownership tag, whose name is a digest of the records if that has room."""
        with_digest, without = (home.ownership(run).describe(name, text) for name in (digest, ""))
        return with_digest if len(with_digest) <= LONGEST_DESCRIPTION else without

    def _digest(self, records: Iterable[str]) -> str:
        """Return what shows later whether somebody has added a record."""
        return identity_digest((self.name, self.type, *sorted(records)))[:8]

    def _body(self, run: CloudRun, fields: Collection[str], observed: Observed | None = None) -> Values:
        """Return what to send to create it, or of an existing one these fields."""
        body: Values = {"ttl": self.ttl} if "ttl" in fields else {}
        if "records" in fields:
            body["records"] = self._all_data(run)
        text = self.description if observed is None or "description" in fields else observed.values["description"]
        if observed is None or (observed.ours and not {"records", "description"}.isdisjoint(fields)):
            body["description"] = self._described(run, text, self._digest(self._all_data(run)))
        elif "description" in fields:
            body["description"] = text
        return body

    def _all_data(self, run: CloudRun) -> list[str]:
        addresses = {source.key: _address(run, source) for source in self.neighbours.sources}
        for key, address in addresses.items():
            if address is None:
                raise NotFound(f"{self.key}: {key} has no address yet")
        return sorted({*self._data, *(each for each in addresses.values() if each)})

    def create(self, run: CloudRun) -> Observed:
        zone = self._zone(run)
        if zone is None:
            raise NotFound(f"zone {self.zone} no longer exists, or is no longer shared with the project")
        body = {"name": f"{self.name}.", "type": self.type, **self._body(run, self.desired())}
        made = writer(run, self.owner).send("POST", f"/zones/{zone.id}/recordsets", body)
        return self._active(run, RecordsetRecord.read(made))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        """Send what differs; records that Designate could not publish are sent again, pending ones only awaited."""
        record, fields = observed.record_as(RecordsetRecord), [change.field for change in changes]
        if fields != ["status"] or record.status == ERROR:
            body = self._body(run, fields if fields != ["status"] else ["records"], observed)
            path = f"/zones/{record.zone_id}/recordsets/{record.id}"
            record = RecordsetRecord.read(writer(run, self.owner).send("PUT", path, body))
        return self._active(run, record)

    def _active(self, run: CloudRun, record: RecordsetRecord) -> Observed:
        return self._observed(run, until_active(writer(run, self.owner), record, str(self.key)))

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        """Yield the records that others have added."""
        for deletion in deletions:
            for record in sorted(deletion.observed.values["records"] - deletion.resource.desired()["records"]):
                words = "which the spec does not declare"
                record_id = f"{deletion.id}/{record}"
                yield deletion.key, DeletionLoss(effect=LossEffect.DELETED, kind="record", id=record_id, detail=words)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        record = observed.record_as(RecordsetRecord)
        writer(run, self.owner).delete(f"/zones/{record.zone_id}/recordsets/{record.id}")


def _floating_ip(recordset: Recordset, context: Context, name: str) -> FloatingIP | None:
    """Return the floating IP of the spec with a name: that of the recordset's project, if several projects have one."""
    named = [floating_ip for floating_ip in context.declared(FloatingIP) if floating_ip.name == name]
    return next(iter((*recordset.of_project(named), *named)), None)


def _named(source: Resource) -> str:
    """Return the record that a resource of the spec provides, in the vocabulary of the spec."""
    return f"address of {source.key}"


def _address(run: CloudRun, source: Resource) -> str | None:
    """Return the address that a resource of the spec has by now."""
    found = run.look(source)
    return found.outputs.get("address") if found else None
