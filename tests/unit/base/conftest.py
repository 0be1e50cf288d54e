"""A file system as of Windows: each file gets the mode of the mount, whatever a program asks for."""

from __future__ import annotations

import os
from typing import Any

import pytest


@pytest.fixture
def forced_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    create = os.open

    def forced(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        descriptor = create(path, flags, mode, **options)
        if flags & os.O_CREAT:
            os.fchmod(descriptor, 0o644)
        return descriptor

    monkeypatch.setattr(os, "open", forced)
