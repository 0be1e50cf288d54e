"""Ways into a real Glance other than a plain upload; members of an image, and the installer's cache."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import threading
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.image.image import Image
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep
from tests.functional.lab import Lab
from tests.functional.test_image import LARGE, SMALL, Stalling, hexadecimal, images, sha256, spec, today, wait_for
from tests.unit.stand_in_qemu_img import stand_in
from tests.unit.web import Web, serve


def sha512(content: bytes) -> str:
    return f"sha512:{hashlib.sha512(content).hexdigest()}"


# --- web-download -------------------------------------------------------------------------


def test_glance_fetches_it_and_the_next_release(lab: Lab) -> None:
    with serve(Web(SMALL)) as web:
        image = Image(name=f"{lab.name}-rhcos", source=web.url, checksum=sha512(SMALL), import_method="web-download")
        lab.apply(replace(image, properties={"hw_disk_bus": "scsi"}))
        assert "Python-urllib" in web.asked[-1]["User-Agent"]  # it was Glance who came last
        (first,) = images(lab)
        assert (first.name, first.status, first.disk_format, first.hw_disk_bus) == (
            image.name,
            "active",
            "qcow2",
            "scsi",
        )
        web.content = LARGE
        assert lab.apply(replace(image, checksum=sha512(LARGE))) == {str(image.key): "update"}
    (second,) = images(lab)
    assert (second.name, lab.admin.image.download_image(second).content) == (image.name, LARGE)


def test_what_glance_cannot_import_is_not_left(lab: Lab) -> None:
    with serve(Web(SMALL)) as web:
        image = Image(name=f"{lab.name}-rhcos", source=web.url, import_method="web-download")
        assert f"sha512 {hexadecimal512(SMALL)} instead of" in lab.failure(replace(image, checksum=sha512(LARGE)))
        assert not images(lab)
        web.content = b"no disk" * 4096
        assert "Task failed" in lab.failure(replace(image, disk_format="qcow2"))
        assert not images(lab)
    unseen = replace(image, source="http://127.0.0.1:1/disk", disk_format="qcow2", compression="none")
    failure = lab.failure(unseen)
    assert "Glance cannot import http://127.0.0.1:1/disk: Task failed due to" in failure
    assert "(task " in failure
    assert "does not pass filtering" in lab.failure(replace(unseen, source="http://127.0.0.2:1/disk"))
    assert not images(lab)


def hexadecimal512(content: bytes) -> str:
    return hashlib.sha512(content).hexdigest()


def test_what_web_download_cannot_do_is_refused_as_a_user_sees_it(lab: Lab, prep: Prep) -> None:
    with serve(Web(gzip.compress(SMALL))) as web:
        prep.write(spec(lab.name, source=web.url, checksum=sha256(SMALL), import_method="web-download"))
        refused = prep.run("apply", "--yes", prep.spec.name, code=2)
    said = refused.stdout + refused.stderr
    assert "Glance computes no sha256 of imported images, so the image cannot be verified; use sha512" in said
    assert "source: is compressed with gz, and web-download does not decompress" in said
    assert not images(lab)


def test_killed_while_glance_imports(lab: Lab, prep: Prep) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stalling)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Stalling.go.clear()
    source = f"http://127.0.0.1:{server.server_port}/disk"
    ways = {"import_method": "web-download", "compression": "none"}
    prep.write(spec(lab.name, source=source, checksum=sha512(SMALL), **ways))
    process = prep.start("apply", "--yes", prep.spec.name)
    wait_for(lambda: [each for each in images(lab) if each.properties.get("os_glance_import_task")])
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


# --- raw ----------------------------------------------------------------------------------


def test_converted_to_raw(lab: Lab, devcloud: Devcloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """qemu-img is a stand-in, which knows what comes of this one image."""
    raw = bytes(2**20) + os.urandom(2**16)
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', raw)}:{os.environ['PATH']}")
    disk = tmp_path / "disk.qcow2.gz"
    disk.write_bytes(gzip.compress(SMALL))
    image = Image(name=f"{lab.name}-rhcos", source=str(disk), checksum=sha512(SMALL), output_format="raw")
    lab.apply(image)  # which also sees that a second one would do nothing
    (made,) = images(lab)
    assert (made.disk_format, lab.admin.image.download_image(made).content) == ("raw", raw)
    mark = devcloud.mark()
    assert lab.apply(replace(image, checksum=sha256(SMALL))) == {}  # the seal has that sum, too
    assert not [each for each in devcloud.requests_since(mark) if each.service == "glance" and each.method != "GET"]
    assert "instead of" in lab.failure(replace(image, checksum=sha256(LARGE)))
    assert [each.id for each in images(lab)] == [made.id]


# --- members ------------------------------------------------------------------------------


def test_shared_with_projects(lab: Lab, devcloud: Devcloud, tmp_path: Path) -> None:
    disk = tmp_path / "disk.qcow2"
    disk.write_bytes(SMALL)
    others = [Project(name=f"{lab.name}-{end}") for end in "bc"]
    image = Image(
        name=f"{lab.name}-rhcos",
        project=lab.name,
        source=str(disk),
        checksum=sha256(SMALL),
        shared_with=(others[0].name,),
    )
    with devcloud.faults(Fault("glance", method="POST", path_regex="/members$", drop_answer=True)):
        lab.apply(image, *others)
    (made,) = images(lab)
    ids = {name: lab.admin.identity.find_project(name).id for name in (each.name for each in others)}
    assert (made.visibility, members(lab, made)) == ("shared", {ids[others[0].name]: "accepted"})

    lab.admin.image.add_member(made, member_id=ids[others[1].name])
    assert lab.apply(image, *others) == {}
    assert members(lab, made) == dict(zip(ids.values(), ("accepted", "pending"), strict=True))
    lab.admin.image.update_member(ids[others[0].name], made, status="rejected")
    assert lab.apply(image, *others) == {}

    disk.write_bytes(LARGE)
    lab.apply(replace(image, checksum=sha256(LARGE)), *others)
    (after,) = images(lab)
    assert members(lab, after) == dict(zip(ids.values(), ("rejected", "pending"), strict=True))  # as others have it
    with pytest.raises(PlanRefused, match="nobody does not exist"):
        lab.run(replace(image, checksum=sha256(LARGE), shared_with=("nobody",)))


def members(lab: Lab, image: Any) -> dict[str, str]:
    return {each.member_id: each.status for each in lab.admin.image.members(image)}


# --- the installer's cache ----------------------------------------------------------------


def test_an_upload_fills_the_cache_of_the_installer(lab: Lab, prep: Prep) -> None:
    packed = gzip.compress(SMALL)
    stream = today(SMALL, packed)
    location = "https://rhcos.invalid/art/rhcos-4.18.qcow2.gz"
    (prep.folder / "stream.json").write_text(json.dumps(stream).replace("https://rhcos.invalid/disk", location))
    prep.environment["XDG_CACHE_HOME"] = str(prep.folder / "cache")
    cache = prep.folder / "cache" / "openshift-installer" / "image_cache"
    older = hashlib.md5(f"{location}?sha256={hexadecimal(SMALL)}".encode(), usedforsecurity=False).hexdigest()
    with serve(Web(packed)) as web:
        mirror = web.url.removesuffix("/disk")
        prep.write(spec(lab.name, rhcos={"stream": "stream.json", "mirror": mirror, "cache": True}))
        prep.apply()
        assert {path.name: path.read_bytes() for path in cache.iterdir()} == {
            "rhcos-4.18.qcow2": SMALL,
            older: SMALL,
        }
        assert not prep.changes()
        prep.destroy()
        prep.apply()  # from the cache, this time
        assert len(web.asked) == 1
