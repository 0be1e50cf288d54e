"""Images on a real Glance, which inspects what is uploaded."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.errors import PlanRefused
from openstack_prep.resources import Image
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
    return [each for each in lab.admin.image.images(visibility="all") if lab.name in each.name]


def wait_for(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
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
    disk.write_bytes(os.urandom(2**20))
    assert "415" in lab.failure(replace(image, checksum=None, disk_format="qcow2"))
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


STEPS = (
    Fault("glance", method="PUT", status=400),
    *(Fault("glance", method="PATCH", skip=skip, status=400) for skip in (0, 1, 2)),
    Fault("glance", method="DELETE", status=400),
)
"""The upload, the seal, the old one renamed, the new one renamed, the old one deleted."""


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_stopped_in_the_middle_of_a_swap(lab: Lab, devcloud: Devcloud, image: Image, disk: Path, number: int) -> None:
    lab.apply(image)
    disk.write_bytes(LARGE)
    wanted = replace(image, checksum=sha256(LARGE))
    with devcloud.faults(STEPS[number]):
        lab.failure(wanted)
    lab.apply(wanted)
    (left,) = images(lab)
    assert (left.name, lab.admin.image.download_image(left).content) == (image.name, LARGE)


@pytest.mark.parametrize("path", ["/images$", "/file$", "/images/[^/]+$"])
def test_a_lost_answer_leaves_exactly_one(lab: Lab, devcloud: Devcloud, image: Image, path: str) -> None:
    with devcloud.faults(
        Fault("glance", method="" if path == "/images/[^/]+$" else "P", path_regex=path, drop_answer=True)
    ):
        lab.apply(image)
    (made,) = images(lab)
    assert made.status == "active"


def test_a_foreign_image_of_that_name(lab: Lab, image: Image) -> None:
    lab.apply()
    foreign = lab.admin.image.create_image(
        image.name, data=LARGE, disk_format="qcow2", container_format="bare", owner=lab.project_id
    )
    with pytest.raises(PlanRefused, match="not made by this spec"):
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
        self.go.wait(30)
        self.wfile.write(SMALL[half:])

    def log_message(self, *words: Any) -> None:
        pass


def spec(name: str, **fields: Any) -> dict[str, Any]:
    image = {"name": f"{name}-rhcos", "disk_format": "qcow2", **fields}
    return {"name": name, "project": {"name": name}, "images": [image]}


def test_killed_in_the_middle_of_an_upload(lab: Lab, prep: Prep) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stalling)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Stalling.go.clear()
    prep.write(spec(lab.name, source=f"http://127.0.0.1:{server.server_port}/disk", checksum=sha256(SMALL)))
    process = prep.start("apply", "--yes", prep.spec.name)
    wait_for(lambda: [each for each in images(lab) if each.status == "saving"])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    Stalling.go.set()
    prep.apply()
    wait_for(lambda: len(images(lab)) == 1)
    (made,) = images(lab)
    assert (made.status, lab.admin.image.download_image(made).content) == ("active", SMALL)
    assert not prep.changes()
    server.shutdown()
    server.server_close()


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
