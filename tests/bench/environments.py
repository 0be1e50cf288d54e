"""Virtual environments of the contenders that are not ours: made from pins, and anew when those change."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.devcloud.layout import default_root
from tests.devcloud.progress import timed

HERE = Path(__file__).parent


def requirements(name: str) -> Path:
    return HERE / f"requirements-{name}.txt"


def version(name: str, package: str) -> str:
    """What a contender's pins say of a package."""
    found = re.search(rf"^{re.escape(package)}==(\S+)$", requirements(name).read_text(), re.MULTILINE)
    assert found is not None, f"{package} is not in {requirements(name)}"
    return found[1]


def ensure(name: str) -> Path:
    """Return the directory of a contender's programs."""
    home = default_root() / f"bench-{name}"
    made_of = hashlib.sha256(requirements(name).read_bytes()).hexdigest() + f" {sys.version}"
    stamp = home / "stamp"
    if not (stamp.exists() and stamp.read_text() == made_of):
        with timed(f"installed {requirements(name).name}"):
            shutil.rmtree(home, ignore_errors=True)
            make(home, "-r", str(requirements(name)))
        stamp.write_text(made_of)
    return home / "bin"


def make(home: Path, *words: str) -> None:
    """Make an environment, and install into it what pip is asked for, if anything."""
    venv.create(home, with_pip=True)
    if words:
        pip = [f"{home}/bin/python", "-m", "pip", "--disable-pip-version-check", "install"]
        with open(home / "install.log", "w") as log:
            subprocess.run([*pip, *words], stdout=log, stderr=log, check=True)
