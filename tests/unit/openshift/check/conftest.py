from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

from tests.unit.openshift.check.project import Project


@pytest.fixture
def project(services: requests_mock.Mocker, tmp_path: Path) -> Project:
    return Project(services, tmp_path)
