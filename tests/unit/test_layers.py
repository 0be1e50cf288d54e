"""Imports point down only, and start-up loads nothing heavy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import openstack_prep

ROOT = Path(openstack_prep.__path__[0])
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
HEAVY = ["openstack", "keystoneauth1", "requests", "pydantic", "rich", "yaml", "tenacity"]


def room(path: Path) -> str:
    """Return what the layers call a module: its name, or that of its folder."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def for_checkers_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the full names of all that a piece of code imports, within functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "write the whole name"
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif not for_checkers_only(child):
            yield from imported(child)


def imports_of(path: Path) -> list[str]:
    return list(imported(ast.parse(path.read_text())))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_way_to_the_cloud_alone_knows_the_sdk() -> None:
    sdk = {"openstack", "keystoneauth1"}
    allowed = {f"cloud/{name}.py" for name in ("connection", "login", "service", "translation")}
    users = {name_of(path) for path in MODULES if {name.split(".")[0] for name in imports_of(path)} & sdk}
    assert users <= allowed


FOUNDATION = ("base", "core", "cloud", "spec", "resources", "verbs", "cli")
PRODUCT = re.compile(r"openshift|kube|(?<![a-z])rke|metallb|cilium|ocp|rhcos", re.IGNORECASE)
PUBLIC = {"rhcos", "Rhcos", "FROM_RHCOS", "openstack_prep.download.rhcos", "kubeconfig"}
"""Fields of images and of env_file that are named after a product, and what reads the first: public names stay."""


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield what a module defines and uses, by name."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "module"):
            if isinstance(name := getattr(node, field, None), str):
                yield name


def test_the_foundation_names_no_product() -> None:
    """setup.cfg has what it must not import; texts may name products, as examples and sources."""
    modules = [path for path in MODULES if room(path) in FOUNDATION]
    found = {
        name_of(path): {each for each in names_in(ast.parse(path.read_text())) if PRODUCT.search(each)}
        for path in modules
    }
    assert {path: names - PUBLIC for path, names in found.items() if names - PUBLIC} == {}


def loaded_by(script: str, names: Sequence[str]) -> list[str]:
    """Return which modules of these names, or in packages of these names, a script loads in a process of its own.

    The descriptions of extensions are always loaded.
    """
    report = """
import atexit, sys
atexit.register(lambda: print(sorted(sys.modules)))
"""
    said = subprocess.run([sys.executable, "-c", report + script], capture_output=True, text=True, check=True).stdout
    modules = ast.literal_eval(said.splitlines()[-1])
    found = [each for each in modules if any(each == name or each.startswith(f"{name}.") for name in names)]
    described = {each for each in found if each.endswith(".extension")}
    described |= {each.removesuffix(".extension") for each in described}
    return [each for each in found if each not in described]


@pytest.mark.parametrize(
    "start",
    [
        "import openstack_prep",
        "from openstack_prep.cli.main import main; main(['--version'])",
        "from openstack_prep.cli.main import main; main(['--help'])",
    ],
)
def test_nothing_heavy_is_loaded_at_the_start(start: str) -> None:
    ours = [f"openstack_prep.{room}" for room in ("base", "cloud", "resources", "spec", "verbs")]
    ours += [f"openstack_prep.cli.{room}" for room in ("project", "running")]
    assert loaded_by(start, [*HEAVY, "dataclasses", "logging", *ours]) == []


ALONE = """
import sys

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "openstack_prep", "shtab"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusal())

from openstack_prep.cli.main import build_parser
from openstack_prep.cli.reference.completion import script

parser = build_parser()
print(parser.format_help(), script(parser, "bash"), script(parser, "zsh"))
"""
"""Makes the parser of all commands, and walks through it, where no other package is installed."""


def test_the_parser_needs_no_package_but_this_one() -> None:
    """setup.py makes the man page and the completion where pip has installed only what builds the wheel."""
    process = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert process.stderr == ""
    assert "address-pairs" in process.stdout


def test_a_spec_loads_only_what_it_declares() -> None:
    spec = ROOT.parent / "install_configs" / "openshift-lab.yaml"
    script = f"import openstack_prep as prep; prep.load_spec({str(spec)!r}); prep.plan"
    rooms = ["cli", "hooks", "openshift", "kubernetes", "verbs.export", "verbs.plan_file"]
    rooms += ["resources.orchestration.stack", "resources.addresses.address_pairs", "resources.addresses.address_pool"]
    rooms += ["resources.dns", "resources.heat", "resources.network.declared_port", "resources.credentials"]
    loaded = loaded_by(script, [*(f"openstack_prep.{name}" for name in rooms), "openstack"])
    assert loaded == []
    assert loaded_by(script, ["openstack_prep.resources.compute.flavor"])


def test_kinds_and_verbs_load_neither_the_sdk_nor_requests() -> None:
    """Their modules take Cloud and Service for annotations only; ``validate`` and ``load_spec`` need no cloud."""
    script = """
from openstack_prep import extensions
from openstack_prep.verbs import api
for section in extensions.sections():
    extensions.load(section.kind)
"""
    ours = [f"openstack_prep.cloud.{name}" for name in ("connection", "login", "service", "translation")]
    assert loaded_by(script, ["openstack", "keystoneauth1", "requests", *ours]) == []


def hidden_names(owner: ast.ClassDef) -> set[str]:
    """Return the fields of a class that hide a name of an annotation in it."""
    declared = [line for line in owner.body if isinstance(line, ast.AnnAssign)]
    fields = {line.target.id for line in declared if isinstance(line.target, ast.Name)}
    return fields & {node.id for line in declared for node in ast.walk(line.annotation) if isinstance(node, ast.Name)}


def test_no_field_hides_a_name_of_its_annotation() -> None:
    """pydantic would read a function of the module as the default of the field with its name."""
    hidden = {
        f"{name_of(path)}: {node.name}": names
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and (names := hidden_names(node))
    }
    assert hidden == {}


ARROWS = re.compile(r"^```mermaid\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_drawing_of_imports_has_all_of_them() -> None:
    """An import leads along the arrows of docs/design.md, of which none leads back."""
    (drawn,) = ARROWS.findall((ROOT.parent / "docs/design.md").read_text())
    arrows = [line.split(" --> ") for line in drawn.splitlines()[1:]]
    edges = {(one.strip(), other) for line in arrows for one, other in pairwise(line)}
    graph = TopologicalSorter({each: {to for start, to in edges if start == each} for each, _ in edges})
    below: dict[str, set[str]] = {}
    for layer in graph.static_order():  # raises CycleError
        direct = {to for start, to in edges if start == layer}
        below[layer] = direct.union(*(below[each] for each in direct))
    for path in MODULES:
        layers = {name.split(".")[1] for name in imports_of(path) if name.startswith("openstack_prep.")} & below.keys()
        assert layers - {room(path)} <= below.get(room(path), set()), path


WAY = re.compile(r"`([\w/]+\.py):(\w+)`")


def test_the_ways_of_the_design_exist() -> None:
    for file, function in WAY.findall((ROOT.parent / "docs/design.md").read_text()):
        texts = [path.read_text() for path in MODULES if f"/{path.relative_to(ROOT)}".endswith(f"/{file}")]
        assert any(f"def {function}(" in text for text in texts), file
