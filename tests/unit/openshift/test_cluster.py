from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.openshift.cluster import ClusterAddresses, Metadata, read_metadata, rebuild_metadata
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from tests.unit.texts import Wording, expect_error

ID = "demo-fc79k"
# as the installer wrote it in a real run
WRITTEN = {
    "clusterName": "demo",
    "clusterID": "a1a8ba4e-6fc1-4e99-a198-0ae8e92d1cf8",
    "infraID": ID,
    "openstack": {"cloud": "lab", "identifier": {"openshiftClusterID": ID}},
    "featureSet": "",
    "customFeatureSet": None,
}


def written(tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps(WRITTEN | fields))
    return path


def test_the_installers_file(tmp_path: Path) -> None:
    assert read_metadata(written(tmp_path)) == Metadata(
        infra_id=ID, cluster_name="demo", cluster_id="a1a8ba4e-6fc1-4e99-a198-0ae8e92d1cf8", cloud="lab"
    )


def test_a_lost_file_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    rebuilt = rebuild_metadata(ID, cloud="lab")
    path.write_text(rebuilt.text)
    assert read_metadata(path) == rebuilt
    data = json.loads(rebuilt.text)
    assert {key: data[key] for key in ("clusterName", "infraID", "openstack")} == {
        key: WRITTEN[key] for key in ("clusterName", "infraID", "openstack")
    }


def test_a_clusters_name_is_no_infra_id() -> None:
    with expect_error(SpecError, "demo", "infraID"):
        rebuild_metadata("demo")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "metadata.json: is not JSON"),
        ("\udcff", "metadata.json: is not JSON"),
        ("[]", "metadata.json: is not a mapping; give the installer's folder or the infraID"),
    ],
)
def test_what_is_no_metadata(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "metadata.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(SpecError, match=said):
        read_metadata(path)


def test_no_file(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        read_metadata(tmp_path / "metadata.json")
    wording(caught.value)


def test_every_mistake_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, clusterName=None, infraID="Demo", openstack=None)
    with pytest.raises(SpecError) as caught:
        read_metadata(path)
    assert [each.where.removeprefix(f"{path}: ") for each in caught.value.mistakes] == [
        "clusterName",
        "infraID",
        "openstack",
    ]


def test_the_file_of_two_clusters(tmp_path: Path) -> None:
    path = written(tmp_path, openstack={"identifier": {"openshiftClusterID": "other-aaaaa"}})
    with pytest.raises(SpecError, match="openshiftClusterID is 'other-aaaaa', but infraID is 'demo-fc79k'"):
        read_metadata(path)


def test_addresses_become_attachments_and_pairs() -> None:
    given = ClusterAddresses(ingress_floating_ip="192.0.2.5", api_floating_ip="f1", vips=("10.0.0.5/32",))
    tag = "openshiftClusterID=demo-fc79k"
    assert given.resources(ID) == (
        FloatingIPAttachment(port="demo-fc79k-api-port", floating_ip_id="f1", tag=tag),
        FloatingIPAttachment(port="demo-fc79k-ingress-port", address="192.0.2.5", tag=tag),
        AddressPairs(name=ID, infra_id=ID, addresses=("10.0.0.5",), prune=False),
    )
    assert ClusterAddresses().resources(ID) == ()


def test_addresses_that_are_none_are_named_together(wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        ClusterAddresses(vips=("10.0.0.300", "10.0.0.5/8")).resources(ID)
    assert len(caught.value.mistakes) == 2
    wording(str(caught.value))
