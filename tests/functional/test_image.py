"""Images on a real Glance, which inspects what is uploaded."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.image.image_fields import Rhcos
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.unit.web import Web, serve

SMALL, LARGE = qcow2(1), qcow2(2)


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk.qcow2"
    path.write_bytes(SMALL)
    return path


@pytest.fixture
def image(lab: Lab, disk: Path) -> Image:
    return Image(name=f"{lab.name}-rhcos", source=str(disk), checksum=sha256(SMALL))


def images(lab: Lab) -> list[Any]:
    """Return all images, of whatever state, that have to do with this test."""
    listed = (lab.admin.image.images(visibility="all", is_hidden=hidden) for hidden in (False, True))
    return [each for found in listed for each in found if lab.name in each.name]


def wait_for(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 120
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_from_create_to_destroy(lab: Lab, image: Image) -> None:
    full = replace(image, min_disk=1, min_ram=512, properties={"hw_disk_bus": "scsi"}, tags=("a", "b"), protected=True)
    lab.apply(full)
    (made,) = images(lab)
    assert (made.status, made.visibility, made.disk_format, made.owner) == (
        "active",
        "private",
        "qcow2",
        lab.project_id,
    )
    assert (made.min_disk, made.min_ram, made.hw_disk_bus, set(made.tags)) == (1, 512, "scsi", {"a", "b"})
    assert lab.admin.image.download_image(made).content == SMALL
    lab.admin.image.update_image(made, is_hidden=True)
    assert not lab.apply(full)
    assert str(image.key) in lab.destroy()
    assert not images(lab)


def test_drift_is_mended_without_an_upload(lab: Lab, devcloud: Devcloud, image: Image) -> None:
    wanted = replace(image, min_disk=1, properties={"hw_disk_bus": "scsi"})
    lab.apply(wanted)
    (made,) = images(lab)
    lab.admin.image.update_image(made, min_disk=2, hw_disk_bus="ide")
    mark = devcloud.mark()
    assert lab.apply(wanted) == {str(image.key): "update"}
    assert not [each for each in devcloud.requests_since(mark) if each.path.endswith("/file")]


def test_a_wrong_sum_never_leaves_an_active_image(lab: Lab, devcloud: Devcloud, image: Image) -> None:
    mark = devcloud.mark()
    assert "instead of" in lab.failure(replace(image, checksum=sha256(LARGE)))
    assert not images(lab)
    uploads = [each for each in devcloud.requests_since(mark) if each.path.endswith("/file")]
    assert [each.status for each in uploads] != [204]
    time.sleep(0.5)  # for Glance to see the end of the broken upload
    assert not images(lab)


def test_what_is_no_qcow2_is_refused_by_glance(lab: Lab, image: Image, disk: Path) -> None:
    """The plan judges a local file; Glance alone judges what it gets from a URL."""
    disk.write_bytes(os.urandom(2**20))
    wrong = replace(image, checksum=None, disk_format="qcow2")
    assert [each.name for refusal in lab.plan(wrong).refusals for each in refusal.keys] == [image.name]
    with serve(Web(disk.read_bytes())) as web:
        assert "415" in lab.failure(replace(wrong, source=web.url))
    assert not images(lab)


def test_another_content_takes_the_name(lab: Lab, image: Image, disk: Path) -> None:
    lab.apply(image)
    (before,) = images(lab)
    disk.write_bytes(LARGE)
    assert lab.apply(replace(image, checksum=sha256(LARGE))) == {str(image.key): "update"}
    (after,) = images(lab)
    assert after.name == image.name
    assert after.id != before.id
    assert lab.admin.image.download_image(after).content == LARGE


def test_an_image_that_somebody_has_renamed_is_kept(own_lab: Lab, disk: Path) -> None:
    """Such as the one before a new release; it stays protected through the new content, a prune and destroy."""
    lab, image = own_lab, Image(name=f"{own_lab.name}-rhcos", source=str(disk), checksum=sha256(SMALL))
    lab.apply(image)
    (kept,) = images(lab)
    lab.admin.image.update_image(kept, name=f"{image.name}-old", is_protected=True)
    disk.write_bytes(LARGE)
    wanted = replace(image, checksum=sha256(LARGE))
    assert lab.apply(wanted) == {str(image.key): "create"}
    assert sorted(each.name for each in images(lab)) == [image.name, f"{image.name}-old"]
    lab.destroy(wanted)
    lab.declared = {each.key: each for each in lab.base}
    assert lab.apply(prune=True) == {}
    (left,) = images(lab)
    assert (left.id, left.is_protected) == (kept.id, True)
    lab.admin.image.update_image(left, is_protected=False)
    lab.admin.image.delete_image(left)


STEPS = (
    Fault("glance", method="PUT", status=403),
    *(Fault("glance", method="PATCH", skip=skip, status=403) for skip in (0, 1, 2)),
    Fault("glance", method="DELETE", status=403),
)
"""The upload, the seal, the old one renamed, the new one renamed, the old one deleted."""


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(each, marks=pytest.mark.more) for each in range(1, len(STEPS) - 1)), len(STEPS) - 1]
)
def test_stopped_in_the_middle_of_a_swap(lab: Lab, devcloud: Devcloud, image: Image, disk: Path, number: int) -> None:
    lab.apply(image)
    disk.write_bytes(LARGE)
    wanted = replace(image, checksum=sha256(LARGE))
    with devcloud.faults(STEPS[number]):
        lab.failure(wanted)
    lab.apply(wanted)
    (left,) = images(lab)
    assert (left.name, lab.admin.image.download_image(left).content) == (image.name, LARGE)


@pytest.mark.parametrize("path", ["/images$", "/file$", pytest.param("/images/[^/]+$", marks=pytest.mark.more)])
def test_a_lost_answer_leaves_exactly_one(lab: Lab, devcloud: Devcloud, image: Image, path: str) -> None:
    with devcloud.faults(
        Fault("glance", method="" if path == "/images/[^/]+$" else "P", path_regex=path, drop_answer=True)
    ):
        lab.apply(image)
    (made,) = images(lab)
    assert made.status == "active"


def test_a_lost_creation_that_stale_lists_do_not_show(lab: Lab, devcloud: Devcloud, image: Image) -> None:
    lab.apply()
    lost = Fault("glance", method="POST", path_regex="/images$", effect="late", status=502)
    with devcloud.faults(lost, Fault("glance", method="GET", path_regex="/images$", skip=1, times=9, effect="stale")):
        lab.run(image).raise_for_failures()
    (made,) = images(lab)
    assert made.status == "active"


def test_a_foreign_image_of_that_name(lab: Lab, image: Image) -> None:
    lab.apply()
    foreign = lab.admin.image.create_image(
        image.name, data=LARGE, disk_format="qcow2", container_format="bare", owner=lab.project_id
    )
    with pytest.raises(PlanRefused, match="not managed by this spec"):
        lab.run(image)
    right = replace(image, checksum=f"sha512:{hashlib.sha512(LARGE).hexdigest()}")
    assert lab.apply(right) == {}
    assert lab.destroy(right) == set()
    lab.admin.image.delete_image(foreign)


def test_a_public_image(lab: Lab, image: Image) -> None:
    lab.apply(replace(image, visibility="public"))
    (made,) = images(lab)
    assert (made.visibility, made.owner) == ("public", lab.project_id)
    assert lab.apply(image) == {}  # unset is left alone
    lab.apply(replace(image, visibility="private"))


def test_who_shares_an_image_by_hand_is_named_before_that_ends(lab: Lab, image: Image, devcloud: Devcloud) -> None:
    shared = replace(image, visibility="shared")
    lab.apply(shared)
    (made,) = images(lab)
    team = lab.admin.identity.create_project(name=f"{lab.name}-team")
    lab.admin.image.add_member(made, member_id=team.id)
    private = replace(image, visibility="private")
    with pytest.raises(PlanRefused, match=f"--allow-loss project/{team.id}"):
        lab.run(private)
    lab.apply(private, allow_loss=[f"project/{team.id}"])
    lab.admin.identity.delete_project(team)


def test_from_the_web_over_a_bad_line(lab: Lab, image: Image) -> None:
    content = SMALL + b"\0" * 2**22
    with serve(Web(content, refusals=[503], breaks=[2**20, 2**21], etags=[""] * 9)) as web:
        lab.apply(replace(image, source=web.url, checksum=sha256(content)))
    (made,) = images(lab)
    assert made.size == len(content)


# --- as a user runs it --------------------------------------------------------------------


class Stalling(BaseHTTPRequestHandler):
    """Serves half of a file, and then nothing until it is let go."""

    go = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(SMALL)))
        self.end_headers()
        half = len(SMALL) // 2
        self.wfile.write(SMALL[:half])
        self.wfile.flush()
        self.go.wait(300)
        self.wfile.write(SMALL[half:])

    def log_message(self, *words: Any) -> None:
        pass


def spec(name: str, **fields: Any) -> dict[str, Any]:
    image = {"name": f"{name}-rhcos", "disk_format": "qcow2", **fields}
    return {"name": name, "project": {"name": name}, "images": [image]}


@pytest.fixture
def stalling() -> Iterator[str]:
    """The URL of a file that ends in the middle until the test lets it go on."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stalling)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Stalling.go.clear()
    yield f"http://127.0.0.1:{server.server_port}/disk"
    Stalling.go.set()
    server.shutdown()
    server.server_close()


def kill_during_upload(lab: Lab, prep: Prep) -> None:
    process = prep.start("apply", "--yes", prep.spec.name)
    wait_for(lambda: [each for each in images(lab) if each.status == "saving"])
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_killed_in_the_middle_of_an_upload(lab: Lab, prep: Prep, stalling: str) -> None:
    prep.write(spec(lab.name, source=stalling, checksum=sha256(SMALL)))
    kill_during_upload(lab, prep)
    Stalling.go.set()
    prep.apply()
    wait_for(lambda: len(images(lab)) == 1)
    (made,) = images(lab)
    assert (made.status, lab.admin.image.download_image(made).content) == ("active", SMALL)
    assert not prep.changes()


def test_renamed_during_an_upload(lab: Lab, prep: Prep, stalling: str) -> None:
    """The former content, which somebody wants to keep, is left alone."""
    (prep.folder / "disk.qcow2").write_bytes(LARGE)
    prep.write(spec(lab.name, source="disk.qcow2", checksum=sha256(LARGE)))
    prep.apply()
    (former,) = images(lab)
    prep.write(spec(lab.name, source=stalling, checksum=sha256(SMALL)))
    process = prep.start("apply", "--yes", prep.spec.name)
    wait_for(lambda: [each for each in images(lab) if each.status == "saving"])
    lab.admin.image.update_image(former, name=f"{lab.name}-4.14", is_protected=True)
    Stalling.go.set()
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert sorted(each.name for each in images(lab)) == [f"{lab.name}-4.14", f"{lab.name}-rhcos"]
    lab.admin.image.update_image(former, is_protected=False)
    lab.admin.image.delete_image(former)


@pytest.mark.parametrize("first", [{}, {"source": "disk.qcow2"}], ids=["new", "changed"])
def test_destroyed_at_once_after_a_kill_in_an_upload(
    lab: Lab, prep: Prep, stalling: str, first: dict[str, Any]
) -> None:
    if first:
        (prep.folder / "disk.qcow2").write_bytes(LARGE)
        prep.write(spec(lab.name, **first, checksum=sha256(LARGE)))
        prep.apply()
    prep.write(spec(lab.name, source=stalling, checksum=sha256(SMALL)))
    kill_during_upload(lab, prep)
    assert len(images(lab)) == 1 + len(first)
    prep.destroy()
    assert not images(lab)
    assert lab.admin.identity.find_project(lab.name) is None


def test_memory_does_not_grow_with_the_image(lab: Lab, prep: Prep) -> None:
    sizes = {"small": 2**20, "large": 2**28}
    peaks = {}
    for name, size in sizes.items():
        with (prep.folder / name).open("wb") as file:
            file.truncate(size)
        prep.write(spec(lab.name, source=name, disk_format="raw"))
        process = prep.start("apply", "--yes", prep.spec.name)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0
        peaks[name] = usage.ru_maxrss  # KiB
        prep.destroy()
    assert peaks["large"] - peaks["small"] < 20 * 1024


# --- RHCOS by stream metadata -------------------------------------------------------------


def hexadecimal(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def today(content: bytes, packed: bytes) -> dict[str, Any]:
    """Return CoreOS stream metadata of an image."""
    disk = {"location": "https://rhcos.invalid/disk", "sha256": hexadecimal(packed)}
    formats = {"qcow2.gz": {"disk": disk | {"uncompressed-sha256": hexadecimal(content)}}}
    return {"architectures": {"x86_64": {"artifacts": {"openstack": {"release": "418.94", "formats": formats}}}}}


def in_2019(content: bytes, packed: bytes) -> dict[str, Any]:
    """Return metadata of the 4.1 to 4.4 era, with a gz file that is named .qcow2."""
    image = {"path": "disk", "sha256": hexadecimal(packed), "size": len(packed)}
    more = {"uncompressed-sha256": hexadecimal(content), "uncompressed-size": len(content)}
    base = "https://rhcos.invalid/"
    return {"baseURI": base, "buildid": "42.80.20191002.0", "images": {"openstack": image | more}}


@pytest.mark.parametrize("era", [today, in_2019])
def test_a_release_of_either_era_and_the_next_one(
    lab: Lab, tmp_path: Path, era: Callable[[bytes, bytes], dict[str, Any]]
) -> None:
    stream = tmp_path / "stream.json"
    with serve(Web(b"")) as web:
        mirror = web.url.removesuffix("/disk")
        image = Image(name=f"{lab.name}-rhcos", rhcos=Rhcos(stream=str(stream), mirror=mirror), min_disk=1)

        def publish(content: bytes) -> None:
            web.content = gzip.compress(content)
            web.asked.clear()
            stream.write_text(json.dumps(era(content, web.content)))

        publish(SMALL)
        lab.apply(image)  # which also sees that a second one would do nothing
        (first,) = images(lab)
        assert (first.status, first.disk_format) == ("active", "qcow2")
        assert lab.admin.image.download_image(first).content == SMALL
        assert len(web.asked) == 1
        assert lab.apply(replace(image, tags=("kept",))) == {str(image.key): "update"}
        assert len(web.asked) == 1

        publish(LARGE)
        assert lab.apply(image) == {str(image.key): "update"}
        (second,) = images(lab)
        assert (second.name, lab.admin.image.download_image(second).content) == (image.name, LARGE)
        assert len(web.asked) == 1


@pytest.mark.parametrize("number", [0, 1], ids=["compressed", "uncompressed"])
def test_a_wrong_sum_of_either_kind(lab: Lab, tmp_path: Path, devcloud: Devcloud, number: int) -> None:
    stream = tmp_path / "stream.json"
    packed = gzip.compress(SMALL)
    said = json.dumps(today(SMALL, packed))
    stream.write_text(said.replace(hexadecimal([packed, SMALL][number]), "0" * 64))
    with serve(Web(packed)) as web:
        mirror = web.url.removesuffix("/disk")
        failure = lab.failure(Image(name=f"{lab.name}-rhcos", rhcos=Rhcos(stream=str(stream), mirror=mirror)))
    assert "instead of 0000" in failure
    assert not images(lab)
    time.sleep(0.5)  # for Glance to see the end of the broken upload
    assert not images(lab)


def test_memory_does_not_grow_with_what_is_unpacked(lab: Lab, prep: Prep) -> None:
    peaks = {}
    for name, size in {"small": 2**20, "large": 2**28}.items():
        with gzip.open(prep.folder / name, "wb", compresslevel=1) as file:
            for _ in range(size // 2**20):
                file.write(bytes(2**20))
        with serve(Web((prep.folder / name).read_bytes())) as web:
            prep.write(spec(lab.name, source=web.url, disk_format="raw"))
            process = prep.start("apply", "--yes", prep.spec.name)
            _, status, usage = os.wait4(process.pid, 0)
        assert status == 0
        peaks[name] = usage.ru_maxrss  # KiB
        prep.destroy()
    assert peaks["large"] - peaks["small"] < 32 * 1024


def test_from_an_installer_as_a_user_runs_it(lab: Lab, prep: Prep) -> None:
    """The installer is a stand-in: a script that prints what the real one has in itself."""
    packed = gzip.compress(SMALL)
    (prep.folder / "stream.json").write_text(json.dumps(today(SMALL, packed)))
    installer = prep.folder / "openshift-install"
    installer.write_text(f"#!/bin/sh\nexec cat {prep.folder}/stream.json\n")
    with serve(Web(packed)) as web:
        prep.write(spec(lab.name, rhcos={"installer": "openshift-install", "mirror": web.url.removesuffix("/disk")}))
        refused = prep.run("plan", prep.spec.name, code=2)
        assert "openshift-install cannot be run: Permission denied" in refused.stdout + refused.stderr
        installer.chmod(0o700)
        prep.apply()
        assert len(web.asked) == 1
    (made,) = images(lab)
    assert lab.admin.image.download_image(made).content == SMALL
    assert not prep.changes()
