"""The fixtures of the functional tests, for what takes minutes: workers that get killed, and the light server."""

from __future__ import annotations

from tests.devcloud.pytest_devcloud import devcloud, pytest_runtest_teardown, tenant
from tests.functional.conftest import prep

__all__ = ["devcloud", "prep", "pytest_runtest_teardown", "tenant"]
