"""The command ``openstack-prep``: it parses, calls the api and prints.

Exit codes: 0 done; 1 something failed, or another run is at work on the spec; 2 wrong input or a refused
plan; 130, 143 or 129 interrupted by SIGINT (Ctrl-C), SIGTERM or SIGHUP.  ``plan --detailed-exitcode`` is
Terraform's: 0 nothing to do, 1 error, 2 changes pending.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import resource
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from openstack_prep import extensions
from openstack_prep.cli import Run
from openstack_prep.cli.extension import FIRST_HEADING, LAST_HEADING
from openstack_prep.cli.parser import DATA, DEFAULTS, PLAIN, PRINTING, WORK, Parser, guess_options, positive
from openstack_prep.core import interrupts
from openstack_prep.version import __version__

PROGRAM = "openstack-prep"
FIRST = {
    "example minimal > prep.yaml": "print a spec to begin with, and edit it",
    "plan prep.yaml": "show what apply would create",
    "apply prep.yaml": "create it, after confirmation",
}
"""Examples of the whole command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    forbid_core_dumps()
    open_closed()
    print_any_character()
    try:
        with interrupts.raised():
            return _main(arguments)
    finally:
        gc.unfreeze()  # a program that calls this again would keep the connections of each command for ever


def _main(arguments: Sequence[str] | None) -> int:
    options: argparse.Namespace | None = None
    with contextlib.ExitStack() as folders:
        try:
            options = _parsed(arguments)
            from openstack_prep.cli.work import do_work, enter  # not needed for --version and --help, which end before

            for folder in options.directory:
                enter(folder, folders)
            return do_work(options)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a traceback helps nobody but its authors
            from openstack_prep.cli.output import fail  # as above

            code = fail(options or guess_options(arguments), error)
            if options is None:
                raise SystemExit(code) from None  # as argparse exits after --help
            return code


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command, global ones with their defaults."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = build_parser(words)
    if any("\0" in word for word in words):  # of a caller in Python: the system's command lines cannot have it
        parser.error("an argument contains U+0000; remove it")
    options, unknown = parser.parse_known_args(words, argparse.Namespace(build_parser=build_parser))
    if unknown:
        options.parser.refuse(unknown)
    if "run" not in options:  # an error in a script, whose variable for the command may be empty
        is_terminal = sys.stdout.isatty()
        options.parser.print_help(sys.stdout if is_terminal else sys.stderr)
        raise SystemExit(0 if is_terminal else 2)
    for name, value in DEFAULTS.items():
        if name not in options:
            setattr(options, name, value)
        elif name not in options.takes:
            parser.error(f"--{name.replace('_', '-')} does not apply to this command; leave it out")
    options.debug = options.debug or options.verbose > 1
    if options.forms and options.format not in ("text", *options.forms):
        parser.error(f"--format {options.format} does not apply to this command; use {' or '.join(options.forms)}")
    return options


def add_global(
    parser: argparse.ArgumentParser,
    names: Collection[str],
    forms: Sequence[str] = (),
    title: str = "global options, before or after the command",
) -> None:
    """Add global options.  They have no default: that of a command would override what is given before it.

    ``forms`` are the values of --format instead of text and data; the first is the default.
    """
    group = parser.add_argument_group(title)

    def add(name: str, text: str, *short: str, **options: Any) -> None:
        if name in names:
            words = (*short, f"--{name.replace('_', '-')}")
            group.add_argument(*words, default=argparse.SUPPRESS, help=text, **options)

    overrides = "overrides the spec, metadata.json and OS_CLOUD"
    add("os_cloud", f"entry of clouds.yaml; {overrides}", metavar="NAME")
    add("jobs", "concurrent requests (8)", type=positive, metavar="N")
    choices = forms or ("text", *DATA)
    add("format", f"output format ({choices[0]})", "-f", choices=choices)
    add("ids", "show ids in the text, too (json and yaml always hold them)", action="store_true")
    add(
        "color",
        "colours in the text (auto: on a terminal, unless NO_COLOR is set)",
        choices=("auto", "always", "never"),
    )
    add(
        "directory",
        "change to this folder first, as git -C does; repeatable",
        "-C",
        action="append",
        type=Path,
        metavar="DIR",
    )
    add(
        "quiet",
        "print no progress and no notes, but results, warnings, errors and what the run waits for",
        "-q",
        action="store_true",
    )
    add("verbose", "log one line per request; -vv is --debug", "-v", action="count")
    add("debug", "log every request that holds no secret, and show tracebacks", action="store_true")


def build_parser(words: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser; for the words of a command line with the options of only those commands that it names."""
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND [options]",
        description="Take an OpenStack project from nothing to ready for a cluster, and complete its installation.",
        epilog=(__doc__ or "").partition("\n\n")[2],
    )
    parser.set_defaults(parser=parser)
    parser.examples = FIRST
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    add_global(parser, WORK)
    commands = parser.add_subparsers(metavar="COMMAND", prog=PROGRAM)

    added = _extensions(words)
    helps = extensions.commands(added)
    group_helps = {name: text for extension in added for name, text in extension.groups.items()}
    groups = {"": commands}
    between = sorted({each.heading for each in helps.values()} - {FIRST_HEADING, LAST_HEADING})
    for heading in (FIRST_HEADING, *between, LAST_HEADING):
        names = (name.partition(" ")[0] for name, each in helps.items() if each.heading == heading)
        parser.headings |= dict.fromkeys(names, heading)

    def command(
        name: str,
        run: Run,
        cloud: bool = True,
        data: bool = False,
        forms: Sequence[str] = (),
    ) -> argparse.ArgumentParser:
        takes = WORK if cloud else PRINTING if data else PLAIN
        group, _, last = name.rpartition(" ")  # "rke check" is one of a group
        if group not in groups:
            shared = commands.add_parser(group, help=group_helps[group], description=group_helps[group])
            shared.usage = f"{PROGRAM} {group} COMMAND [options]"
            shared.set_defaults(parser=shared)
            add_global(shared, WORK)
            groups[group] = shared.add_subparsers(metavar="COMMAND", prog=f"{PROGRAM} {group}")
        text = helps[name].text
        found = groups[group].add_parser(last, help=text, description=text)
        found.examples = helps[name].examples
        add_global(found, takes, forms)
        found.set_defaults(parser=found, run=run, takes=takes, forms=forms, called=name)
        return found

    for module, texts in (each for extension in added for each in extension.commands.items()):
        shown = dict.fromkeys(name.partition(" ")[0] for name in texts)
        if words is None or not shown.keys().isdisjoint(words):
            extensions.load(module if ":" in module else f"{module}:add")(command)
            continue
        for name in shown:  # in the help only
            if name not in commands.choices:
                commands.add_parser(name, help=group_helps.get(name) or helps[name].text, add_help=False)
    return parser


def _extensions(words: Collection[str] | None) -> tuple[extensions.Extension, ...]:
    """Return the extensions whose commands a command line may name: the search for others takes a while."""
    names = (name for extension in extensions.foundation() for texts in extension.commands.values() for name in texts)
    own = {"--version", *names}  # but no group, such as credential: other extensions may add commands to it
    return extensions.foundation() if next(iter(words or ()), "") in own else extensions.installed()


def forbid_core_dumps() -> None:
    """Have the system write no image of the memory when this process crashes: it holds secrets.

    The programs that this one starts inherit it, as they get secrets, too.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


# --- standard streams that the caller has closed, as by ``>&-`` of a shell --------------

MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_closed() -> None:
    """Let each closed stream read nothing and print nowhere.

    Otherwise the next file that is opened gets the number of the stream, and whatever a library prints ends up in it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) < len(MODES):
        os.set_inheritable(number, True)  # as programs that we start expect
    os.close(number)
    for name, mode in MODES.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the process runs


def print_any_character() -> None:
    """Let no name end a run in its middle because the encoding of a stream lacks a character.

    A terminal shows such a character by its number. Files and pipes get UTF-8, in which commands read specs.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
