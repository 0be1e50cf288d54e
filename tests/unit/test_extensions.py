"""Extensions of others that cannot be used: one clear error, whatever is wrong, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openstack_prep import extensions
from openstack_prep.base.errors import CloudError, ExtensionError, PrepError
from openstack_prep.extensions import GROUP

EXTENSION = "from openstack_prep.extensions import Extension, Section\nEXTENSION = Extension({})\n"
SECTION = EXTENSION.format("'boxes', sections=(Section('boxes', 'boxes_of_{0}:Box', 'Boxes.'),)")
COMMAND = EXTENSION.format("'boxes', commands={'boxes_of_{0}_commands': {'boxes': 'print boxes'}}")
CHECK = EXTENSION.format("'boxes', check='boxes_of_{0}:nothing'")

HEAD = EXTENSION.format("'boxes', sections=(Section('include', 'a:A', 'A.'),)")
DERIVE = (
    EXTENSION.format(
        "'boxes', sections=(Section('boxes', 'openstack_prep.spec.sections:Clouds', 'A value.', many=False),), "
        "derive='boxes_of_{0}:derive'"
    )
    + """
def derive(resources, values):
    return ()
"""
)
FAILING = DERIVE.replace("return ()", "raise KeyError('lid')")
FAILING_CHECK = (
    EXTENSION.format("'boxes', check='boxes_of_{0}:check'")
    + """
def check(context):
    yield from ()
    raise KeyError("lid")
"""
)
CYCLE = EXTENSION.format(
    "'boxes', sections=(Section('boxes', 'a:A', 'A.', after='lids'), Section('lids', 'a:B', 'B.', after='boxes'))"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder for installed packages, beside a spec."""
    (tmp_path / "spec.yaml").write_text("name: lab\nproject: {name: lab}\n")
    (tmp_path / "boxes.yaml").write_text("name: lab\nproject: {name: lab}\nboxes: {admin: a}\n")
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


def install(site: Path, owner: str, text: str) -> None:
    """Install a package whose module is an extension, or what somebody takes for one."""
    (site / f"boxes_of_{owner}.py").write_text(text)
    info = site / f"boxes_of_{owner}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: boxes-of-{owner}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{owner} = boxes_of_{owner}:EXTENSION\n")
    (info / "top_level.txt").write_text(f"boxes_of_{owner}\n")


def run(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=site.parent,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("texts", "words", "named"),
    [
        (["import no_such_module"], ["validate", "spec.yaml"], ["boxes-of-a", "no_such_module"]),
        (["raise RuntimeError('ill')"], ["--help"], ["boxes-of-a", "RuntimeError", "ill"]),
        (["EXTENSION = 'boxes'"], ["plan", "spec.yaml"], ["boxes-of-a", "boxes_of_a:EXTENSION"]),
        ([SECTION, SECTION], ["validate", "spec.yaml"], ["boxes-of-a", "boxes-of-b", "section boxes"]),
        ([COMMAND, COMMAND], ["boxes"], ["boxes-of-a", "boxes-of-b", "command boxes"]),
        ([SECTION], ["schema"], ["boxes-of-a", "boxes_of_a:Box"]),
        ([CHECK], ["validate", "spec.yaml"], ["boxes-of-a", "boxes_of_a:nothing"]),
        ([COMMAND], ["boxes"], ["boxes_of_a_commands"]),
        ([HEAD], ["validate", "spec.yaml"], ["boxes-of-a", "openstack_prep", "section include"]),
        ([DERIVE], ["validate", "boxes.yaml"], ["update boxes-of-a,", "project/lab"]),
        ([FAILING], ["validate", "boxes.yaml"], ["update boxes-of-a,", "derive", "KeyError", "lid"]),
        ([FAILING_CHECK], ["validate", "spec.yaml"], ["update boxes-of-a,", "check", "KeyError", "lid"]),
        ([CYCLE], ["validate", "spec.yaml"], ["update boxes-of-a,", "boxes and lids"]),
    ],
)
def test_an_extension_that_cannot_be_used(site: Path, texts: list[str], words: list[str], named: list[str]) -> None:
    for owner, text in zip("ab", texts, strict=False):
        install(site, owner, text.replace("{0}", owner))
    ended = run(site, "-m", "openstack_prep.cli.main", *words)
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    (line,) = ended.stderr.splitlines()
    assert [word for word in [*named, "[extension.unusable]", "uninstall"] if word not in line] == []


def test_what_works_nonetheless(site: Path) -> None:
    install(site, "a", "import no_such_module")
    assert run(site, "-m", "openstack_prep.cli.main", "--version").returncode == 0
    ended = run(site, "-m", "openstack_prep.cli.main", "validate", "--format", "json", "spec.yaml")
    (error,) = json.loads(ended.stdout)["errors"]
    assert error["code"] == "extension.unusable"


def test_python_gets_an_error_of_this_package(site: Path) -> None:
    install(site, "a", "import no_such_module")
    script = (
        "import openstack_prep as prep\ntry: prep.load_spec('spec.yaml')\nexcept prep.PrepError as e: print(e.code)"
    )
    ended = run(site, "-c", script)
    assert (ended.stdout, ended.stderr) == ("extension.unusable\n", "")


def test_load_says_which_package_to_update() -> None:
    with pytest.raises(ExtensionError, match="pytest") as raised:
        extensions.load("pytest:no_such_thing")
    assert isinstance(raised.value, PrepError)
    assert raised.value.exit_code == 2


def test_shipped_extensions_need_no_metadata() -> None:
    """A clone that was pulled after it had been installed has the entry points of that day; a copy has none."""
    script = """
import importlib.metadata
importlib.metadata.entry_points = lambda **_: ()
from openstack_prep import extensions
print(*(each.name for each in extensions.installed()))
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(said.split()) == {each.name for each in extensions.installed()}


def test_a_command_may_join_a_group_of_ours(site: Path) -> None:
    install(site, "a", EXTENSION.format("'boxes', commands={'boxes_of_a_commands': {'credential boxes': 'say box'}}"))
    text = "def add(command):\n    command('credential boxes', lambda options: print('box') or 0, cloud=False)\n"
    (site / "boxes_of_a_commands.py").write_text(text)
    for words in (["credential", "boxes"], ["--color", "never", "credential", "boxes"]):
        assert run(site, "-m", "openstack_prep.cli.main", *words).stdout == "box\n"


def _fails(*arguments: object) -> None:
    raise KeyError("lid")


def _refuses(*arguments: object) -> None:
    raise CloudError("no answer")


def _refused(monkeypatch: pytest.MonkeyPatch, function: str) -> pytest.ExceptionInfo[Exception]:
    found = extensions.Extension("boxes", leftovers=f"{__name__}:{function}")
    monkeypatch.setattr(extensions, "_with_packages", lambda: ((found, "boxes-of-a"),))
    with pytest.raises(Exception, match=r"lid|no answer") as raised:
        extensions.call(found, "leftovers", None, (), None)
    return raised


def test_what_a_function_of_an_extension_raises_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = _refused(monkeypatch, "_fails")
    assert isinstance(raised.value, ExtensionError)
    assert isinstance(raised.value.__cause__, KeyError)
    assert "update boxes-of-a," in str(raised.value)
    assert isinstance(_refused(monkeypatch, "_refuses").value, CloudError)  # an error for people stays as it is
    assert extensions.call(extensions.Extension("boxes"), "leftovers") == []
