"""A Glance of our own, and an image for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

from openstack_prep.resources.image.image import Image
from tests.unit.resources.glance import NEW, Glance, sha256


@pytest.fixture
def glance(services: requests_mock.Mocker) -> Glance:
    return Glance(services)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(NEW)
    return path


@pytest.fixture
def image(disk: Path) -> Image:
    return Image(name="rhcos", source=str(disk), checksum=f"sha256:{sha256(NEW)}")
