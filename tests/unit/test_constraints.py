"""Every package that setup.cfg and the tests ask for has one version that CI installs."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def names(lines: list[str]) -> set[str]:
    found = (re.match(r"\w[\w.-]*", line) for line in lines)
    return {re.sub(r"[-_.]+", "-", each[0]).lower() for each in found if each}


def test_all_requirements_are_pinned() -> None:
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    wanted = setup["options"]["install_requires"].splitlines()
    for extra in setup["options.extras_require"].values():
        wanted += extra.splitlines()
    for file in ("tests/requirements.txt", "tests/functional/requirements.txt", "tests/light/requirements.txt"):
        wanted += (REPOSITORY / file).read_text().splitlines()
    pinned = (REPOSITORY / ".ci/constraints.txt").read_text().splitlines()
    assert names(wanted) - names([line for line in pinned if "==" in line]) == set()
