"""The spec of a command, the values of its variables, and its cloud."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.spec import Spec


def add_spec(parser: argparse.ArgumentParser, text: str = "the spec, a YAML file", *, optional: bool = False) -> None:
    """Add the argument SPEC, and the options for its variables."""
    parser.add_argument("spec", type=Path, nargs="?" if optional else None, metavar="SPEC", help=text)
    add_variables(parser)


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


def read_of(
    options: argparse.Namespace,
    path: Path,
    sections: Collection[str] | None = None,
    saved: Mapping[str, object] | None = None,
    *,
    needs_secrets: bool = True,
) -> Spec:
    """Return a spec, or some of its sections, with the values that the options have for its variables.

    ``saved`` are values in a saved plan. A command that only checks a spec needs no values of secrets. Raises
    SpecError.
    """
    from openstack_prep.spec.spec import read_spec
    from openstack_prep.spec.variables import Given

    given = Given(options.var, options.vars_file, saved=saved or {}, needs_secrets=needs_secrets)
    return read_spec(path, given, sections)


def variable_words(options: argparse.Namespace) -> list[str]:
    """Return the options for variables as words of a command."""
    words = [word for name, value in options.var for word in ("--var", f"{name}={value}")]
    return words + [word for path in options.vars_file for word in ("--vars-file", str(path))]


def connect_chosen(options: argparse.Namespace, entry: str | None) -> Cloud:
    """Return the cloud of --os-cloud, else of the entry that a file names, else of OS_CLOUD.  Raises ConfigError.

    A program with a choice of its own, as the command ``openstack``, makes it by ``options.connection``.
    """
    from openstack_prep.cloud.connection import connect

    own = getattr(options, "connection", None)
    return connect(options.os_cloud or entry, connection=own(entry) if own else None)
