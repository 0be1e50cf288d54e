"""What others named or answered cannot move the cursor, hide text, or pretend to be a message of the command."""

from __future__ import annotations

import ast
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests_mock
import yaml

import openstack_prep.cli
from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import Mistake, PrepError
from openstack_prep.base.formats import yaml_text
from openstack_prep.base.key import Key
from openstack_prep.base.style import Style, visible
from openstack_prep.cli.main import main
from openstack_prep.cli.output import say, warn
from openstack_prep.core.model import Observed
from openstack_prep.core.text import observed_table
from tests.unit.conftest import ENDPOINTS, failure

FORGED = "g\x1b[2J\x1b[1A\nopenstack-prep: forged\r\x07\u202e\x00"

pytestmark = pytest.mark.usefixtures("clouds_yaml")


def harmless(text: str) -> bool:
    """Whether a text shows what it is, and no line of it begins with the forged message."""
    lines = text.replace("\t", " ").split("\n")
    assert [each for each in lines if not each.isprintable() or each.startswith("openstack-prep: forged")] == []
    return True


def test_our_own_colours_are_all_that_passes() -> None:
    own = Style(color=True).paint("name", "31")
    assert visible(f"{own}\n\tx") == f"{own}\n\tx"
    assert visible("\x1b[31;1m\x1b[2J\x9b2J\u202e\x7f") == r"\x1b[31;1m\x1b[2J\x9b2J\u202e\x7f"


@pytest.mark.parametrize(
    "text",
    [
        str(Mistake(FORGED, FORGED, FORGED)),
        str(Diagnostic(where=FORGED, what=FORGED, why=FORGED, fix=FORGED)),
        Diagnostic(where=FORGED, what=FORGED, fix=FORGED).line,
        PrepError(FORGED).diagnostics[0].line,
        observed_table({Key("network", FORGED): Observed(id=FORGED, outputs={"address": FORGED})}),
        Style().line("!", f"network/{FORGED}", FORGED),
        Style(width=60).line("!", f"network/{FORGED}", FORGED),
        yaml_text.dump({"name": FORGED, FORGED: [FORGED]}),
        yaml_text.one_line({"name": FORGED}),
    ],
)
def test_a_name_of_somebody_else_is_shown_with_escapes(text: str) -> None:
    assert harmless(text)


def test_yaml_with_escapes_reads_as_before() -> None:
    data = {"name": FORGED, "other": "\u202e", "plain": "ä"}
    assert yaml.safe_load(yaml_text.dump(data)) == data
    assert yaml_text.dump({"plain": "ä"}) == "plain: ä\n"


def test_messages_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say(FORGED)
    warn(FORGED)
    assert harmless(capsys.readouterr().err)


def test_an_unknown_key_with_marks_that_turn_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump({"name": "lab", FORGED: 1, "networks": [{"name": "n", FORGED: 1}]}))
    assert main(["validate", str(path)]) == 2
    assert harmless(capsys.readouterr().err)
    assert main(["validate", "--format", "json", str(path)]) == 2
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 2


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_an_error_of_a_service(
    services: requests_mock.Mocker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    debug: list[str],
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("openstack_prep"), "handlers", [])
    path = tmp_path / "spec.yaml"
    path.write_text("name: lab\nclouds: {admin: lab}\nflavors: [{name: a, vcpus: 1, ram: 1, disk: 1}]\n")
    services.get(f"{ENDPOINTS['compute']}/flavors/detail", **failure(400, FORGED))
    assert main([*debug, "plan", str(path)]) == 1
    assert harmless(capsys.readouterr().err)


PRINTS = {"visible", "printable", "json.dumps"}
OWN = {"about.py", "completion.py", "schema.py"}
"""Files that print only what the package contains."""


def test_whatever_the_command_prints_goes_through_one_function() -> None:
    """``progress.py`` prints lines of ``Style.line``, which escapes names and details."""
    root = Path(openstack_prep.cli.__file__).parent
    odd = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "print" or path.name in OWN:
                continue
            text = "".join(map(ast.unparse, node.args))
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {text.partition("(")[0]}
            if not names & PRINTS and "diagnostic.line" not in text and text not in ("line", "text"):
                odd.append(f"{path.name}:{node.lineno}: {text}")
    assert odd == []


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_is_full_is_no_bug(unbuffered: str) -> None:
    """In a process of its own, whose output is flushed and closed at the end, too."""
    program = Path(sys.executable).with_name("openstack-prep")
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [program, "example", "minimal"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, "the output cannot be written: No space left on device" in line) == (1, True)
