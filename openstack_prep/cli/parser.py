"""The parser of the command line, whose mistakes are errors like all others."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from openstack_prep.base.errors import PrepError

DEFAULTS = {
    "directory": (),
    "quiet": False,
    "verbose": 0,
    "debug": False,
    "color": "auto",
    "ids": False,
    "format": "text",
    "os_cloud": None,
    "jobs": 8,
}
"""Of the options that several commands have."""
PLAIN = ("directory", "quiet", "verbose", "debug", "color")
PRINTING, WORK = (*PLAIN, "format"), tuple(DEFAULTS)
"""Which of them a command has: any; one that prints data; one that reads a cloud."""
DATA = ("json", "yaml")
"""The values of --format besides text."""
LONGEST = 10**6  # seconds; eleven days
_OPTION = re.compile(r"--[a-z-]+|-.")
"""The name of an option, as of all programs; a word with one dash has a name of one letter."""
_SECRET_OPTION = re.compile(r"--?[a-z-]*?(?:passw(?:or)?d|passcode|secret|token)")


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes options only by their whole names: a later one may begin alike."""

    examples: Mapping[str, str]
    """Command lines without the program, and what each is for."""
    headings: dict[str, str]
    """Of its commands in its help, by name."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        self.examples, self.headings = {}, {}
        self.register("action", "parsers", _Commands)

    def format_usage(self) -> str:
        """Return the arguments and options that a command must have, and where the others stand."""
        if self.usage is None:
            needed = [each for each in self._actions if not each.option_strings or each.required]
            formatter = argparse.HelpFormatter(self.prog, width=sys.maxsize)
            formatter.add_usage(None, needed, (), prefix="")
            self.usage = f"{formatter.format_help().strip()} [options]".replace("%", "%%")
        return super().format_usage()

    def format_help(self) -> str:
        """Return the help: commands by heading, and examples last, where a terminal shows them."""
        self.format_usage()
        text = self._help_by_heading() if self.headings else super().format_help()
        program = self.prog.partition(" ")[0]
        lines = (f"  # {about}\n  {program} {line}" for line, about in self.examples.items())
        more = ["", "More examples: openstack-prep help COMMAND. Guides: docs/index.md."] if self.headings else []
        return "\n".join([text, "examples:", *lines, *more, ""]) if self.examples else text

    def _help_by_heading(self) -> str:
        """Return what argparse does, with a section per heading in the place of the list of commands."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in self._action_groups:
            commands = [
                group_action
                for group_action in group._group_actions
                if isinstance(group_action, argparse._SubParsersAction)
            ]
            for heading in dict.fromkeys(self.headings.values()) if commands else ():
                formatter.start_section(heading)
                formatter.add_arguments(
                    [
                        choices_action
                        for choices_action in commands[0]._choices_actions
                        if self.headings[choices_action.dest] == heading
                    ]
                )
                formatter.end_section()
            formatter.start_section(group.title)
            formatter.add_arguments(
                [group_action for group_action in group._group_actions if group_action not in commands]
            )
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        return super().parse_known_args(respell(self, sys.argv[1:] if args is None else args), namespace)

    def error(self, message: str) -> NoReturn:
        from openstack_prep.cli.usage_error import UsageError  # not needed for --version and --help

        raise UsageError(self.prog, message)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with the words that no option or argument takes, and the options that are probably meant."""
        options = [word for word in unknown if word[:1] == "-"]
        if not options and (instead := self.get_default("instead_of_others")):
            self.error(f"takes one file, not also {', '.join(unknown)}; {instead}")
        if not options and any(each.dest == "spec" for each in self._actions):
            many = (
                "for several specs, use a fleet: `openstack-prep example fleet` prints one, docs/fleet.md describes it"
            )
            self.error(f"takes one spec, not also {', '.join(unknown)}; {many}")
        shown = ((word, self._fix(word)) for word in options or unknown)
        self.error(
            "; ".join(f"{word if not options else _name(word, bool(fix))} is unknown{fix}" for word, fix in shown)
        )

    def _fix(self, word: str) -> str:
        """Return what is probably meant by an unknown word."""
        option = word.partition("=")[0]
        fix = next(list_substitutes(self, option), "") if word[:1] == "-" else ""
        return f"; {fix}" if fix else _meant(option, self._option_string_actions)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is no choice, and name the one that is probably meant (Python 3.14: suggest_on_error)."""
        if action.choices is not None and value not in action.choices:
            choices = [*map(str, action.choices)]
            fix = _meant(str(value), choices) or ("" if self.headings else f"; use {', '.join(choices)}")
            if self.headings and (instead := COMMANDS.get(str(value))):
                fix = f"; {instead}"
            if "-f" in action.option_strings and Path(str(value)).suffix:  # kubectl's -f names a file
                fix = "; write the file without an option in front of it"
            raise argparse.ArgumentError(action, f"{value} is unknown{fix}")


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """The commands of a parser: what an option collects before a command precedes what it collects after it.

    Otherwise the later ones would replace the earlier (Python 3.11, argparse.py, _SubParsersAction.__call__).
    """

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        given = vars(namespace)
        before = {name: given.pop(name) for name in ("directory", "verbose") if name in given}
        super().__call__(parser, namespace, values, option_string)
        for name, value in before.items():
            given[name] = value + given.get(name, type(value)())


def _name(word: str, is_known: bool) -> str:
    """Return an unknown option without its value, which may be a secret: of --os-password=WORD, or of -pWORD.

    ``is_known``: a similar option exists, so that the whole word is a name.
    """
    option = word.partition("=")[0]
    found = _SECRET_OPTION.match(option) or _OPTION.match(option)
    name = option if is_known or found is None else found[0]
    return name if name == option else f"{name}..."


def _meant(word: str, known: Iterable[str]) -> str:
    from openstack_prep.base.suggestion import suggest  # not needed for --version and --help

    found = suggest(word, known)
    return f"; {found}" if found else ""


def guess_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options that say how to print an error, of a command line that is not parsed yet or has mistakes."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-f", "--format", nargs="?")
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


# --- options as users of Terraform, kubectl and Ansible write them: taken where they mean the same, else explained ---
#
# Sources: Terraform 1.13, whose options have one dash (Go's package flag takes two dashes as well); kubectl 1.34,
# ``kubectl options`` and ``kubectl apply --help``; ansible-playbook 2.19, ``--help``; Python 3.11, argparse.py,
# ``_parse_optional``: of ``-out=x`` it takes ``-o`` with the value ``ut=x``.

FORMS = ("json", "yaml", "wide", "name", "text", "table", "jsonpath", "go-template", "custom-columns")
"""Forms of output that other commands take by -o and --output."""
FORMAT = "for the form of the output use --format json"
PREVIEW = {
    "apply": "for a preview use `openstack-prep plan`",
    "pre-ipi": "for a preview use `openstack-prep plan`",
    "destroy": "for a preview use `openstack-prep plan --destroy`",
    "fleet apply": "for a preview use `openstack-prep fleet plan`",
    "fleet destroy": "for a preview use `openstack-prep fleet plan --destroy`",
    "cleanup": "for a preview use --plan",
    "address-pairs sync": "for a preview use --dry-run",
}
"""By command, in the place of options for a dry run."""
DRY_RUNS = ("dry-run", "check", "diff", "n", "plan")
FILES = ("f", "filename", "file")
_ALTERNATIVES: Sequence[tuple[Sequence[str], str, str]] = (
    (("o", "output", "json", "yaml"), "--format", FORMAT),
    (("auto-approve", "approve", "assume-yes"), "--yes", "use --yes"),
    (("auto-approve", "approve", "assume-yes"), "", "leave it out: this command does not ask for confirmation"),
    (("var-file", "extra-vars", "e"), "--vars-file", "use --var NAME=VALUE or --vars-file FILE"),
    (("parallelism", "forks", "parallel", "j"), "--jobs", "use --jobs N"),
    (("cloud",), "--os-cloud", "use --os-cloud NAME"),
    (("chdir",), "--directory", "use -C DIR"),
    (("no-color", "no-colour"), "--color", "use --color never"),
    (("replace",), "--allow-replace", "use --allow-replace, which allows each replacement that the plan shows"),
    (("lock",), "--lock-timeout", "leave it out: runs of a spec always take turns; --lock-timeout 0 does not wait"),
    (("lock", "lock-timeout"), "", "leave it out: this command takes no lease, and waits for no other run"),
    (("destroy",), "", "use the command destroy"),
    (("refresh", "refresh-only"), "", "leave it out: each plan reads the cloud"),
    (("state", "state-out", "backup"), "", "leave it out: there is no state file"),
    (("input",), "", "leave it out: a command without a terminal prompts for nothing"),
    (("compact-warnings",), "", "leave it out"),
    (("n", "namespace", "A", "all-namespaces"), "", "leave it out: OpenStack has projects, and the spec names its own"),
)
INSTEAD: Mapping[str, Sequence[tuple[str, str]]] = {
    name: [(needed, fix) for listed, needed, fix in _ALTERNATIVES if name in listed]
    for names, _, _ in _ALTERNATIVES
    for name in names
}
"""By the name of an option of other commands, an option that a command must have, and what to use."""
_SHOW = "there is no state file: `openstack-prep show` lists what exists"
COMMANDS = {
    "init": "nothing needs it: `openstack-prep example minimal > prep.yaml` prints a spec to begin with",
    "fmt": "there is no formatter: `openstack-prep validate` checks a spec",
    "refresh": "each plan reads the cloud: use `openstack-prep plan`",
    "diff": "use `openstack-prep plan`",
    "output": "`openstack-prep show` lists outputs, and prints one by --reveal OUTPUT, such as floating_ip/api.address",
    "workspace": "`openstack-prep fleet` applies one spec to several projects, each with its own variables",
    "force-unlock": "use `openstack-prep unlock`",
    "state": f"{_SHOW}; docs/ansible-terraform.md says what takes the place of mv and rm",
    "taint": "delete the resource with the command openstack, and `openstack-prep apply` creates it again",
    "login": "nothing needs it: choose the entry of clouds.yaml by --os-cloud or OS_CLOUD",
    **dict.fromkeys(("list", "get", "describe", "status"), _SHOW),
    **dict.fromkeys(("create", "up", "deploy", "run"), "use `openstack-prep apply`"),
    **dict.fromkeys(("delete", "down", "rm"), "use `openstack-prep destroy`"),
}
"""By a command of Terraform, kubectl or Ansible, what to use."""


def respell(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return the words of a command line with two dashes in front of long options; those after ``--`` are left alone.

    An option of other commands ends with the parser's error, which says what to use.
    """
    known = parser._option_string_actions
    found = with_two_dashes(known, words)
    before = found[: next((at for at, each in enumerate(found) if _ends_options(parser, each)), None)]
    for word in before:
        _refuse_glued(parser, word)
    if parser._subparsers is None:  # otherwise the options of its commands are not known yet
        options = found[: found.index("--")] if "--" in found else found
        for index, word in enumerate(options):
            option, equals, value = word.partition("=")
            if option.startswith("-") and option not in known:
                _refuse(parser, option, value if equals else "".join(options[index + 1 : index + 2]), bool(equals))
    elif isinstance(parser, Parser):
        _refuse_before_command(parser, before)
    return found


def _refuse_before_command(parser: Parser, words: Sequence[str]) -> None:
    """End with the parser's error about an unknown option before the command.

    argparse takes its value for the command, and would repeat it: a secret, as in ``--os-password WORD plan``.
    """
    known = parser._option_string_actions
    for word in words:
        option = word.partition("=")[0]
        if option not in known and (option.startswith("--") or (len(option) == 2 and option[0] == "-")):
            parser.refuse([word])


def _ends_options(parser: argparse.ArgumentParser, word: str) -> bool:
    """Whether the words from here on are not options of this parser."""
    commands = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return word == "--" or any(word in command.choices for command in commands)


def _refuse_glued(parser: argparse.ArgumentParser, word: str) -> None:
    """End with the parser's error if a flag such as -v has a value glued to it, which may be a secret.

    Several flags may share a dash, and the last one may take a value.
    """
    known = parser._option_string_actions
    if word in known or not re.match("-[a-zA-Z]", word) or word.partition("=")[0].lstrip("-") in INSTEAD:
        return
    for at, letter in enumerate(word[1:], start=1):
        action = known.get(f"-{letter}")
        if action is None and at > 1:
            parser.error(f"{word[:2]}... is unknown; {word[:2]} takes no value")
        if action is None or action.nargs != 0:
            return


def with_two_dashes(known: Mapping[str, object], words: Sequence[str]) -> list[str]:
    """Return words with two dashes in front of the long options that are known.

    No value is taken for an option: argparse accepts none that begins with a dash, except numbers.
    """
    end = words.index("--") if "--" in words else len(words)
    found = list(words)
    for index, word in enumerate(words[:end]):
        option = word.partition("=")[0]
        if option[:1] == "-" and option not in known and f"-{option}" in known:
            found[index] = f"-{word}"
    return found


def _refuse(parser: argparse.ArgumentParser, option: str, value: str, attached: bool) -> None:
    """End with the parser's error if an option is one of other commands."""
    short = option[:2]
    flag = parser._option_string_actions.get(short)
    if short != "--" and flag and flag.nargs != 0:  # the rest of the word is its value, as in -omy.plan
        if attached:
            parser.error(f"{option} is unknown; write {short} VALUE, or two dashes and the whole name")
        return
    for fix in list_substitutes(parser, option, value):
        parser.error(f"{option} is unknown; {fix}")


def list_substitutes(parser: argparse.ArgumentParser, option: str, value: str = "") -> Iterator[str]:
    """Yield what to use in the place of an option of other commands, if the command has that."""
    known, command, name = parser._option_string_actions, parser.prog.partition(" ")[2], option.lstrip("-")
    fixes = (fix for needed, fix in INSTEAD.get(name, ()) if not needed or needed in known)
    if name in FILES and value in FORMS and "--format" in known:
        yield FORMAT
    elif name in FILES and any(not action.option_strings for action in parser._actions):
        yield "write the file without an option in front of it"
    elif name in DRY_RUNS and command in PREVIEW:
        yield PREVIEW[command]
    else:
        yield from fixes


def new_path(text: str) -> Path:
    """Return the file or folder that an option names for the output, as argparse reads it; not a form of output."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; name a file or folder")
    if text.partition("=")[0] in FORMS:
        raise argparse.ArgumentTypeError(f"{text} is a form of output, not a file; {FORMAT}, or write ./{text}")
    return Path(text)
