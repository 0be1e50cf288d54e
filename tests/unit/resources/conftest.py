"""A Glance of our own, an image for it, and a Neutron with security groups."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

from openstack_prep.resources.image import image_upload
from openstack_prep.resources.image.image import Image
from tests.unit.resources.glance import NEW, Glance, sha256
from tests.unit.resources.security_groups import NEUTRON, Neutron


@pytest.fixture
def glance(services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> Glance:
    """Ids are i1, i2, and so on, also those that the client chooses."""
    made = Glance(services)
    monkeypatch.setattr(image_upload, "new_id", made.new_id)
    return made


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(NEW)
    return path


@pytest.fixture
def image(disk: Path) -> Image:
    return Image(name="rhcos", source=str(disk), checksum=f"sha256:{sha256(NEW)}")


@pytest.fixture
def neutron(services: requests_mock.Mocker) -> Neutron:
    versions = {
        "versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": f"{NEUTRON}/v2.0"}]}]
    }
    services.get(NEUTRON, json=versions)
    return Neutron(services)
