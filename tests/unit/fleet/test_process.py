from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.base.errors import DownloadError
from openstack_prep.download.spool import Contents, Shared
from openstack_prep.fleet import process
from openstack_prep.fleet.order import Order
from openstack_prep.spec import Spec

pytestmark = pytest.mark.usefixtures("clouds_yaml")


def contents_of(phase: str, region: str | None = None) -> Contents:
    order = Order(target="red", verb="apply", spec="x", cloud="lab", region=region, phase=phase)
    found = process.cloud_of(order, Spec("x", ())).contents
    assert found is not None
    return found


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "disk").write_bytes(b"a disk")
    return str(tmp_path / "disk")


def test_all_connections_of_a_phase_share_contents(source: str) -> None:
    first = contents_of("a")
    assert contents_of("a", "one") is first
    process.end_phase("a")
    with pytest.raises(DownloadError, match="the run has ended"):
        list(Shared(first, source))


def test_another_phase_reads_again_and_leaves_the_first_alone(source: str) -> None:
    first, second = contents_of("a"), contents_of("b")
    assert first is not second
    process.end_phase("a")  # whose connections are forgotten already
    assert b"".join(Shared(first, source)) == b"a disk"
    assert b"".join(Shared(second, source)) == b"a disk"
    process.end_phase("b")
