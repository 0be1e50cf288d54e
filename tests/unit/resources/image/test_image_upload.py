from __future__ import annotations

import gzip
import hashlib
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
import requests_mock

from openstack_prep.base.errors import DownloadError, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.image.glance import CONVERTED, PACKED
from openstack_prep.resources.image.image import Image
from tests.unit.conftest import failure
from tests.unit.resources.glance import GLANCE, NEW, OLD, SEAL, Glance, apply, plan, settle, sha256
from tests.unit.stand_in_qemu_img import stand_in
from tests.unit.texts import Wording, contains

# --- compressed sources -------------------------------------------------------------------


def test_it_is_unpacked_on_the_way(run: CloudRun, glance: Glance, disk: Path) -> None:
    packed = gzip.compress(NEW)
    disk.write_bytes(packed)
    sums = {"checksum": f"sha256:{sha256(NEW)}", "compressed_checksum": f"sha256:{sha256(packed)}"}
    settle(run, glance, Image(name="rhcos", source=str(disk), **sums))  # type: ignore[arg-type]
    (made,) = glance.images.values()
    assert (made["disk_format"], made["size"], made[PACKED]) == ("qcow2", len(NEW), f"sha256:{sha256(packed)}")
    disk.unlink()  # the right content is kept, whatever the file it came in
    assert not plan(run, Image(name="rhcos", source=str(disk), **(sums | {"compressed_checksum": "md5:" + "0" * 32})))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["checksum", "compressed_checksum"])
def test_a_wrong_sum_of_either_kind_leaves_nothing(run: CloudRun, glance: Glance, disk: Path, name: str) -> None:
    packed = gzip.compress(NEW)
    disk.write_bytes(packed)
    sums = {"checksum": f"sha256:{sha256(NEW)}", "compressed_checksum": f"sha256:{sha256(packed)}"}
    (result,) = apply(run, Image(name="rhcos", source=str(disk), **(sums | {name: f"sha256:{sha256(OLD)}"}))).failed  # type: ignore[arg-type]
    assert isinstance(result.error, DownloadError)
    assert not glance.images


def test_the_sum_of_the_file_alone_tells_a_new_release(run: CloudRun, glance: Glance, disk: Path) -> None:
    for content in (OLD, NEW):
        disk.write_bytes(gzip.compress(content))
        image = Image(
            name="rhcos",
            source=str(disk),
            compressed_checksum=f"sha512:{hashlib.sha512(disk.read_bytes()).hexdigest()}",
        )
        apply(run, image).raise_for_failures()
        assert not plan(run, image)
    settle(run, glance, image)
    assert glance.asked.count("upload rhcos-new") == 1
    glance.images.clear()
    glance.image("rhcos", NEW)
    with pytest.raises(PlanRefused, match="unknown sha512"):
        apply(run, image)


COMPRESSED = {"container_format": "compressed", "disk_format": "qcow2"}


@pytest.mark.parametrize("fields", [COMPRESSED, {"compression": "none", "disk_format": "raw"}])
def test_what_shall_stay_compressed(run: CloudRun, glance: Glance, disk: Path, fields: dict[str, Any]) -> None:
    disk.write_bytes(gzip.compress(NEW))
    checksum = f"sha256:{sha256(disk.read_bytes())}"
    apply(run, Image(name="rhcos", source=str(disk), checksum=checksum, **fields))
    (made,) = glance.images.values()
    assert made[SEAL] == sha256(disk.read_bytes())


def test_a_format_that_glance_does_not_find(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, image: Image
) -> None:
    services.put(f"{GLANCE}/images/i1/file", **failure(415, "The request media type is not supported"))
    (result,) = apply(run, image).failed
    assert result.error.code == "cloud.resource-failed"
    assert contains(str(result.error), "qcow2", "disk_format")
    assert not glance.images


def test_one_that_cannot_be_taken_away_hides_no_error(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, disk: Path
) -> None:
    services.delete(f"{GLANCE}/images/i1", **failure(409, "image i1 is in use"))
    wrong = Image(name="rhcos", source=str(disk), checksum=f"sha256:{sha256(OLD)}")
    (result,) = apply(run, wrong).failed
    said = r"disk has sha256 \w+ instead of .*; image i1 could not be deleted: .*is in use.*; run the command again"
    assert re.search(said, str(result.error))
    assert glance.asked == ["create rhcos", "upload rhcos"]


def test_one_that_a_concurrent_run_deletes_during_the_upload(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, image: Image
) -> None:
    def finished_elsewhere(request: Any, context: Any) -> Any:
        del glance.images["i1"]
        glance.ours("rhcos", NEW)
        context.status_code = 410
        return {"message": "Image i1 could not be found after upload"}

    services.put(f"{GLANCE}/images/i1/file", json=finished_elsewhere)
    services.delete(f"{GLANCE}/images/i1", **failure(400, "Bad Request"))
    apply(run, image).raise_for_failures()
    assert list(glance.images) == ["i2"]


# --- the installer's cache ----------------------------------------------------------------


def test_an_upload_fills_the_cache(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    served = services.get("http://web.test/a.qcow2.gz", content=gzip.compress(NEW))
    image = Image(
        name="rhcos",
        source="http://web.test/a.qcow2.gz",
        cached_as="https://rhcos.test/b.qcow2.gz",
        checksum=f"sha256:{sha256(NEW)}",
    )
    services.put(f"{GLANCE}/images/i1/file", exc=requests.ConnectTimeout)  # before anything was read
    settle(run, glance, image)
    folder = tmp_path / "openshift-installer" / "image_cache"
    assert len(list(folder.iterdir())) == 2
    assert (folder / "b.qcow2").read_bytes() == NEW
    asked = served.call_count
    glance.images.clear()
    settle(run, glance, image)
    assert served.call_count == asked


def test_a_local_file_gets_there_too(
    run: CloudRun, glance: Glance, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settle(run, glance, replace(image, cached_as="https://rhcos.test/b.qcow2.gz"))
    assert (tmp_path / "openshift-installer" / "image_cache" / "b.qcow2").read_bytes() == NEW


# --- made raw by a stand-in for qemu-img --------------------------------------------------

RAW = b"a raw disk"


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: Image) -> Image:
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', RAW)}:/usr/bin:/bin")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return replace(image, output_format="raw")


def test_it_is_made_raw(run: CloudRun, glance: Glance, raw: Image, disk: Path, tmp_path: Path) -> None:
    apply(run, raw).raise_for_failures()
    (made,) = glance.images.values()
    assert (made["disk_format"], made["size"], made[CONVERTED]) == ("raw", len(RAW), "qcow2")
    assert made[SEAL] == sha256(NEW)
    assert not plan(run, raw)
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("algorithm", ["sha512", "md5"])
def test_the_seal_is_of_what_came(run: CloudRun, glance: Glance, raw: Image, algorithm: str) -> None:
    declared = f"{algorithm}:{hashlib.new(algorithm, NEW).hexdigest()}"
    apply(run, replace(raw, checksum=declared)).raise_for_failures()
    assert not plan(run, replace(raw, checksum=declared))
    of_raw = f"{algorithm}:{hashlib.new(algorithm, RAW).hexdigest()}"
    assert plan(run, replace(raw, checksum=of_raw))


def test_what_is_raw_is_sent_as_it_is(run: CloudRun, glance: Glance, raw: Image, disk: Path, tmp_path: Path) -> None:
    disk.write_bytes(RAW * 2)
    apply(run, replace(raw, checksum=None)).raise_for_failures()
    assert glance.images["i1"]["size"] == 2 * len(RAW)
    assert not (tmp_path / "bin" / "called").exists()


def test_what_is_wrong_is_not_converted(run: CloudRun, glance: Glance, raw: Image, disk: Path, tmp_path: Path) -> None:
    (result,) = apply(run, replace(raw, checksum=f"sha256:{sha256(OLD)}")).failed
    assert isinstance(result.error, DownloadError)
    disk.write_bytes(b"KDMV")
    (result,) = apply(run, replace(raw, checksum=None)).failed
    assert result.error.code == "error.other"
    assert contains(str(result.error), "image/rhcos", "qcow2")
    assert not glance.asked
    assert not (tmp_path / "bin" / "called").exists()
    assert not list((tmp_path / "temporary").iterdir())


def test_what_it_takes_is_looked_for_first(
    run: CloudRun, glance: Glance, raw: Image, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refusals = [str(each) for each in plan(run, replace(raw, size=2**60)).refusals]
    wording(refusals[0])
    assert "MiB free, but" in refusals[1]
    assert len(refusals) == 2


def test_one_that_is_qcow2_already_is_a_replacement(run: CloudRun, glance: Glance, raw: Image) -> None:
    glance.ours("rhcos", NEW)
    with pytest.raises(PlanRefused, match="disk_format 'qcow2' -> 'raw'"):
        apply(run, raw)
