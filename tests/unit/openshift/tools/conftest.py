from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.openshift.tools.gpg import Signer


@pytest.fixture(scope="session")
def gpg_home() -> Iterator[Path]:
    """Return a folder for keys: a short path, because the agent's socket is in it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="gpg-") as name:
        yield Path(name)
        subprocess.run(["gpgconf", "--homedir", name, "--kill", "all"], timeout=60, check=True)


@pytest.fixture(scope="session")
def signer(gpg_home: Path) -> Signer:
    return Signer(gpg_home, "Release Team <release@example.com>").made()


@pytest.fixture(scope="session")
def stranger(gpg_home: Path) -> Signer:
    return Signer(gpg_home, "Somebody Else <else@example.com>").made()
