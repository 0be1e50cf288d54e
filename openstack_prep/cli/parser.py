"""The parser of the command line, whose mistakes are errors like all others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import ConfigError

DATA = ("json", "yaml")
"""The values of --format besides text."""


class UsageError(ConfigError):
    """The command line cannot be parsed."""

    def __init__(self, program: str, message: str) -> None:
        self.program, self.message = program, message
        self.command = program.partition(" ")[2]
        super().__init__(f"{self.command}: {message}" if self.command else message)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        fix = f"{self.program} --help lists the options"
        return (Diagnostic(code=self.code, where=self.command, what=self.message, fix=fix),)


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    def error(self, message: str) -> NoReturn:
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
