"""The help: commands by heading, examples that are valid command lines, and ``help`` and ``version``."""

from __future__ import annotations

import re
import shlex
import sys

import pytest

from openstack_prep import extensions
from openstack_prep.cli.main import FIRST, build_parser, main
from openstack_prep.extensions import Command, Extension
from openstack_prep.version import __version__

HEADINGS = ["Projects", "External access", "Kubernetes", "Many projects", "OpenShift", "Reference"]
"""The first and the last one are those of the foundation."""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the exit code and the output of a command, also of one that ends as argparse does."""
    try:
        code = main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, *capsys.readouterr()


def headings_of(text: str) -> list[str]:
    return re.findall(r"^([A-Z][\w ]+):$", text, re.MULTILINE)


@pytest.mark.parametrize("words", [("--help",), ("help",)])
def test_the_whole_command_lists_its_commands_by_heading(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert headings_of(out) == HEADINGS
    sections = dict(zip(HEADINGS, re.split(r"^[A-Z][\w ]+:$", out, flags=re.MULTILINE)[1:], strict=True))
    for name, command in extensions.commands().items():
        assert re.search(rf"^  {name.partition(' ')[0]} ", sections[command.heading], re.MULTILINE), name
    assert all(f"openstack-prep {line}\n" in out for line in FIRST)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("help", "plan"), ("plan", "--help")),
        (("help", "rke", "check"), ("rke", "check", "--help")),
        (("help", "rke"), ("rke", "--help")),
        (("help", "help"), ("help", "--help")),
        (("--color", "never", "help", "fleet", "plan"), ("fleet", "plan", "--help")),
    ],
)
def test_help_prints_what_the_option_does(
    words: tuple[str, ...], same: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *words) == run(capsys, *same)
    assert run(capsys, *words)[0] == 0


@pytest.mark.parametrize("words", [(), ("--debug",), ("rke",), ("--format", "json", "fleet")])
def test_without_a_command_a_person_reads_the_help_and_a_script_fails(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, shown, _ = run(capsys, *words, "--help")
    assert run(capsys, *words) == (2, "", shown)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(capsys, *words) == (0, shown, "")


@pytest.mark.parametrize("words", [("help", "plna"), ("help", "rke", "chek")])
def test_help_of_an_unknown_command_is_an_error(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert {"plna": "plan", "chek": "check"}[words[-1]] in err


@pytest.mark.parametrize("words", [("version",), ("--version",)])
def test_the_version(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *words) == (0, f"openstack-prep {__version__}\n", "")


EXAMPLES = [
    ("", FIRST),
    *((name, command.examples) for name, command in extensions.commands().items()),
]


@pytest.mark.parametrize(("name", "examples"), EXAMPLES, ids=[name or "openstack-prep" for name, _ in EXAMPLES])
def test_each_command_has_two_examples_that_the_parser_reads(name: str, examples: dict[str, str]) -> None:
    assert len(examples) >= 2
    named = []
    for line in examples:
        words = shlex.split(line)
        words = words[: words.index(">")] if ">" in words else words
        if words == ["--version"]:
            continue
        options, unknown = build_parser(words).parse_known_args(words)
        assert unknown == []
        named.append(options.called)
    assert not name or name in named


@pytest.mark.parametrize("name", extensions.commands())
def test_the_help_of_a_command_shows_its_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "help", *name.split())
    assert code == 0
    assert all(f"  openstack-prep {line}\n" in out for line in extensions.commands()[name].examples)


def test_an_extension_of_somebody_else_has_a_heading(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add = "openstack_prep.cli.reference.options:add_explain"
    others = (
        Extension(name="volumes", commands={add: {"usage": "sizes of volumes"}}),
        Extension(name="x", heading="Shares", commands={add: {"shares": Command("shares of Manila", heading="")}}),
    )
    monkeypatch.setattr(extensions, "installed", lambda: (*extensions.foundation(), *others))
    _, out, _ = run(capsys, "--help")
    assert headings_of(out) == ["Projects", "Shares", "Volumes", "Reference"]
