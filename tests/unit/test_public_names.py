"""The names of the package are those that type checkers see, in whatever order they are first used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import openstack_prep
from openstack_prep import kinds
from openstack_prep.core.resource import Resource


@pytest.mark.parametrize("package", [openstack_prep, kinds], ids=lambda each: str(each.__name__))
def test_names_are_what_type_checkers_see(package: object) -> None:
    path = Path(vars(package)["__file__"])
    imports = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.ImportFrom)]
    seen = {alias.name: str(each.module) for each in imports for alias in each.names}
    for name in vars(package)["__all__"]:
        if name not in ("IN_FILES", "KINDS", "SCANNED"):
            assert getattr(package, name) is getattr(importlib.import_module(seen[name]), name), name
    assert set(vars(package)["__all__"]) <= set(dir(package))


def test_submodules_need_no_import_of_their_own() -> None:
    script = "import openstack_prep; openstack_prep.hooks.post_ipi; openstack_prep.base.errors.PrepError"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("package", [openstack_prep, kinds], ids=lambda each: str(each.__name__))
def test_an_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        _ = package.nonesuch  # type: ignore[attr-defined]


def test_a_scan_finds_all_kinds_but_files() -> None:
    without_scan = {kind for kind in kinds.KINDS.values() if kind.scan.__func__ is Resource.scan.__func__}  # type: ignore[attr-defined]
    assert without_scan == set(kinds.KINDS.values()) - set(kinds.SCANNED.values())


def test_kinds_stay_where_they_were() -> None:
    import openstack_prep.resources

    assert openstack_prep.resources.Network is kinds.Network
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        _ = openstack_prep.resources.nonesuch
