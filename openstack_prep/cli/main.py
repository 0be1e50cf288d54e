"""The command ``openstack-prep``: it parses, calls the api and prints.

Exit codes: 0 done; 1 something failed, or another run is at work on the spec; 2 wrong input or a refused
plan; 130, 143 or 129 interrupted by SIGINT (Ctrl-C), SIGTERM or SIGHUP.  ``plan --detailed-exitcode`` is
Terraform's: 0 nothing to do, 1 error, 2 changes pending.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

from openstack_prep.base.errors import PrepError
from openstack_prep.cli import explain, writing
from openstack_prep.cli.kubernetes import address_pairs, rke, rke_mesh, rke_render
from openstack_prep.cli.openshift import check, cleanup, ipi, names, post_ipi, pre_ipi, tools, verify, wait_for
from openstack_prep.cli.project import audit, credential, export, unlock, verbs
from openstack_prep.cli.running import interrupted_by
from openstack_prep.core import interrupts
from openstack_prep.version import __version__

GROUPS = {
    "credential": "application credentials: give a spec new ones",
    "address-pairs": "addresses that ports may use besides their own: keep them in step",
    "rke": "RKE and RKE2 clusters: their files, and what must get through between them",
}
COMMANDS = (
    verbs,
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
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    with interrupts.raised():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    if options.debug:
        # requests that hold a secret are never logged; keystoneauth hides tokens itself
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    else:
        notes = logging.StreamHandler()  # such as who is waited for
        notes.setFormatter(logging.Formatter("openstack-prep: %(message)s"))
        logging.getLogger("openstack_prep").handlers[:] = [notes]
    logging.getLogger("keystoneauth").addHandler(logging.NullHandler())  # what it warns of, our errors say
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except PrepError as error:
        if options.debug:
            logging.getLogger("openstack_prep").debug("", exc_info=error)
        print(f"openstack-prep: {error}", file=sys.stderr)
        return 1 if getattr(options, "detailed_exitcode", False) else error.exit_code
    except KeyboardInterrupt as error:
        return interrupted_by(interrupts.number_of(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the exit
        return 1
    except Exception as error:  # nobody but us can read a traceback
        if options.debug:
            raise
        what = f"{type(error).__name__}: {error}"
        print(f"openstack-prep: internal error: {what}; --debug shows where; please report it", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="openstack-prep",
        description="Take an OpenStack project from nothing to ready for a cluster; mend what is left once it stands.",
        epilog=(__doc__ or "").partition("\n\n")[2],
    )
    parser.add_argument("--version", action="version", version=f"openstack-prep {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    plain = argparse.ArgumentParser(add_help=False)
    plain.add_argument("--debug", action="store_true", help="log every request without a secret, and show tracebacks")
    printing = argparse.ArgumentParser(add_help=False, parents=[plain])
    printing.add_argument("--format", choices=("text", "json", "yaml"), default="text", help="how to print (text)")
    work = argparse.ArgumentParser(add_help=False, parents=[printing])
    stronger = "stronger than the spec's, metadata.json's and OS_CLOUD"
    work.add_argument("--os-cloud", metavar="NAME", help=f"entry of clouds.yaml; {stronger}")
    work.add_argument("--jobs", type=_positive, default=8, metavar="N", help="requests at a time (8)")

    groups = {"": commands}

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, cloud: bool = True, data: bool = False
    ) -> argparse.ArgumentParser:
        parent = work if cloud else printing if data else plain
        group, _, last = name.rpartition(" ")  # "rke check" is one of a group
        if group not in groups:
            shared = commands.add_parser(group, help=GROUPS[group], description=GROUPS[group])
            groups[group] = shared.add_subparsers(required=True, metavar="COMMAND")
        added = groups[group].add_parser(last, help=text, description=text, parents=[parent])
        added.set_defaults(run=run)
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
