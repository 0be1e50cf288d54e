"""docs/reference*.md: each public name with its docstring and an example that is run (on a cloud: tests/functional)."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openstack_prep as prep
from openstack_prep import hooks
from openstack_prep.base import errors
from tests import doc_examples

FORMER = {"Wishes"}
"""Former names, which are documented with the present ones."""
TEXT = "\n".join(page.read_text() for page in doc_examples.PAGES)
NAMES = {
    f"{package}.{name}": getattr(module, name)
    for package, module in (("prep", prep), ("hooks", hooks))
    for name in module.__all__
    if name not in FORMER
}
FUNCTIONS = {name: each for name, each in NAMES.items() if inspect.isfunction(each)}
CLASSES = {name: each for name, each in NAMES.items() if inspect.isclass(each)}


def undocumented(kind: type) -> Iterator[str]:
    """Yield the public members of a class that neither its docstring nor one of their own describes."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    own = ast.get_docstring(body) or ""
    for here, after in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        match here:
            case ast.AnnAssign(target=ast.Name(id=name)) if "ClassVar" not in ast.unparse(here.annotation):
                if not (name.startswith("_") or described or f"``{name}``" in own):
                    yield name
            case ast.FunctionDef(name=name) if not (name.startswith("_") or issubclass(kind, prep.Resource)):
                if not (ast.get_docstring(here) or hasattr(kind.__base__, name)):
                    yield name


def test_the_reference_shows_exactly_the_public_names() -> None:
    shown = re.findall(r"^\.\. auto(?:class|function|exception|data):: openstack_prep\.(\S+)$", TEXT, re.MULTILINE)
    assert sorted(name if "." in name else f"prep.{name}" for name in shown) == sorted(NAMES)


def test_the_site_has_all_pages() -> None:
    listed = re.findall(r"^[\w/.-]+$", (doc_examples.DOCS / "index.md").read_text(), re.MULTILINE)
    root = doc_examples.DOCS.parent
    pages = {*doc_examples.DOCS.glob("*.md"), *root.glob("*.md"), *root.glob("tests/*/README.md")}
    pages -= {doc_examples.DOCS / "index.md"}
    assert {(doc_examples.DOCS / f"{each}.md").resolve() for each in listed} == pages, "list it in docs/index.md"


def test_each_public_name_is_in_an_example() -> None:
    blocks = [block.text for page in doc_examples.PAGES for block in doc_examples.examples(page)]
    shown = {word for block in blocks for word in re.findall(r"(?=\b((?:\w+\.)?\w+)\b)", block)}
    assert [name for name in NAMES if name not in shown] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_describes_its_parameters_and_errors(name: str) -> None:
    text = FUNCTIONS[name].__doc__ or ""
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    assert [each for each in parameters if f"``{each}``" not in text] == []
    raised = re.findall(r"\b[A-Z]\w+\b", text.partition("aises ")[2])
    assert any(hasattr(errors, each) for each in raised), "say which errors it raises"
    seconds = [each.name for each in parameters.values() if str(each.annotation) == "float"]
    assert not seconds or "second" in text, f"say that {seconds} are seconds"


def test_each_class_describes_its_members() -> None:
    assert [name for name, kind in CLASSES.items() if not inspect.getdoc(kind)] == []
    missing = {name: list(undocumented(kind)) for name, kind in CLASSES.items()}
    assert {name: members for name, members in missing.items() if members} == {}


@pytest.mark.parametrize("page", doc_examples.PAGES, ids=lambda page: page.name)
def test_examples_without_a_cloud(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    doc_examples.write_files(tmp_path)
    names: dict[str, Any] = {"prep": prep, "hooks": hooks}
    wrong = doc_examples.run([each for each in doc_examples.examples(page) if not each.needs_cloud], names)
    assert not wrong, "".join(wrong)
