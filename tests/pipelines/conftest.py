"""The devcloud, and the folder of a repository that has a pipeline."""

from __future__ import annotations

from tests.devcloud.pytest_devcloud import devcloud, pytest_runtest_teardown
from tests.unit.tracing.receiver import receiver

__all__ = ["devcloud", "pytest_runtest_teardown", "receiver"]
