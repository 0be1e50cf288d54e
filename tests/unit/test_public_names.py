"""The names of the package are those that type checkers see, in whatever order they are first used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import openstack_prep
from openstack_prep import resources
from openstack_prep.resource import Resource


@pytest.mark.parametrize("package", [openstack_prep, resources], ids=lambda each: str(each.__name__))
def test_names_are_what_type_checkers_see(package: object) -> None:
    path = Path(vars(package)["__file__"])
    imports = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.ImportFrom)]
    seen = {alias.name: str(each.module) for each in imports for alias in each.names}
    for name in vars(package)["__all__"]:
        if name not in ("KINDS", "SCANNED"):
            assert getattr(package, name) is getattr(importlib.import_module(seen[name]), name), name
    assert set(vars(package)["__all__"]) <= set(dir(package))


@pytest.mark.parametrize(
    "script",
    [
        "from openstack_prep import plan",
        "import openstack_prep.plan; from openstack_prep import plan",
        "from openstack_prep.plan import Plan; from openstack_prep import plan",
        "from openstack_prep import apply; from openstack_prep import plan",
        "import openstack_prep.api; from openstack_prep import plan",
        "from openstack_prep.hooks import pre_ipi; from openstack_prep import plan",
        "from openstack_prep import *",
    ],
)
def test_plan_is_the_verb_and_not_the_module(script: str) -> None:
    check = "import openstack_prep, openstack_prep.api; assert plan is openstack_prep.plan is openstack_prep.api.plan"
    subprocess.run([sys.executable, "-c", f"{script}; {check}"], check=True)


def test_submodules_need_no_import_of_their_own() -> None:
    script = "import openstack_prep; openstack_prep.hooks.post_ipi; openstack_prep.errors.PrepError"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("package", [openstack_prep, resources], ids=lambda each: str(each.__name__))
def test_an_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        _ = package.nonesuch  # type: ignore[attr-defined]


def test_a_scan_finds_all_kinds_but_files() -> None:
    without_scan = {kind for kind in resources.KINDS.values() if kind.scan.__func__ is Resource.scan.__func__}  # type: ignore[attr-defined]
    assert without_scan == set(resources.KINDS.values()) - set(resources.SCANNED.values())
