"""Generated documents match the code, examples load, and links resolve."""

from __future__ import annotations

import importlib.util
import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

import openstack_prep as prep
from openstack_prep import extensions, hooks
from openstack_prep.cli import main
from openstack_prep.cli.reference.schema import documents
from tests.kinds import KINDS
from tests.rights import table as rights

ROOT = Path(__file__).parents[2]
PAGES = {page.relative_to(ROOT): page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))}
NEWS = {page.relative_to(ROOT): page for page in ROOT.glob("newsfragments/*.md")}
"""Parts of the next CHANGELOG.md; their links begin in its folder."""
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)

NEWS_NAME = re.compile(r"[0-9]+\.(summary|feature|bugfix)(\.[1-9][0-9]*)?\.md")
"""Towncrier takes a counter that is no number for 0, and refuses two files with one (towncrier 26.9.0, _builder.py)."""


INSTALLING = re.compile(
    r"\b(?:pip|pipx|uv|uvx)\b[^`&|]*?\s(?:install|run|add|inject|download)\s([^`&|]*)|additional_dependencies:(.*)"
)
"""What a program of Python is to install."""
BY_NAME = re.compile(r"openstack[_.-]prep(\[.*\])?([=<>~!@].*)?", re.IGNORECASE)
SUFFIXES = (".md", ".py", ".yaml", ".yml", ".cfg", ".toml", ".ini", ".in", ".txt", ".tf", "Containerfile", "/run")
WITHOUT = {"mutants", "dist", "build", "openstack_prep.egg-info"}
HIDDEN = {".ci", ".github"}
"""The hidden folders with files of ours: others have environments, which other tests may write at the same time."""


def installs_by_name(line: str) -> bool:
    """Whether a line has a program of Python install a package by our name, as an index would look for it."""
    found = [first or second for first, second in INSTALLING.findall(line)]
    return any(BY_NAME.fullmatch(word.lstrip("[")) for each in found for word in re.split(r"[\s'\",;()]+|\]$", each))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pip install openstack_prep", True),
        ("pip install 'openstack_prep[osc]'", True),
        ("pipx install openstack-prep", True),
        ("uv tool install openstack-prep==1.0", True),
        ("additional_dependencies: [openstack-prep]", True),
        ("pip install '.[osc]'", False),
        ("pip install ./openstack_prep-1.0.0-py3-none-any.whl", False),
        ('pip install "git+https://git.example.com/openstack_prep@v1.0.0"', False),
        ('pip install --quiet "$OPENSTACK_PREP"', False),
        ("openstack-prep plan spec.yaml", False),
    ],
)
def test_what_installs_by_name(line: str, expected: bool) -> None:
    assert installs_by_name(line) is expected


def test_nothing_says_to_install_this_package_by_its_name() -> None:
    """The name is not registered in the package index, where anybody may register it."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in WITHOUT]
    folders = [path for path in folders if path.name in HIDDEN or not path.name.startswith(".")]
    files = [path for folder in folders for path in folder.rglob("*")] + [*ROOT.iterdir()]
    files = [path for path in files if str(path).endswith(SUFFIXES) and path.is_file() and path != Path(__file__)]
    assert {ROOT / "README.md", ROOT / ".ci" / "run", ROOT / ".pre-commit-hooks.yaml"} <= {*files}
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        for line in path.read_text().splitlines()
        if installs_by_name(line)
    ]
    assert found == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("name", ["spec", "codes"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    found = importlib.util.spec_from_file_location(f"make_{name}_md", ROOT / "docs" / f"make_{name}_md.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert (ROOT / "docs" / f"{name}.md").read_text() == module.page(), f"run: python docs/make_{name}_md.py"


def test_the_rights_are_those_that_are_tested() -> None:
    """The tables of docs/security.md are those that tests/rights runs, and know all commands and all kinds."""
    page = (ROOT / "docs" / "security.md").read_text()
    assert f"{rights.BEGIN}\n{rights.render()}\n{rights.END}\n" in page, "run: python -m tests.rights"
    used = {use.command.removesuffix(" --dry-run").removesuffix(" --plan") for use in rights.USES}
    assert used | rights.NO_CLOUD.keys() | rights.AT_TERMINAL.keys() == {*extensions.commands()}
    named = set(re.findall(r"[a-z_]+", " ".join(kind.name for kind in rights.KINDS)))
    assert KINDS.keys() <= named


def test_each_document_of_the_output_is_listed() -> None:
    page = (ROOT / "docs" / "pipelines.md").read_text()
    assert [name for name in documents() if f"`{name}`" not in page] == []


def test_the_guide_for_extensions_shows_its_package() -> None:
    """Small files whole, the kind in parts; functions of a class without their indentation."""
    package = ROOT / "tests" / "extension" / "package"
    paths = [package / "pyproject.toml", *sorted((package / "prep_volumes").glob("*.[py]*"))]
    files = {path.name: path.read_text() for path in paths}
    page = (ROOT / "docs" / "extending.md").read_text()
    blocks = re.findall(r"^```(?:python|toml|yaml)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    examples = ("# spec.yaml", "import openstack_prep as prep")  # tests/extension runs these
    shown = [each for each in blocks if not each.startswith(examples)]
    assert {name for name, text in files.items() if text not in shown} == {"__init__.py", "volume.py"}
    kind = files["volume.py"]
    parts = [each for each in shown if each not in files.values()]
    assert [each for each in parts if each not in kind and textwrap.indent(each, "    ") not in kind] == []


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
    assert (ROOT / "README.md").read_text().count("<!-- test command -->\n```sh\n") == 1


def broken_links(name: Path) -> Iterator[str]:
    """Yield the links of a page that lead to no file or heading."""
    page = PAGES.get(name) or ROOT / name.name
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", (ROOT / name).read_text())):
        if re.match("[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield f"{name}: {link}"


def test_links_lead_to_files_and_headings() -> None:
    assert [link for name in (*PAGES, *NEWS) for link in broken_links(name)] == []


def test_the_summary_of_the_next_release_is_read_in_two_minutes() -> None:
    summaries = [page for page in NEWS.values() if page.name.split(".")[1] == "summary"]
    assert all(len(page.read_text().split()) <= 400 for page in summaries)
    assert len(summaries) <= 1


def test_pages_and_headings_that_the_package_names_exist() -> None:
    """Such as in messages, and at the head of files that a command writes."""
    named: set[tuple[str, str]] = set()
    for pattern in ("openstack_prep/**/*.py", "openstack_prep/**/*.yaml", "install_configs/*", "heat_templates/*"):
        for file in filter(Path.is_file, ROOT.glob(pattern)):
            named |= set(re.findall(r"\b(docs/[\w-]+\.md)(?:#([\w-]+))?", file.read_text()))
    assert ("docs/support.md", "support-bundle") in named
    broken = {
        (page, anchor)
        for page, anchor in named
        if not (ROOT / page).exists() or (anchor and anchor not in anchors(ROOT / page))
    }
    assert not broken


def test_each_section_of_the_reference_has_an_example_that_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    text = (ROOT / "docs" / "spec.md").read_text()
    examples = dict(re.findall(r"^## (\w+)\n```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    assert set(examples) == {each for each in prep.spec.schema()["properties"] if each != "name"}
    for section, example in examples.items():
        assert section in yaml.safe_load(example)
        for included in yaml.safe_load(example).get("include", ()):
            (tmp_path / included).parent.mkdir(exist_ok=True)
            (tmp_path / included).write_text("networks: []\n")
        path = tmp_path / f"{section}.yaml"
        path.write_text(f"name: lab\n{example}")
        prep.load_spec(path)


@pytest.mark.parametrize("name", [name for name in PAGES if name != Path("docs/spec.md")], ids=str)
def test_whole_specs_in_guides_load(name: Path, tmp_path: Path) -> None:
    for example in re.findall(r"^```yaml\n(name: .*?)^```", PAGES[name].read_text(), re.DOTALL | re.MULTILINE):
        (tmp_path / "spec.yaml").write_text(example)
        prep.load_spec(tmp_path / "spec.yaml")


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of each openstack-prep command in the examples of a page."""
    for block in re.findall(r"^ *```(?:sh|console)\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in re.findall(r"^(?:\$ )?openstack-prep (.*)$", block, re.MULTILINE):
            words = shlex.split(line, comments=True)
            ends = [index for index, word in enumerate(words) if re.match(r"[|>]|2>|&&", word)]
            yield words[: min(ends, default=None)]


class Parsed(BaseException):
    """The command line is valid; no error, which the command would print."""


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_commands_in_examples_parse(name: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = main._parsed

    def only_parse(arguments: Sequence[str]) -> NoReturn:
        parse(arguments)
        raise Parsed

    monkeypatch.setattr(main, "_parsed", only_parse)
    for command in commands(PAGES[name]):
        with pytest.raises(Parsed):
            main.main(command)


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_python_examples_use_names_that_exist(name: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", PAGES[name].read_text(), re.DOTALL | re.MULTILINE):
        compile(block, str(name), "exec")
        for module, attribute in re.findall(r"\b(prep|hooks)\.(\w+)", block):
            assert hasattr({"prep": prep, "hooks": hooks}[module], attribute), f"{module}.{attribute}"


def test_names_of_news_differ_for_towncrier() -> None:
    assert [name.name for name in NEWS if not NEWS_NAME.fullmatch(name.name)] == []
