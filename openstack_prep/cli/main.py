"""The command ``openstack-prep``: it parses, calls the api and prints.

Exit codes: 0 done; 1 something failed, or another run is at work on the spec; 2 wrong input or a refused
plan; 130, 143 or 129 interrupted by SIGINT (Ctrl-C), SIGTERM or SIGHUP.  ``plan --detailed-exitcode`` is
Terraform's: 0 nothing to do, 1 error, 2 changes pending.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from openstack_prep.cli import completion, explain, writing
from openstack_prep.cli.kubernetes import address_pairs, rke, rke_mesh, rke_render
from openstack_prep.cli.openshift import check, cleanup, ipi, names, post_ipi, pre_ipi, tools, verify, wait_for
from openstack_prep.cli.parser import DATA, Parser, UsageError, guess_options
from openstack_prep.cli.project import audit, credential, export, unlock, validate, verbs
from openstack_prep.cli.running import drop_output, fail
from openstack_prep.core import interrupts
from openstack_prep.version import __version__

GROUPS = {
    "credential": "application credentials: replace those of a spec",
    "address-pairs": "allowed address pairs on the ports of a cluster's nodes",
    "rke": "RKE2 and RKE clusters: their files, and the connections between them",
}
COMMANDS = (
    verbs,
    validate,
    audit,
    export,
    check,
    pre_ipi,
    ipi,
    post_ipi,
    wait_for,
    verify,
    cleanup,
    unlock,
    tools,
    names,
    address_pairs,
    rke,
    rke_render,
    rke_mesh,
    credential,
    explain,
    writing,
    completion,
)

DEFAULTS = {"debug": False, "color": "auto", "ids": False, "format": "text", "os_cloud": None, "jobs": 8}
"""Of the options that several commands have."""
PLAIN, PRINTING, WORK = ("debug", "color"), ("debug", "color", "format"), tuple(DEFAULTS)
"""Which of them a command has: any; one that prints data; one that reads a cloud."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    with interrupts.raised():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    options: argparse.Namespace | None = None
    try:
        options = _parsed(arguments)
        _log(options)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        drop_output()
        return 1
    except UsageError as error:
        raise SystemExit(fail(guess_options(arguments), error)) from None  # as argparse exits after --help
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a traceback helps nobody but its authors
        return fail(options or guess_options(arguments), error)


def _log(options: argparse.Namespace) -> None:
    """Log requests with --debug, otherwise only notes."""
    if options.debug:
        # requests that hold a secret are never logged; keystoneauth hides tokens itself
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    else:
        notes = logging.StreamHandler()  # such as which run is waited for
        notes.setFormatter(logging.Formatter("openstack-prep: %(message)s"))
        logging.getLogger("openstack_prep").handlers[:] = [notes]
    logging.getLogger("keystoneauth").addHandler(logging.NullHandler())  # our errors report what it warns of


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command, global ones with their defaults."""
    parser = build_parser()
    options = parser.parse_args(arguments, argparse.Namespace(parser=parser))
    for name, value in DEFAULTS.items():
        if name not in options:
            setattr(options, name, value)
        elif name not in options.takes:
            parser.error(f"--{name.replace('_', '-')} does not apply to this command; leave it out")
    return options


def _add_global(parser: argparse.ArgumentParser, names: Collection[str]) -> None:
    """Add global options.  They have no default: that of a command would override what is given before it."""
    group = parser.add_argument_group("global options, before or after the command")

    def add(name: str, text: str, **options: Any) -> None:
        if name in names:
            group.add_argument(f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=text, **options)

    overrides = "overrides the spec, metadata.json and OS_CLOUD"
    add("os_cloud", f"entry of clouds.yaml; {overrides}", metavar="NAME")
    add("jobs", "concurrent requests (8)", type=_positive, metavar="N")
    add("format", "how to print (text)", choices=("text", *DATA))
    add("ids", "show ids in the text, too (json and yaml always hold them)", action="store_true")
    add(
        "color",
        "colours in the text (auto: on a terminal, unless NO_COLOR is set)",
        choices=("auto", "always", "never"),
    )
    add("debug", "log every request that holds no secret, and show tracebacks", action="store_true")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="openstack-prep",
        description="Take an OpenStack project from nothing to ready for a cluster, and complete its installation.",
        epilog=(__doc__ or "").partition("\n\n")[2],
    )
    parser.add_argument("--version", action="version", version=f"openstack-prep {__version__}")
    _add_global(parser, WORK)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    groups = {"": commands}

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, cloud: bool = True, data: bool = False
    ) -> argparse.ArgumentParser:
        takes = WORK if cloud else PRINTING if data else PLAIN
        group, _, last = name.rpartition(" ")  # "rke check" is one of a group
        if group not in groups:
            shared = commands.add_parser(group, help=GROUPS[group], description=GROUPS[group])
            _add_global(shared, WORK)
            groups[group] = shared.add_subparsers(required=True, metavar="COMMAND")
        added = groups[group].add_parser(last, help=text, description=text)
        _add_global(added, takes)
        added.set_defaults(run=run, takes=takes)
        return added

    for each in COMMANDS:
        each.add(command)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 256")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
