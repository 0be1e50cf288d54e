"""The servers' virtual environment: made from constraints.txt, and made anew when that changes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.devcloud.layout import DevcloudError
from tests.devcloud.progress import say

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.in"
CONSTRAINTS = HERE / "constraints.txt"
MORE = {name: HERE / f"requirements-{name}.in" for name in ("designate", "octavia")}
"""What is added for clouds with these services; what else they need is there already, and so constrained."""

# An entry point is the one way in which ML2 finds its drivers.
ENTRY_POINTS = """\
[neutron.ml2.mechanism_drivers]
devcloud = tests.devcloud.server.mechanism_driver:MechanismDriver
"""
METADATA = "Metadata-Version: 2.1\nName: devcloud\nVersion: 1.0\n"


def stamp() -> str:
    """What an environment must have been made from to be good; any Python may have made it."""
    sources = (REQUIREMENTS.read_bytes(), CONSTRAINTS.read_bytes(), ENTRY_POINTS.encode())
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:16]


def is_current(venv: Path) -> bool:
    """Whether the environment is whole and of today's constraints: the stamp is written last.

    Its interpreter may be gone though, when the Python that it was made from is.
    """
    return _reads(venv / "devcloud-stamp", stamp()) and os.access(venv / "bin/python", os.X_OK)


def has(venv: Path, service: str) -> bool:
    """Whether one of those services was added to the environment."""
    return _reads(venv / f"devcloud-{service}", MORE[service].read_text())


def add(venv: Path, service: str) -> None:
    """Add a service to the environment, which clouds may use meanwhile: it changes no other package."""
    pip = ("-m", "pip", "install", "--disable-pip-version-check", "-r", MORE[service], "-c", CONSTRAINTS)
    _run(venv.with_name("install.log"), [venv / "bin/python", *pip], service)
    (venv / f"devcloud-{service}").write_text(MORE[service].read_text())


def _reads(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text
    except OSError:
        return False


def install(venv: Path) -> None:
    """Make the environment, replacing what an interrupted or older installation left."""
    log = venv.with_name("install.log")
    say(f"installing the servers into {venv} (log: {log}); this takes a minute or two")
    shutil.rmtree(venv, ignore_errors=True)
    venv.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    python = venv / "bin/python"
    _run(log, [sys.executable, "-m", "venv", venv], "a virtual environment")
    # pip compiles on one core; compileall takes all of them
    pip = ("-m", "pip", "install", "--disable-pip-version-check", "--no-compile")
    _run(log, [python, *pip, "-r", REQUIREMENTS, "-c", CONSTRAINTS], "packages")
    compileall = ("-m", "compileall", "-qq", "-j0", "-x", r"/tests?/")
    _run(log, [python, *compileall, _site_packages(venv)], "bytecode", may_fail=True)
    information = _site_packages(venv) / "devcloud-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(METADATA)
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    (venv / "devcloud-stamp").write_text(stamp())


def _site_packages(venv: Path) -> Path:
    (found,) = venv.glob("lib/python*/site-packages")
    return found


def _run(log: Path, command: list[str | Path], what: str, *, may_fail: bool = False) -> None:
    """Run a step of the installation, saying every 20 seconds that it still runs."""
    started = time.monotonic()
    # what surrounds us (tox, an activated environment) must not choose what is installed
    surroundings = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_PREFIX", "PIP_TARGET", "PIP_USER"}
    with open(log, "a") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in surroundings},
        )
    try:
        while True:
            try:
                code = process.wait(timeout=20)
                break
            except subprocess.TimeoutExpired:
                say(f"  ... {what}: {time.monotonic() - started:.0f} s so far")
    except BaseException:
        process.kill()
        process.wait()
        raise
    if code and not may_fail:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise DevcloudError(f"installing {what} failed ({code}); {log} ends with\n{end}")
    say(f"  {what}: {time.monotonic() - started:.0f} s")
