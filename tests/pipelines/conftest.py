"""The devcloud, and the folder of a repository that has a pipeline."""

from __future__ import annotations

from tests.devcloud.pytest_devcloud import devcloud, pytest_runtest_teardown

__all__ = ["devcloud", "pytest_runtest_teardown"]
