"""Measures of the package, to report and not to enforce: ``python -m tests.measures``.

They say how much there is to know before a change: modules and lines, how much of it a small plan loads, imports that
stand inside functions, class names with several meanings, and mutants that tests notice. The plan is one of a project
and a network, against the stand-in of tests/light.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import openstack_prep
from tests.devcloud.layout import Layout
from tests.devcloud.ports import claimed
from tests.light.running import running

BASE = 9000
ROOT = Path(openstack_prep.__path__[0])
SPEC = "name: lab\nproject: {name: lab}\nnetworks: [{name: net}]\n"
PLAN = """
import sys
from openstack_prep.cli.main import main
code = main(["plan", "spec.yaml"])
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "openstack_prep"))
sys.exit(code)
"""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def modules() -> dict[Path, str]:
    """Return the modules and their texts."""
    return {path.relative_to(ROOT): path.read_text() for path in sorted(ROOT.rglob("*.py"))}


def inner_imports(node: ast.AST, *, within: bool = False) -> Iterator[ast.AST]:
    """Yield the import statements inside of functions."""
    for child in ast.iter_child_nodes(node):
        if within and isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from inner_imports(child, within=within or isinstance(child, FUNCTIONS))


def class_names(tree: ast.Module) -> list[str]:
    """Return the public classes of a module."""
    return [each.name for each in tree.body if isinstance(each, ast.ClassDef) and not each.name.startswith("_")]


def loaded_by_a_plan() -> list[str]:
    """Return the modules of the package that a plan of a project and a network loads."""
    with (
        tempfile.TemporaryDirectory() as folder,
        claimed(Layout(BASE, Path(folder)), "measures") as layout,
        running(Path(folder), base=layout.base) as light,
    ):
        Path(folder, "spec.yaml").write_text(SPEC)
        variables = {"OS_CLIENT_CONFIG_FILE": str(light.clouds_file), "OS_CLOUD": light.entries[0]}
        command = [sys.executable, "-c", PLAN]
        environment = os.environ | variables
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()[-1].split()


def mutants() -> list[str]:
    """Return the figures of the last run of mutants, which takes hours, as they are stored."""
    figures = Path(__file__).with_name("mutants.md").read_text().partition("## Not noticed")[0]
    lines = figures.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return [f"{noticed} noticed, judged {judged} in {part}" for part, judged, noticed, _ in rows]


def main() -> None:
    """Print them."""
    texts = modules()
    trees = [ast.parse(text) for text in texts.values()]
    names = Counter(name for tree in trees for name in class_names(tree))
    several = sorted(name for name, count in names.items() if count > 1)
    loaded = loaded_by_a_plan()
    rows = {
        "modules": len(texts),
        "lines": sum(text.count("\n") for text in texts.values()),
        "modules that a plan of a project and a network loads": len(loaded),
        "imports inside functions": sum(1 for tree in trees for _ in inner_imports(tree)),
        "public class names": len(names),
        "public class names of several classes": len(several),
    }
    for text, number in rows.items():
        print(f"{number:>7,}  {text}")
    rooms = Counter(name.split(".")[1] for name in loaded if "." in name)
    print("loaded:", ", ".join(f"{room} {count}" for room, count in rooms.most_common()))
    print("several classes:", ", ".join(several))
    print("mutants noticed:", "; ".join(mutants()))


if __name__ == "__main__":
    main()
