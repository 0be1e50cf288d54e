"""The fixtures of the functional tests, for rolls that take minutes."""

from __future__ import annotations

from tests.devcloud.pytest_devcloud import devcloud, pytest_runtest_teardown
from tests.functional.conftest import images, prep, project

__all__ = ["devcloud", "images", "prep", "project", "pytest_runtest_teardown"]
