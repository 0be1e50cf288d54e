"""The parser of the command line, whose mistakes are errors like all others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from openstack_prep.base.errors import PrepError

DATA = ("json", "yaml")
"""The values of --format besides text."""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes options only by their whole names: a later one may begin alike."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        from openstack_prep.cli.usage_error import UsageError  # not needed for --version and --help

        self.print_usage(sys.stderr)
        raise UsageError(self.prog, message)


def guess_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options that say how to print an error, of a command line that is not parsed yet or has mistakes."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--format", nargs="?")
    parser.add_argument("--detailed-exitcode", nargs="?", const=True)
    options, _ = parser.parse_known_args(arguments)
    options.format = options.format if options.format in DATA else "text"
    options.debug = False
    return options


def exit_code(options: argparse.Namespace, error: PrepError) -> int:
    """Return the exit code for an error; with --detailed-exitcode 2 would mean that changes are pending."""
    return 1 if error.exit_code == 2 and getattr(options, "detailed_exitcode", None) else error.exit_code
