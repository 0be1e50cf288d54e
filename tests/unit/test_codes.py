"""Every code of a diagnostic is documented, and every documented code is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
import yaml

import openstack_prep
from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PrepError
from openstack_prep.cli.reference.explain import PARTS
from openstack_prep.fleet.runs import FleetFailed
from openstack_prep.kubernetes.api import ClusterError
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.reports.codes import REPORTS, read_codes
from openstack_prep.verbs.audit import DriftCode as Drifted

ROOT = Path(openstack_prep.__path__[0])
REPORTING = re.compile(r"^from openstack_prep\.base\.(diagnostic|errors) import", re.MULTILINE)
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if REPORTING.search(path.read_text())]
PACKAGES = [REPORTS, *(each.codes for each in extensions.installed() if each.codes)]
HELPERS = ("unknown", "_diagnostic")
"""Functions that take the code first and return a Diagnostic."""


def texts(node: ast.AST) -> list[str]:
    """Return the codes that an expression may be: a text, or the two branches of a condition."""
    if isinstance(node, ast.IfExp):
        return [*texts(node.body), *texts(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def codes_in(node: ast.AST) -> Iterator[str]:
    """Yield the codes that a statement or expression names, without those within it."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "code":
                yield from texts(keyword.value)
        if called(node) in HELPERS:
            yield from texts(node.args[0])
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == "code":
                yield from texts(node.value)
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
                yield from (each for name, value in pairs if getattr(name, "id", "") == "code" for each in texts(value))
    elif isinstance(node, ast.Compare) and getattr(node.left, "attr", "") == "code":
        yield from texts(node.comparators[0])


def codes_of(path: Path) -> set[str]:
    return {code for node in ast.walk(ast.parse(path.read_text())) for code in codes_in(node)}


def used_in(*rooms: str) -> set[str]:
    """Return the codes that the modules of some rooms name."""
    return {code for path in MODULES if path.relative_to(ROOT).parts[0] in rooms for code in codes_of(path)}


def registered(room: str) -> dict[str, dict[str, str]]:
    return dict(yaml.safe_load((ROOT / room.removeprefix("openstack_prep.") / "codes.yaml").read_text()))


def test_codes_keep_their_names() -> None:
    """Whoever adds a code adds it to codes.txt; a code that is gone or has another name breaks scripts of others."""
    lines = Path(__file__).with_name("codes.txt").read_text().splitlines()
    assert list(read_codes()) == [line for line in lines if not line.startswith("#")]


def test_a_diagnostic_has_a_code_unless_its_status_is_ok() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and called(node) == "Diagnostic":
                given = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert "code" in given or given["status"] == "DiagnosticStatus.OK", f"{path}:{node.lineno}"


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts of a module's constants."""
    assigned = (node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    return {
        target.id: str(node.value.value) for node in assigned for target in node.targets if isinstance(target, ast.Name)
    }


def branches(node: ast.AST, named: dict[str, str]) -> list[str]:
    """Return the texts that an expression may be, without those that have variable parts."""
    if isinstance(node, ast.IfExp):
        return [*branches(node.body, named), *branches(node.orelse, named)]
    return [named[node.id]] if isinstance(node, ast.Name) and node.id in named else texts(node)


def test_no_text_of_a_diagnostic_stands_twice() -> None:
    """``documented`` takes the why and fix that codes.yaml has for a code; no code says the same again."""
    twice = []
    for path in MODULES:
        tree = ast.parse(path.read_text())
        named = constants(tree)
        for node in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            given = {each.arg: each.value for each in node.keywords}
            for code in texts(given["code"]) if "code" in given else []:
                entry = read_codes().get(code, {})
                for part in ("why", "fix"):
                    said = branches(given[part], named) if part in given else []
                    known = words(entry.get(part, ""))
                    twice += [f"{path}:{node.lineno}: {each}" for each in said if each and words(each) == known]
    assert twice == []


def test_documented_texts_are_clauses() -> None:
    """Diagnostics print them as the others, which begin with a small letter and end without a full stop."""
    entries = {code: entry for room in PACKAGES for code, entry in registered(room).items()}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and called(node) == "documented":
                given = {each.arg: each.value for each in node.keywords}
                for code in texts(given["code"]):
                    missing = {"why", "fix"} - given.keys()
                    assert missing, f"{path}:{node.lineno} is a Diagnostic"
                    assert [part for part in missing if entries[code][part].endswith(".")] == [], code


@pytest.mark.parametrize(("room", "more"), [("openshift", ("cli", "hooks")), ("kubernetes", ()), ("exposures", ())])
def test_each_code_of_a_room_is_registered_and_used(room: str, more: tuple[str, ...]) -> None:
    used = used_in(room, *more)
    assert used <= registered("base").keys() | registered(room).keys()
    of_mistakes = {*ClusterCode, ClusterError.code} if room == "kubernetes" else set()
    assert registered(room).keys() <= used | of_mistakes


def members_in(path: Path, of: type = Code) -> set[str]:
    """Return the names of the members of Code, or of another enumeration, that a module uses."""
    tree = ast.walk(ast.parse(path.read_text()))
    used = (each for each in tree if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name))
    return {each.attr for each in used if getattr(each.value, "id", "") == of.__name__}


def test_each_code_of_a_mistake_is_used() -> None:
    for codes in (Code, ClusterCode):
        used = set().union(*(members_in(path, codes) for path in ROOT.rglob("*.py")))
        assert {each.name for each in codes} <= used


def errors(base: type[PrepError] = PrepError) -> Iterator[type[PrepError]]:
    """Yield the class of every error that this package raises."""
    yield base
    for each in base.__subclasses__():
        yield from errors(each)


def test_shared_codes_are_those_of_errors_and_mistakes_and_of_several_rooms() -> None:
    of_errors = {each.code for each in errors()} | {FleetFailed.code}  # imported: only known classes are found
    of_errors -= registered("kubernetes").keys()
    of_mistakes = {each.value for each in Code}
    pairs = combinations(("openshift", "kubernetes", "exposures"), 2)
    shared = set().union(*(used_in(one) & used_in(other) for one, other in pairs))
    assert registered("base").keys() == shared | of_errors | of_mistakes


def test_reports_name_each_drift_and_warnings() -> None:
    assert registered("reports").keys() == {f"drift.{each}" for each in Drifted} | {"spec.warning"}


def test_each_code_is_registered_once_with_all_parts() -> None:
    assert sum(len(registered(room)) for room in PACKAGES) == len(read_codes())
    for code, entry in read_codes().items():
        assert tuple(entry) == PARTS, code
        assert all(text and isinstance(text, str) for text in entry.values()), code
