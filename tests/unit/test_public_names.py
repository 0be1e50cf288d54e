"""The names of the package are those that type checkers see, in whatever order they are first used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import openstack_prep
from openstack_prep import extensions
from openstack_prep.core.resource import Scannable, kind_supports
from openstack_prep.kubernetes.networks import ClusterNetworks
from tests.kinds import KINDS
from tests.unit.texts import Wording


def test_names_are_what_type_checkers_see() -> None:
    nodes = ast.walk(ast.parse(Path(str(openstack_prep.__file__)).read_text()))
    imports = [each for each in nodes if isinstance(each, ast.ImportFrom)]
    seen = {alias.name: str(each.module) for each in imports for alias in each.names}
    for name in openstack_prep.__all__:
        assert getattr(openstack_prep, name) is getattr(importlib.import_module(seen[name]), name), name
    assert set(openstack_prep.__all__) <= set(dir(openstack_prep))


def test_each_public_class_has_a_name_of_its_own() -> None:
    root = Path(openstack_prep.__path__[0])
    places: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for line in ast.parse(path.read_text()).body:
            if isinstance(line, ast.ClassDef) and not line.name.startswith("_"):
                places.setdefault(line.name, []).append(f"{path.relative_to(root)}:{line.lineno}")
    assert "Network" in places
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_submodules_need_no_import_of_their_own() -> None:
    script = "import openstack_prep; openstack_prep.hooks.post_ipi; openstack_prep.base.errors.PrepError"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_name_is_an_attribute_error(wording: Wording) -> None:
    with pytest.raises(AttributeError) as caught:
        _ = openstack_prep.nonesuch
    wording(caught.value)


def test_a_scan_finds_all_kinds_but_files() -> None:
    in_files = {extensions.load(each.kind) for each in extensions.sections() if each.in_files}
    scanned = {extensions.load(each.kind) for each in extensions.scans()}
    assert set(KINDS.values()) - scanned == in_files
    assert [kind for kind in scanned if not kind_supports(kind, Scannable)] == []


def test_kinds_stay_where_they_were(wording: Wording) -> None:
    import openstack_prep.resources

    assert openstack_prep.resources.Network is openstack_prep.Network
    assert openstack_prep.resources.Domain.kind == "domain"
    assert openstack_prep.resources.ClusterNetworks is ClusterNetworks  # which an extension brings
    with pytest.raises(AttributeError) as caught:
        _ = openstack_prep.resources.nonesuch
    wording(caught.value)
