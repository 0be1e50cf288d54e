"""The devcloud and the stand-in of tests/light side by side, with what differs from one run to the next left out."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection

from tests.devcloud import ports
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import Layout
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import connect
from tests.faults import inventory
from tests.functional.conftest import Prep
from tests.light.running import SPEC, Light, running

FIRST_BASE = 9000
REGION = "regionOne"
CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "URL"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"fa:16:3e(:[0-9a-f]{2}){3}"), "MAC"),
    (re.compile(r"\b192\.168\.122\.(1[0-5]\d|2\d\d)\b"), "ADDRESS"),
    (re.compile(r"\(?\b\d+\.\d s\)?"), "SECONDS"),
    (re.compile(r"light-regionOne|devcloud-admin"), "ENTRY"),
)
"""What differs from one run to the next, and what is written instead."""


def same(text: str) -> str:
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


@dataclass
class Side:
    """One of the two clouds, with a folder for the spec."""

    layout: Layout
    prep: Prep
    admin: Connection

    def text(self, *words: str, code: int = 0) -> str:
        """Return what the command prints, its lines sorted: steps end in any order."""
        done = self.prep.run(*words, self.prep.spec.name, code=code)
        printed = f"{done.stdout}\n{done.stderr}".replace(str(self.prep.folder), "FOLDER")
        return "\n".join(sorted(filter(None, same(printed).splitlines())))

    def report(self, *words: str, code: int = 0) -> Any:
        """Return the report of an apply, by resource."""
        out = self.prep.run("apply", "--yes", "--format", "json", *words, self.prep.spec.name, code=code).stdout
        steps = json.loads(same(out.replace(str(self.prep.folder), "FOLDER")))["steps"]
        return {step.pop("resource"): {name: step[name] for name in step.keys() - {"seconds", "id"}} for step in steps}

    @property
    def project(self) -> Any:
        return self.admin.identity.find_project("team", ignore_missing=False)

    def inventory(self) -> Counter[str]:
        """Return what there is, by kind and name."""
        found = _Inventory(self.layout).inventory().values()
        return Counter(same(str(each)) for each in found if each.where not in ("service", "admin@service"))


class _Inventory(inventory.Cloud):
    """The devcloud's stacks are read from Heat's database, which the stand-in does not have."""

    def _stacks(self, projects: Mapping[str, str]) -> dict[str, inventory.Thing]:
        return {}


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Light]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    folder, first = tmp_path_factory.mktemp("light"), FIRST_BASE + worker * ports.STEP
    with (
        ports.choose(None, first, "light server") as layout,
        running(folder, base=layout.base, regions=[REGION]) as light,
    ):
        yield light


@contextlib.contextmanager
def side_by_side(devcloud: Devcloud, light: Light, place: Path) -> Iterator[tuple[Side, Side]]:
    """Return the real cloud and the stand-in; at the end, what the spec has made is destroyed."""
    pairs = (
        ("real", devcloud.layout, devcloud.clouds_file, ADMIN),
        ("light", light.layouts[0], light.clouds_file, light.entries[0]),
    )
    made = []
    for name, layout, clouds_file, entry in pairs:
        folder = place / name
        folder.mkdir()
        (folder / "disk.qcow2").write_bytes(qcow2(1))
        environment = {"OS_CLIENT_CONFIG_FILE": str(clouds_file), "OS_CLOUD": entry, "PREP_PASSWORD": "of-the-test"}
        prep = Prep(folder, environment)
        shutil.copy(SPEC, prep.spec)
        made.append(Side(layout, prep, connect(clouds_file, entry)))
    yield made[0], made[1]
    for side in made:
        shutil.copy(SPEC, side.prep.spec)
        side.prep.destroy()


@pytest.fixture
def sides(devcloud: Devcloud, light: Light, tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    with side_by_side(devcloud, light, tmp_path) as both:
        yield both


@pytest.fixture(scope="module")
def applied(devcloud: Devcloud, light: Light, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Both with the spec applied, for tests that change nothing or mend it."""
    with side_by_side(devcloud, light, tmp_path_factory.mktemp("applied")) as both:
        for side in both:
            side.report()
        yield both
