"""CONTRIBUTING.md: the environments of tox, and "A new kind in six steps": specs know a kind that a copy gets."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import openstack_prep

PACKAGE = Path(openstack_prep.__path__[0])
ROOT = Path(__file__).parents[2]
KIND = '''"""Boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from openstack_prep.base.fields import Count, Name
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed
from openstack_prep.resources.identity.in_project import InProject


@dataclass(frozen=True, kw_only=True)
class Box(InProject):
    """A box."""

    kind: ClassVar[str] = "box"

    name: Name
    """Name of the box."""
    size: Count
    """Size of the box in litres."""

    @classmethod
    def find(cls, site: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        return {}
'''
USE = """
import openstack_prep as prep
from openstack_prep.core import planner
from openstack_prep.spec.schema import schema

spec = prep.load_spec("spec.yaml")
assert spec.resources == (prep.Project(name="lab"), prep.Box(name="a", size=3, project="lab")), spec.resources
(_, step) = planner.plan_apply("lab", spec.resources, {}).steps
assert (str(step), step.action) == ("box/a", prep.Action.CREATE)
assert schema()["$defs"]["Box"]["properties"]["size"]["description"] == "Size of the box in litres."
assert prep.Box.__module__ == "openstack_prep.resources.storage.box"
"""


def insert(path: Path, before: str, text: str) -> None:
    content = path.read_text()
    assert content.count(before) == 1, f"{path.name} has not one {before!r}"
    path.write_text(content.replace(before, text + before))


def test_a_new_kind_in_six_steps(tmp_path: Path) -> None:
    copy = tmp_path / "openstack_prep"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "resources" / "storage" / "box.py").write_text(KIND)
    section = 'Section("boxes", f"{_HERE}.storage.box:Box", "Boxes."),\n        '
    insert(copy / "resources" / "extension.py", 'Section("role_assignments"', section)
    scan = 'Scan(f"{_HERE}.storage.box:Box"),\n        '
    insert(copy / "resources" / "extension.py", 'Scan(f"{_HERE}.identity.user:User")', scan)
    insert(copy / "__init__.py", '    "CloudsEntry",\n', '    "Box",\n')
    insert(copy / "__init__.py", '    "CloudsEntry": ', '    "Box": "resources.storage.box",\n')
    (tmp_path / "spec.yaml").write_text("name: lab\nproject: {name: lab}\nboxes: [{name: a, size: 3}]\n")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}"
    subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path, check=True)


def test_few_environments_of_tox_are_to_be_known_and_labels_have_the_others() -> None:
    tox = RawConfigParser()
    tox.read(ROOT / "tox.ini")
    environments = {section.partition(":")[2] for section in tox.sections() if section.startswith("testenv:")}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {name for names in re.findall(r"tox -e ([a-z0-9,-]+)", text) for name in names.split(",")}
    labels = [line.partition(" = ") for line in tox["tox"]["labels"].strip().splitlines() if " = " in line]
    labelled = [name for _, _, names in labels for name in names.split(", ")]
    assert len(named) <= 8
    assert sorted([*named, *labelled]) == sorted(environments)
    assert "tox -m more" in text
