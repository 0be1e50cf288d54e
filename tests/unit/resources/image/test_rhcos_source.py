from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep import Rhcos
from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Action
from openstack_prep.resources.image.glance import PACKED, SPEC
from openstack_prep.resources.image.image import Image
from tests.unit.resources.glance import NEW, OLD, SEAL, Glance, sha256

LOCATION = "https://rhcos.test/art/rhcos-4.11.qcow2.gz"


class Releases:
    """Stream metadata in a file, and a server for what they speak of; ``downloads`` counts its requests."""

    def __init__(self, services: requests_mock.Mocker, folder: Path) -> None:
        self.services = services
        self.path = folder / "stream.json"

    def publish(self, content: bytes, url: str = LOCATION) -> None:
        packed = gzip.compress(content)
        disk = {"location": LOCATION, "sha256": sha256(packed), "uncompressed-sha256": sha256(content)}
        artifact = {"release": "411.85", "formats": {"qcow2.gz": {"disk": disk}}}
        self.path.write_text(json.dumps({"architectures": {"x86_64": {"artifacts": {"openstack": artifact}}}}))
        self.server = self.services.get(url, content=packed)

    @property
    def downloads(self) -> int:
        return self.server.call_count


@pytest.fixture
def releases(services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Releases(services, tmp_path)


@pytest.fixture
def cloud(run: CloudRun) -> Cloud:
    return run.admin


@pytest.fixture
def coreos(releases: Releases) -> Image:
    return Image(name="rhcos", rhcos=Rhcos(stream=str(releases.path)))


def test_an_image_by_stream_metadata(cloud: Cloud, glance: Glance, releases: Releases, coreos: Image) -> None:
    releases.publish(OLD)
    prep.apply(cloud, [coreos], name="coreos").raise_for_failures()
    (made,) = glance.images.values()
    assert (made["disk_format"], made[SEAL], made["name"]) == ("qcow2", sha256(OLD), "rhcos")
    assert releases.downloads == 1
    assert not prep.plan(cloud, [coreos], name="coreos")
    assert releases.downloads == 1

    releases.publish(NEW)
    (step,) = prep.plan(cloud, [coreos], name="coreos")
    assert (step.action, [change.field for change in step.changes]) == (Action.UPDATE, ["checksum"])
    prep.apply(cloud, [coreos], name="coreos").raise_for_failures()
    (left,) = glance.images.values()
    assert (left["name"], left[SEAL]) == ("rhcos", sha256(NEW))
    assert releases.downloads == 1


def test_from_a_mirror(cloud: Cloud, glance: Glance, releases: Releases) -> None:
    releases.publish(NEW, "http://mirror.test/rhcos/art/rhcos-4.11.qcow2.gz")
    image = Image(name="rhcos", rhcos=Rhcos(stream=str(releases.path), mirror="http://mirror.test/rhcos"))
    prep.apply(cloud, [image], name="coreos").raise_for_failures()
    assert releases.downloads == 1


def test_from_the_cache_of_the_installer(
    cloud: Cloud, glance: Glance, releases: Releases, coreos: Image, tmp_path: Path
) -> None:
    releases.publish(NEW)
    path = tmp_path / "cache" / "openshift-installer" / "image_cache" / "rhcos-4.11.qcow2"
    path.parent.mkdir(parents=True)
    path.write_bytes(NEW)
    prep.apply(cloud, [coreos], name="coreos").raise_for_failures()
    (made,) = glance.images.values()
    assert made[SEAL] == sha256(NEW)
    assert PACKED not in made
    assert releases.downloads == 0
    assert not prep.plan(cloud, [coreos], name="coreos")


def test_metadata_that_cannot_be_read_are_a_refusal(
    cloud: Cloud, glance: Glance, releases: Releases, coreos: Image
) -> None:
    with pytest.raises(PlanRefused) as caught:
        prep.apply(cloud, [coreos, Image(name="other", source="/nowhere/disk")], name="coreos")
    said = [str(mistake) for mistake in caught.value.mistakes]
    assert len(said) == 2
    assert said[0].startswith("image/rhcos: ")
    assert "stream.json cannot be read" in said[0]


def test_destroy_needs_no_metadata(cloud: Cloud, glance: Glance, coreos: Image) -> None:
    glance.image("rhcos", OLD, owner="others", visibility="public")
    glance.ours("rhcos", NEW, of="rhcos")[SPEC] = "coreos"
    prep.destroy(cloud, [coreos], name="coreos").raise_for_failures()
    assert prep.show(cloud, [coreos], name="coreos") == {coreos.key: None}
    assert [each["owner"] for each in glance.images.values()] == ["others"]
