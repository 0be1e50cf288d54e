"""The hop of a name through Designate, judged by its recordset: pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.exposures.model import Placed
from openstack_prep.openshift.verify.chain import ok, unknown
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.dns.recordsets import ACTIVE, ERROR, RecordsetRecord

RECORDSET = "recordset"


@dataclass(frozen=True)
class VisibleRecordset:
    """A recordset that the spec declares, and the one in Designate; None if it does not exist."""

    declared: Recordset
    record: RecordsetRecord | None


def hops(placed: Placed, seen: Sequence[VisibleRecordset], apply: str) -> Iterator[Diagnostic]:
    """Yield whether Designate leads the names of an exposure to its address; ``apply`` is the command for repairs.

    A recordset of the other IP version says nothing about this address.
    """
    kind = "AAAA" if placed.outside and ipaddress.ip_address(placed.outside).version == 6 else "A"
    for name in placed.exposure.names:
        for each in seen:
            if each.declared.name == name and each.declared.type == kind:
                yield _judged(placed, each.declared, each.record, apply)


def _judged(placed: Placed, declared: Recordset, record: RecordsetRecord | None, apply: str) -> Diagnostic:
    where = f"in Designate's zone {declared.zone}"
    if record is None:
        what = f"{declared.name} has no record of type {declared.type} {where}"
        return Diagnostic(code="recordset.missing", where=RECORDSET, what=what, fix=apply)
    found = f"{declared.name} is {', '.join(sorted(record.records))} {where}"
    if placed.outside and placed.outside not in record.records:
        what = f"{found}, not {placed.outside}"
        return Diagnostic(code="recordset.differs", where=RECORDSET, what=what, fix=apply)
    if record.status == ERROR:
        what = f"{found}, but its name servers did not take it"
        return Diagnostic(code="recordset.failed", where=RECORDSET, what=what, fix=apply)
    if record.status != ACTIVE:
        return unknown("recordset.pending", RECORDSET, f"{found}, but not yet on its name servers", "try again")
    return ok(RECORDSET, found)
