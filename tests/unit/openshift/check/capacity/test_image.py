from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.openshift.check.capacity.image import image
from tests.unit.conftest import ADMIN_PROJECT
from tests.unit.openshift.check.project import Project
from tests.unit.texts import contains
from tests.unit.web import Web, serve

WHERE = "platform.openstack.clusterOSImage"
RIGHT, OTHER, NINE, TEN = "1" * 64, "2" * 64, "9" * 64, "a" * 64


def rhcos(image_id: str = "i1", **fields: Any) -> dict[str, Any]:
    made = {"id": image_id, "name": "rhcos", "status": "active", "disk_format": "qcow2", "owner": "me"}
    return made | {"visibility": "private"} | fields


def installer(folder: Path, text: str) -> Path:
    """Return a script that prints stream metadata, and is no installer otherwise."""
    path = folder / "openshift-install"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    path.chmod(0o755)
    return path


def stream(arch: str, digits: str) -> str:
    disk = {"location": "https://x/y.gz", "sha256": "0" * 64, "uncompressed-sha256": digits}
    openstack = {"release": "418.94", "formats": {"qcow2.gz": {"disk": disk}}}
    return json.dumps({"architectures": {arch: {"artifacts": {"openstack": openstack}}}})


def test_none_is_the_installers_own(project: Project) -> None:
    assert project.found(image) == []


def test_one_that_is_active_is_right_and_so_is_a_raw_one(project: Project) -> None:
    project.images = [rhcos()]
    assert project.found(image, cluster_os_image="rhcos") == []
    project.images = [rhcos(disk_format="raw")]
    assert project.found(image, cluster_os_image="rhcos") == []


def test_none_and_several_of_that_name(project: Project) -> None:
    (missing,) = project.findings(image, cluster_os_image="rhcos")
    assert missing.what == "there is no image 'rhcos' that this project sees"
    assert "skips all its checks" in missing.why
    project.images = [rhcos(), rhcos("i2", status="queued", owner="they")]
    (several,) = project.findings(image, cluster_os_image="rhcos")
    assert (several.where, several.what) == (
        WHERE,
        "2 images are called 'rhcos': i1 (active, of me), i2 (queued, of they)",
    )
    command, _, note = several.fix.partition("  # ")
    assert command == "openstack image set --name rhcos-i2 i2"
    assert contains(note, "as an administrator", "ask first", "leaves the name to i1")
    project.images = [rhcos(), rhcos("i2", owner=ADMIN_PROJECT), rhcos("i3", owner=ADMIN_PROJECT, status="queued")]
    (several,) = project.findings(image, cluster_os_image="rhcos")
    assert several.fix.endswith("; leaves the name to i2")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"status": "queued"}, "image 'rhcos' is queued"),
        ({"status": "deactivated"}, "image 'rhcos' is deactivated"),
        ({"disk_format": "iso"}, "image 'rhcos' is iso, not qcow2 or raw"),
    ],
)
def test_one_that_does_not_boot(project: Project, fields: dict[str, str], what: str) -> None:
    project.images = [rhcos(**fields)]
    assert project.found(image, cluster_os_image="rhcos") == [f"error {WHERE}: {what}"]


@pytest.mark.parametrize(
    ("fields", "fix"),
    [
        (
            {"status": "deactivated", "owner": ADMIN_PROJECT},
            "openstack --os-cloud defaults image set --activate i1  # ask first who has deactivated it",
        ),
        (
            {"status": "deactivated"},
            "openstack image set --activate i1  # as an administrator, or a member of project me",
        ),
        (
            {"status": "importing"},
            "openstack --os-cloud defaults image show -c status i1  # wait, unless its upload broke off",
        ),
        ({"status": "killed"}, "upload it again"),
    ],
)
def test_only_a_deactivated_one_becomes_active_by_a_command(project: Project, fields: dict[str, str], fix: str) -> None:
    project.images = [rhcos(**fields)]
    (found,) = project.findings(image, cluster_os_image="rhcos")
    assert found.fix == fix


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_the_installer_knows_its_image_by_the_sum(project: Project, tmp_path: Path, arch: str) -> None:
    mine = installer(tmp_path, stream(arch, RIGHT))
    project.images = [rhcos(openstack_prep_sha256=RIGHT)]
    assert project.found(image, cluster_os_image="rhcos", installer=mine) == []
    project.images = [rhcos(openstack_prep_sha256=OTHER)]
    (said,) = project.found(image, cluster_os_image="rhcos", installer=mine)
    assert said.startswith(f"warning {WHERE}: image 'rhcos' has sha256 {OTHER}, which is not that of this installer")


BY_STREAM = """case "$*" in
"coreos print-stream-json"|"coreos print-stream-json --stream rhel-10") cat ten;;
"coreos print-stream-json --stream rhel-9") cat nine;;
*) exit 1;;
esac"""


@pytest.mark.parametrize(
    ("sealed", "chosen", "codes"),
    [
        (TEN, None, []),
        (TEN, "rhel-10", []),
        (NINE, "rhel-9", []),
        (NINE, None, ["image.other-stream"]),
        (NINE, "rhel-10", ["image.other-stream"]),
        (TEN, "rhel-9", ["image.other-stream"]),
        (OTHER, "rhel-9", ["image.other-release"]),
        (OTHER, "centos-10", []),  # this installer has no such stream, so it cannot tell
    ],
)
def test_the_image_is_that_of_the_stream_of_the_cluster(
    project: Project, tmp_path: Path, sealed: str, chosen: str | None, codes: list[str]
) -> None:
    for name, digits in (("nine", NINE), ("ten", TEN)):
        (tmp_path / name).write_text(stream("x86_64", digits))
    mine = tmp_path / "openshift-install"
    mine.write_text(f"#!/bin/sh\ncd {tmp_path}\n{BY_STREAM}\n")
    mine.chmod(0o755)
    project.images = [rhcos(openstack_prep_sha256=sealed)]
    cluster: dict[str, Any] = {"release": "5.0", "cluster_os_image": "rhcos", "os_image_stream": chosen}
    found = project.findings(image, installer=mine, **cluster)
    assert [each.code for each in found] == codes
    if chosen and codes:
        assert f"rhcos: {{installer: {mine}, os_image_stream: {chosen}}}" in found[0].fix


@pytest.mark.parametrize("text", ["no JSON", "{}"])
def test_an_installer_that_does_not_tell_is_not_asked_twice(project: Project, tmp_path: Path, text: str) -> None:
    project.images = [rhcos(openstack_prep_sha256=OTHER)]
    assert project.found(image, cluster_os_image="rhcos", installer=installer(tmp_path, text)) == []


def test_an_image_that_carries_no_sum_is_nobodys_business(project: Project, tmp_path: Path) -> None:
    project.images = [rhcos()]
    assert project.found(image, cluster_os_image="rhcos", installer=tmp_path / "none") == []


# --- by URL -------------------------------------------------------------------------------


def at(tmp_path: Path, name: str, query: str = "") -> str:
    (tmp_path / name).write_bytes(b"QFI\xfb")
    return f"file://{tmp_path}/{name}{query}"


def test_a_url_that_can_be_read_and_has_its_sum(project: Project, tmp_path: Path) -> None:
    assert project.found(image, cluster_os_image=at(tmp_path, "rhcos.qcow2.gz", f"?sha256={RIGHT}")) == []


def test_a_url_without_a_sum_and_one_of_a_raw_image(project: Project, tmp_path: Path) -> None:
    (said,) = project.found(image, cluster_os_image=at(tmp_path, "rhcos.qcow2"))
    assert said == f"warning {WHERE}: file://{tmp_path}/rhcos.qcow2 has no ?sha256="
    (said,) = project.found(image, cluster_os_image=at(tmp_path, "rhcos.raw.gz", f"?sha256={RIGHT}"))
    assert said == f"error {WHERE}: file://{tmp_path}/rhcos.raw.gz is a raw image"


def test_a_scheme_that_the_installer_does_not_know(project: Project) -> None:
    (said,) = project.found(image, cluster_os_image="ftp://me:hush@host/rhcos.qcow2")
    assert said == f"error {WHERE}: the scheme of ftp://host/rhcos.qcow2 is not one of http, https, file"


def test_a_url_that_is_none(project: Project) -> None:
    (said,) = project.found(image, cluster_os_image="http://me:hush@[::1/rhcos.qcow2")
    assert said == f"error {WHERE}: http://... is not a valid URL"


def test_a_url_that_nobody_answers(project: Project, tmp_path: Path) -> None:
    (said,) = project.found(image, cluster_os_image=f"file://{tmp_path}/none.qcow2?sha256={RIGHT}")
    assert said.startswith(f"error {WHERE}: {tmp_path}/none.qcow2 cannot be read")


def test_only_the_beginning_is_downloaded(project: Project) -> None:
    project.services.real_http = True
    with serve(Web(b"QFI\xfb" + bytes(2**24))) as web:
        assert project.found(image, cluster_os_image=f"{web.url}.qcow2?sha256={RIGHT}") == []
        assert len(web.asked) == 1
    with serve(Web(b"", refusals=[404])) as web:
        (said,) = project.found(image, cluster_os_image=f"{web.url}.qcow2?sha256={RIGHT}")
    assert said.startswith(f"error {WHERE}: {web.url}.qcow2 cannot be downloaded: 404")
