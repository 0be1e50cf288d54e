"""The parser of the command line, whose mistakes are errors like all others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from openstack_prep.cli.spellings import list_substitutes, respell, with_two_dashes

if TYPE_CHECKING:
    from openstack_prep.base.errors import PrepError

DEFAULTS = {"debug": False, "color": "auto", "ids": False, "format": "text", "os_cloud": None, "jobs": 8}
"""Of the options that several commands have."""
PLAIN, PRINTING, WORK = ("debug", "color"), ("debug", "color", "format"), tuple(DEFAULTS)
"""Which of them a command has: any; one that prints data; one that reads a cloud."""
DATA = ("json", "yaml")
LONGEST = 10**6  # seconds; eleven days
"""The values of --format besides text."""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes options only by their whole names: a later one may begin alike."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        return super().parse_known_args(respell(self, sys.argv[1:] if args is None else args), namespace)

    def error(self, message: str) -> NoReturn:
        from openstack_prep.cli.usage_error import UsageError  # not needed for --version and --help

        self.print_usage(sys.stderr)
        raise UsageError(self.prog, message)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with the words that no option or argument takes, and the options that are probably meant."""
        options = [word for word in unknown if word[:1] == "-"]
        # the value of an unknown option, as of --os-password=WORD, is unknown as well, and may be a secret
        self.error("; ".join(f"{word.partition('=')[0]} is unknown{self._fix(word)}" for word in options or unknown))

    def _fix(self, word: str) -> str:
        """Return what is probably meant by an unknown word."""
        option = word.partition("=")[0]
        fix = next(list_substitutes(self, option), "") if word[:1] == "-" else ""
        return f"; {fix}" if fix else _meant(option, self._option_string_actions)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is no choice, and name the one that is probably meant (Python 3.14: suggest_on_error)."""
        if action.choices is not None and value not in action.choices:
            choices = [*map(str, action.choices)]
            fix = _meant(str(value), choices) or f"; use {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"{value} is unknown{fix}")


def _meant(word: str, known: Iterable[str]) -> str:
    from openstack_prep.base.suggestion import suggest  # not needed for --version and --help

    found = suggest(word, known)
    return f"; {found}" if found else ""


def guess_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options that say how to print an error, of a command line that is not parsed yet or has mistakes."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--format", nargs="?")
    parser.add_argument("--detailed-exitcode", nargs="?", const=True)
    words = sys.argv[1:] if arguments is None else arguments
    options, _ = parser.parse_known_args(with_two_dashes(parser._option_string_actions, words))
    options.format = options.format if options.format in DATA else "text"
    options.debug = False
    return options


def exit_code(options: argparse.Namespace, error: PrepError) -> int:
    """Return the exit code for an error; with --detailed-exitcode 2 would mean that changes are pending."""
    return 1 if error.exit_code == 2 and getattr(options, "detailed_exitcode", None) else error.exit_code


def positive(text: str) -> int:
    """Return a number of requests or processes, as argparse reads it."""
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 256")
    return int(text)


def seconds(text: str) -> float:
    """Return a time to wait, as argparse reads it."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0 to {LONGEST}")
    return found
