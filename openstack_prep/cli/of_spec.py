"""Options that several commands share. Each --help reads this module, so it imports no other but the parser."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from openstack_prep.cli.parser import seconds

FORMS = {"junit": "JUnit XML", "sarif": "SARIF 2.1.0"}
REWRITTEN = "; files of earlier runs are written again, without changes by hand"
"""In the help of --output: what the command has written is its own, as it is of apply."""
LOCK_TIMEOUT = 60.0  # seconds, as in openstack_prep.cloud.lease, which is not loaded for a --help


def add_spec(
    parser: argparse.ArgumentParser,
    text: str = "the spec, a YAML file; - is standard input",
    *,
    optional: bool = False,
    default: bool = False,
    unless: tuple[str, ...] = (),
) -> None:
    """Add the argument SPEC, and the options for its variables.

    ``default``: without it, the command takes prep.yaml, or the only spec of the folder, unless an option of ``unless``
    is given.
    """
    text = f"{text} (default: prep.yaml, or the only spec of the folder)" if default else text
    parser.add_argument("spec", type=spec_path, nargs="?" if optional or default else None, metavar="SPEC", help=text)
    parser.set_defaults(default_spec=default, no_default_spec=unless)
    add_variables(parser)


def spec_path(text: str) -> Path:
    """Return the path of a spec, as argparse reads it; relative paths in standard input are those of the folder."""
    return Path("/dev/stdin" if text == "-" else text)


def add_variables(parser: argparse.ArgumentParser) -> None:
    """Add the options for the variables of a spec."""
    parser.add_argument(
        "--var",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=VALUE",
        help="value of a variable of the spec, not of a secret; once per variable",
    )
    parser.add_argument(
        "--vars-file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="YAML file with values of variables; repeatable, and the last one counts",
    )


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("write NAME=VALUE")  # the text may hold a secret
    return name, value


def variable_words(options: argparse.Namespace, *, has_plain_secrets: bool) -> list[str]:
    """Return the options for variables as words of a command; without values if one may be a secret of the spec."""
    given = ((name, "..." if has_plain_secrets else value) for name, value in options.var)
    words = [word for name, value in given for word in ("--var", f"{name}={value}")]
    return words + [word for path in options.vars_file for word in ("--vars-file", str(path))]


def fix_options(options: argparse.Namespace, *, has_plain_secrets: bool) -> list[str]:
    """Return the options that a printed command needs besides the spec, to read the same one by the same entry."""
    folders = [word for folder in options.directory for word in ("-C", str(folder))]
    cloud = ["--os-cloud", options.os_cloud] if options.os_cloud else []
    return [*folders, *cloud, *variable_words(options, has_plain_secrets=has_plain_secrets)]


def add_lock_timeout(parser: argparse.ArgumentParser) -> None:
    """Add the option of all commands that write: how long to wait for another run."""
    parser.add_argument(
        "--lock-timeout",
        type=seconds,
        default=LOCK_TIMEOUT,
        metavar="SECONDS",
        help=f"how long to wait for another run on the same spec; 0 fails immediately ({LOCK_TIMEOUT:.0f})",
    )


def add_allow_loss(parser: argparse.ArgumentParser) -> None:
    """Add the option of all commands that delete: what may be taken from others."""
    parser.add_argument(
        "--allow-loss",
        action="append",
        default=[],
        metavar="KIND/ID",
        help="allow deletions and updates to take this from others, as the refusal names it; repeatable",
    )


def add_reports(parser: argparse.ArgumentParser, subjects: str) -> None:
    """Add the options; ``subjects`` is the one that names the examined files."""
    for form, name in FORMS.items():
        help_text = f"also write the findings as {name}, for a pipeline"
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=help_text)
    parser.set_defaults(subjects=subjects, started=datetime.now(UTC))


def add_html(parser: argparse.ArgumentParser) -> None:
    """Add the option for a page."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the result as a page for a browser")
