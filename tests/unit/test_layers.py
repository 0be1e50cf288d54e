"""Imports point down only, and start-up loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import openstack_prep

LAYERS = [
    ["cli"],
    ["commands"],
    ["hooks", "mesh", "audit"],
    ["progress", "api", "export", "plan_file", "verify"],
    ["executor", "exclusive", "scan", "spec", "spec_files", "openshift", "check", "tools"],
    ["planner", "resources", "names"],
    ["consent", "twin", "lease"],
    ["site", "clouds_yaml", "install_config", "rke"],
    ["cloud", "yaml_places", "yaml_text"],
    ["service", "plan", "cloud_entries"],
    ["text", "secret", "installer", "ranges"],
    ["model", "fields", "private_file", "content"],
    ["resource"],
    ["errors", "observed"],
    ["interrupts", "key", "raw", "version", "wave"],
]
HEIGHT = {name: -depth for depth, layer in enumerate(LAYERS) for name in layer}

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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    for name in imports_of(path):
        package, *rest = name.split(".")
        if package == "openstack_prep" and rest:
            assert rest[0] in HEIGHT, f"give {rest[0]} its place in LAYERS"
            within = room(path) == rest[0]
            assert within or HEIGHT[rest[0]] < HEIGHT[room(path)], f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_way_to_the_cloud_alone_knows_the_sdk(path: Path) -> None:
    libraries = {name.split(".")[0] for name in imports_of(path)}
    assert room(path) in ("cloud", "service") or libraries.isdisjoint({"openstack", "keystoneauth1"})


def test_the_layers_name_only_what_there_is() -> None:
    assert set(HEIGHT) == {room(path) for path in MODULES}


def loaded_at_the_import(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the full names of all that a module imports when it is imported itself."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.If | ast.Try | ast.With) and not for_checkers_only(node):
            yield from loaded_at_the_import(node.body)


def test_any_module_can_be_imported_first() -> None:
    """Since a kind is imported when it is used, nothing tells which of the modules of a cycle comes first."""
    modules = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in MODULES
    }
    graph = {}
    for module, path in modules.items():
        names = loaded_at_the_import(ast.parse(path.read_text()).body)
        graph[module] = {name if name in modules else name.rpartition(".")[0] for name in names} & modules.keys() - {
            module
        }
    TopologicalSorter(graph).prepare()  # raises CycleError


def loaded_by(script: str, names: Sequence[str]) -> list[str]:
    """Return which modules of these names, or in packages of these names, a script loads in a process of its own."""
    report = """
import atexit, sys
atexit.register(lambda: print(sorted(sys.modules)))
"""
    said = subprocess.run([sys.executable, "-c", report + script], capture_output=True, text=True, check=True).stdout
    modules = ast.literal_eval(said.splitlines()[-1])
    return [each for each in modules if any(each == name or each.startswith(f"{name}.") for name in names)]


@pytest.mark.parametrize(
    "start",
    [
        "import openstack_prep",
        "from openstack_prep.cli import main; main(['--version'])",
        "from openstack_prep.cli import main; main(['--help'])",
    ],
)
def test_nothing_heavy_is_loaded_at_the_start(start: str) -> None:
    assert loaded_by(start, [*HEAVY, "openstack_prep.api", "openstack_prep.resources"]) == []


def test_a_spec_loads_only_what_it_declares() -> None:
    spec = ROOT.parent / "install_configs" / "openshift-lab.yaml"
    script = f"import openstack_prep as prep; prep.load_spec({str(spec)!r}); prep.plan"
    kinds = [f"openstack_prep.resources.{name}" for name in ("install_config", "rke_cluster", "stack", "flavor")]
    others = ["check", "commands", "export", "hooks", "install_config", "mesh", "plan_file", "rke", "tools", "verify"]
    loaded = loaded_by(script, [*kinds, *(f"openstack_prep.{name}" for name in others), "openstack"])
    assert loaded == ["openstack_prep.resources.flavor"]
