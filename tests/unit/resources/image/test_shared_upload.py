"""Uploads of a run that shares the contents of its images with others."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.base.errors import DownloadError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.download.spool import Contents
from openstack_prep.resources.image.image import Image
from tests.unit.resources.glance import NEW, OLD, SEAL, Glance, apply, settle, sha256
from tests.unit.stand_in_qemu_img import stand_in

URL = "http://web.test/a.qcow2.gz"
SUM = f"sha256:{sha256(NEW)}"


@pytest.fixture(autouse=True)
def contents(run: CloudRun) -> Iterator[Contents]:
    run.admin.contents = Contents()
    yield run.admin.contents
    run.admin.contents.close()


def test_one_download_even_for_the_format(run: CloudRun, glance: Glance, services: requests_mock.Mocker) -> None:
    served = services.get(URL, content=gzip.compress(NEW))
    for name in ("rhcos", "scos"):
        settle(run, glance, Image(name=name, source=URL, checksum=SUM, compression="gz"))
        (made,) = glance.images.values()
        assert (made["disk_format"], made["size"], made[SEAL]) == ("qcow2", len(NEW), sha256(NEW))
        glance.images.clear()
    assert served.call_count == 1


def test_what_is_wrong_is_read_again(run: CloudRun, glance: Glance, image: Image, disk: Path) -> None:
    disk.write_bytes(OLD)
    (result,) = apply(run, image).failed
    assert isinstance(result.error, DownloadError)
    assert not glance.images
    disk.write_bytes(NEW)
    settle(run, glance, image)


def test_the_cache_of_the_installer_is_filled(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    served = services.get(URL, content=gzip.compress(NEW))
    image = Image(name="rhcos", source=URL, cached_as="https://rhcos.test/b.qcow2.gz", checksum=SUM)
    for _ in range(2):
        settle(run, glance, image)
        glance.images.clear()
        assert (tmp_path / "openshift-installer" / "image_cache" / "b.qcow2").read_bytes() == NEW
    assert served.call_count == 1


def test_what_is_converted_is_read_once(
    run: CloudRun, glance: Glance, services: requests_mock.Mocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', b'a raw disk')}:/usr/bin:/bin")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    served = services.get(URL, content=gzip.compress(NEW))
    image = Image(name="rhcos", source=URL, checksum=SUM, output_format="raw")
    for each in (image, replace(image, name="scos")):
        settle(run, glance, each)
        (made,) = glance.images.values()
        assert (made["disk_format"], made["size"], made[SEAL]) == ("raw", len(b"a raw disk"), sha256(NEW))
        glance.images.clear()
    assert served.call_count == 1
