from __future__ import annotations

from dataclasses import replace

import pytest

from openstack_prep.base.diagnostic import DiagnosticStatus
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.paths.hops import VisibleRecordset, recordset_hops
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.dns.recordsets import RecordsetRecord

PUBLIC = "192.0.2.10"
SHOP = Exposed(
    name="shop",
    cluster="one",
    target=ExposureTarget(service="shop/frontend"),
    ports=(ExposedPort(port=443),),
    how="metallb",
    names=("shop.example.com", "other.example.org"),
)
PLACED = PlacedExposure(exposure=SHOP, address="10.1.0.209", public_address=PUBLIC)
DECLARED = Recordset(name="shop.example.com", zone="example.com", type="A", records=(PUBLIC,))
RECORD = RecordsetRecord(
    id="r1",
    zone_id="z1",
    project_id="p1",
    name="shop.example.com",
    zone="example.com",
    type="A",
    records=(PUBLIC,),
    ttl=None,
    description="",
    status="ACTIVE",
)


@pytest.mark.parametrize(
    ("record", "status", "code"),
    [
        (RECORD, DiagnosticStatus.OK, ""),
        (None, DiagnosticStatus.ERROR, "recordset.missing"),
        (replace(RECORD, records=("10.1.0.209",)), DiagnosticStatus.ERROR, "recordset.differs"),
        (replace(RECORD, status="ERROR"), DiagnosticStatus.ERROR, "recordset.failed"),
        (replace(RECORD, status="PENDING"), DiagnosticStatus.UNKNOWN, "recordset.pending"),
    ],
)
def test_the_hop(record: RecordsetRecord | None, status: DiagnosticStatus, code: str) -> None:
    (hop,) = recordset_hops(PLACED, [VisibleRecordset(DECLARED, record)], "openstack-prep apply s.yaml")
    assert hop.status is status
    assert code in ("", hop.code)
    assert hop.fix == ("openstack-prep apply s.yaml" if status is DiagnosticStatus.ERROR else hop.fix)


def test_other_recordsets_say_nothing() -> None:
    others = [replace(DECLARED, type="TXT", records=("x",)), replace(DECLARED, name="www.example.com")]
    assert not list(recordset_hops(PLACED, [VisibleRecordset(each, None) for each in others], "apply"))
    (six,) = recordset_hops(
        replace(PLACED, public_address="2001:db8::1"),
        [VisibleRecordset(replace(DECLARED, type="AAAA"), None), VisibleRecordset(DECLARED, RECORD)],
        "apply",
    )
    assert six.code == "recordset.missing"
