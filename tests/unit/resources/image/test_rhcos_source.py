from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep import Rhcos
from openstack_prep.base.errors import PlanRefused, PrepError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Action
from openstack_prep.openshift.install_config import Machines
from openstack_prep.openshift.install_config_file import InstallConfig
from openstack_prep.resources.image.glance import PACKED, SPEC
from openstack_prep.resources.image.image import Image
from openstack_prep.spec.spec import Spec
from tests.unit.resources.glance import NEW, OLD, SEAL, Glance, sha256
from tests.unit.texts import Wording, contains

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
    cloud: Cloud, glance: Glance, releases: Releases, coreos: Image, wording: Wording
) -> None:
    with pytest.raises(PlanRefused) as caught:
        prep.apply(cloud, [coreos, Image(name="other", source="/nowhere/disk")], name="coreos")
    said = [str(mistake) for mistake in caught.value.mistakes]
    assert len(said) == 2
    assert said[0].startswith("image/rhcos: ")
    wording(said[0])


def test_destroy_needs_no_metadata(cloud: Cloud, glance: Glance, coreos: Image) -> None:
    glance.image("rhcos", OLD, owner="others", visibility="public")
    glance.ours("rhcos", NEW, of="rhcos")[SPEC] = "coreos"
    prep.destroy(cloud, [coreos], name="coreos").raise_for_failures()
    assert prep.show(cloud, [coreos], name="coreos") == {coreos.key: None}
    assert [each["owner"] for each in glance.images.values()] == ["others"]


# --- streams ------------------------------------------------------------------------------

BUILDS = {"rhel-9": "9.8.20260403-0", "rhel-10": "10.2.20260715-0"}
CONTENTS = {"rhel-9": OLD, "rhel-10": NEW}


@pytest.fixture
def program(services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installer of 5.0: rhel-10 unless it is asked for another stream."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for stream, build in BUILDS.items():
        location, packed = f"https://rhcos.test/{build}/rhcos-{build}.qcow2.gz", gzip.compress(CONTENTS[stream])
        disk = {"location": location, "sha256": sha256(packed), "uncompressed-sha256": sha256(CONTENTS[stream])}
        artifact = {"release": build, "formats": {"qcow2.gz": {"disk": disk}}}
        metadata = {"architectures": {"x86_64": {"artifacts": {"openstack": artifact}}}}
        (tmp_path / f"{stream}.json").write_text(json.dumps(metadata))
        services.get(location, content=packed)
    path = tmp_path / "openshift-install"
    path.write_text(f'#!/bin/sh\nexec cat "{tmp_path}/${{4:-rhel-10}}.json"\n')
    path.chmod(0o755)
    return str(path)


def machines(stream: str | None, image: str = "rhcos", name: str = "ocp") -> InstallConfig:
    required = {"base_domain": "example.com", "cloud": "lab", "pull_secret_file": "/nowhere"}
    return InstallConfig(
        path=f"/nowhere/{name}/install-config.yaml",
        cluster_name=name,
        release="5.0",
        cluster_os_image=image,
        os_image_stream=stream,
        machines=Machines(flavor="master"),
        external_network="external",
        **required,
    )


def content(cloud: Cloud, glance: Glance, image: Image, *others: InstallConfig) -> bytes:
    """Return the content of the image that an apply of it creates beside install_configs."""
    prep.apply(cloud, Spec("coreos", (image, *others)).limited_to("image")).raise_for_failures()
    (made,) = glance.images.values()
    return next(each for each in CONTENTS.values() if sha256(each) == made[SEAL])


@pytest.mark.parametrize(
    ("chosen", "streams", "expected"),
    [
        (None, (), "rhel-10"),
        ("rhel-9", (), "rhel-9"),
        (None, ("rhel-9",), "rhel-9"),
        (None, (None, "rhel-9"), "rhel-9"),
        ("rhel-10", ("rhel-9",), "rhel-10"),
    ],
)
def test_the_stream_is_that_of_the_image_or_of_the_cluster_that_boots_it(
    cloud: Cloud, glance: Glance, program: str, chosen: str | None, streams: tuple[str | None, ...], expected: str
) -> None:
    image = Image(name="rhcos", rhcos=Rhcos(installer=program, os_image_stream=chosen))
    clusters = [machines(stream, name=f"ocp{number}") for number, stream in enumerate(streams)]
    assert content(cloud, glance, image, *clusters, machines("rhel-9", "foreign")) == CONTENTS[expected]


def refusal(cloud: Cloud, *resources: Image | InstallConfig) -> str:
    with pytest.raises(PrepError) as caught:
        prep.plan(cloud, resources, name="coreos")
    return str(caught.value)


def test_one_image_cannot_be_of_two_streams(cloud: Cloud, glance: Glance, program: str) -> None:
    image = Image(name="rhcos", rhcos=Rhcos(installer=program))
    said = refusal(cloud, image, machines("rhel-9"), machines("rhel-10", name="other"))
    assert contains(said, "image/rhcos", "install_configs", "rhel-10", "rhel-9")


def test_the_name_of_an_image_says_its_stream(cloud: Cloud, glance: Glance, program: str) -> None:
    said = refusal(cloud, Image(name="rhcos-5.0-rhel-9", rhcos=Rhcos(installer=program)))
    assert contains(said, "image/rhcos-5.0-rhel-9", "rhel-9", "10.2.20260715-0", "rhel-10")
    right = Image(name="rhcos-5.0-rhel-9", rhcos=Rhcos(installer=program, os_image_stream="rhel-9"))
    assert content(cloud, glance, right) == CONTENTS["rhel-9"]
