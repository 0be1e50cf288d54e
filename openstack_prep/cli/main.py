"""The command ``openstack-prep``: it parses, calls the api and prints.

Exit codes: 0 done; 1 something failed, or another run is at work on the spec; 2 wrong input or a refused
plan; 130, 143 or 129 interrupted by SIGINT (Ctrl-C), SIGTERM or SIGHUP.  ``plan --detailed-exitcode`` is
Terraform's: 0 nothing to do, 1 error, 2 changes pending.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from openstack_prep import tracing
from openstack_prep.cli.parser import DATA, Parser, exit_code, guess_options, positive
from openstack_prep.cli.streams import open_closed
from openstack_prep.core import interrupts
from openstack_prep.version import __version__

if TYPE_CHECKING:
    import logging

GROUPS = {
    "credential": "application credentials: replace those of a spec",
    "address-pairs": "allowed address pairs on the ports of a cluster's nodes",
    "kubernetes": "Kubernetes clusters: the order of their installation, and from RKE to RKE2",
    "exposures": "addresses from outside to services inside of clusters",
    "rke": "RKE2 and RKE clusters: their files, and the connections between them",
    "fleet": "many projects in many clouds: specs with variables times targets",
}
COMMANDS = {
    "project.verbs": {
        "plan": "show what apply would do, or destroy",
        "apply": "apply the spec",
        "destroy": "delete only resources managed by this spec",
        "show": "show which resources of a spec exist, with ids and addresses",
    },
    "project.validate": {"validate": "check a spec without a cloud; exit code 2 if it is wrong"},
    "project.audit": {"audit": "report drift that no spec declares: resources, rules, roles, address pairs (exit 1)"},
    "project.graph": {"graph": "print what needs what in a spec, as a picture (SVG), or for Mermaid or Graphviz"},
    "project.topology": {"topology": "print the networks of a spec, a cluster or a project, with what is on them"},
    "project.support_bundle": {
        "support-bundle": "write versions, a spec and its plan without secrets, and the last run's requests to one file"
    },
    "project.export": {"export": "print an existing project as a spec; planning it changes nothing"},
    "openshift.check": {"check": "run pre-installation checks"},
    "openshift.pre_ipi": {"pre-ipi": "before openshift-install: apply the spec and check its install-config"},
    "openshift.ipi": {"ipi": "run the installer with pre-checks, floating IPs and address pairs"},
    "openshift.post_ipi": {"post-ipi": "after openshift-install: attach floating IPs and add allowed address pairs"},
    "openshift.wait_for": {"wait-for": "wait until the installer has created a virtual port (exit 1 on timeout)"},
    "openshift.verify": {"verify": "verify API and console connectivity, link by link (exit 1 on failure)"},
    "openshift.cleanup": {
        "cleanup": "delete what is left of a cluster, after openshift-install destroy or instead of it"
    },
    "project.unlock": {"unlock": "end the lease of a dead run, so that other runs can change the spec's resources"},
    "openshift.tools": {"tools": "download openshift-install, oc and kubectl, and verify them"},
    "openshift.names": {"names": "print the addresses of api and *.apps of a cluster, or write them"},
    "kubernetes.address_pairs": {
        "address-pairs sync": (
            "allow addresses on the ports of a cluster's nodes, and delete managed pairs that are no longer declared"
        )
    },
    "kubernetes.checklist": {
        "kubernetes checklist": "print the steps from a spec to running clusters, and what is normal at each step"
    },
    "kubernetes.convert": {
        "kubernetes convert": "convert RKE's cluster.yml to files of RKE2, and list how workloads move to a new cluster"
    },
    "exposures.show": {
        "exposures show": "show which outside address leads to what, and the state of each hop (exit 1 on failure)"
    },
    "exposures.convert": {
        "exposures convert": (
            "convert Services with externalIPs to MetalLB, Cilium or kube-vip, and prove that each address is kept"
        )
    },
    "kubernetes.rke": {
        "rke check": "find unknown keys and invalid values in RKE2's config.yaml or RKE's cluster.yml, by line"
    },
    "kubernetes.rke_render": {
        "rke render": "write the files of a spec's clusters, or of a cluster on any stack, from existing stacks"
    },
    "kubernetes.rke_mesh": {
        "rke mesh": (
            "check the traffic that must pass between the clusters of a mesh, and print fixes (exit 1 on failure)"
        )
    },
    "fleet.validate": {
        "fleet validate": "check a fleet and all of its specs without a cloud; exit code 2 if it is wrong"
    },
    "fleet.verbs": {
        "fleet plan": "show what fleet apply would do to each target, or destroy",
        "fleet apply": "apply the spec of each target, in waves; an interrupted run is continued",
        "fleet destroy": "delete only resources managed by the specs of the targets",
    },
    "fleet.reading": {
        "fleet audit": "report drift of each target that no spec declares; exit code 1 if there is any",
        "fleet export": "write the project of each target as a spec",
    },
    "project.credential": {"credential rotate": "create new application credentials, and delete the old ones"},
    "reference.explain": {"explain": "explain the code of a diagnostic, or list all codes"},
    "reference.writing": {
        "schema": "print the JSON Schema of a spec, for your editor, or that of the output",
        "example": "print a ready-made spec, or list them",
    },
    "reference.completion": {"completion": "print a completion script for your shell (needs shtab)"},
}
"""Commands and their help, in its order, by the module that adds them to the parser and is imported only for that."""
TEXTS = {name: text for texts in COMMANDS.values() for name, text in texts.items()}

DEFAULTS = {"debug": False, "color": "auto", "ids": False, "format": "text", "os_cloud": None, "jobs": 8}
"""Of the options that several commands have."""
PLAIN, PRINTING, WORK = ("debug", "color"), ("debug", "color", "format"), tuple(DEFAULTS)
"""Which of them a command has: any; one that prints data; one that reads a cloud."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    open_closed()
    try:
        with interrupts.raised():
            return _main(arguments)
    finally:
        gc.unfreeze()  # a program that calls this again would keep the connections of each command for ever


def _main(arguments: Sequence[str] | None) -> int:
    options: argparse.Namespace | None = None
    try:
        options = _parsed(arguments)
        _log(options)
        with _recorded(options) as ended:
            code = tracing.of_command(options.called, lambda: int(options.run(options)))
            ended(code)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        from openstack_prep.cli.running import drop_output

        drop_output()
        return 1
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a traceback helps nobody but its authors
        from openstack_prep.cli.running import fail  # not needed for --version and --help

        code = fail(options or guess_options(arguments), error)
        if options is None:
            raise SystemExit(code) from None  # as argparse exits after --help
        return code


def _recorded(options: argparse.Namespace) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    """Keep the requests of a command that has a cloud, except of the one that shows those of the last command."""
    if options.takes != WORK or options.called == "support-bundle":
        return contextlib.nullcontext(lambda code: None)
    from openstack_prep.cli.running import explained
    from openstack_prep.reports.last_run import recorded

    return recorded(options.called, lambda error: exit_code(options, explained(error)))


def log_notes(*, debug: bool) -> None:
    """Print the notes of a run, such as which other run it waits for, in a program that has a log of its own."""
    import logging

    notes = logging.getLogger("openstack_prep")
    notes.handlers[:] = []
    if not debug:
        _log(argparse.Namespace(debug=False))
    notes.propagate = debug
    notes.setLevel(logging.NOTSET if debug else logging.WARNING)


def _log(options: argparse.Namespace) -> None:
    """Log requests with --debug, otherwise only notes."""
    import logging  # not needed for --version and --help, which end before

    if options.debug:
        # requests that hold a secret are never logged; keystoneauth hides tokens itself
        requests = logging.StreamHandler(sys.stderr)
        requests.setFormatter(_formatter("%(asctime)s %(name)s %(message)s"))
        logging.basicConfig(level=logging.DEBUG, handlers=[requests])
    else:
        notes = logging.StreamHandler()  # such as which run is waited for
        notes.setFormatter(_formatter("openstack-prep: %(message)s"))
        logging.getLogger("openstack_prep").handlers[:] = [notes]
    logging.getLogger("keystoneauth").addHandler(logging.NullHandler())  # our errors report what it warns of


def _formatter(form: str) -> logging.Formatter:
    """Return what formats messages for a terminal: answers and names contain what others wrote."""
    import logging

    from openstack_prep.base.style import indented

    class Visible(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return indented(super().format(record))

    return Visible(form)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command, global ones with their defaults."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = build_parser(words)
    options, unknown = parser.parse_known_args(words, argparse.Namespace(build_parser=build_parser))
    if unknown:
        options.parser.refuse(unknown)
    for name, value in DEFAULTS.items():
        if name not in options:
            setattr(options, name, value)
        elif name not in options.takes:
            parser.error(f"--{name.replace('_', '-')} does not apply to this command; leave it out")
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

    def add(name: str, text: str, **options: Any) -> None:
        if name in names:
            group.add_argument(f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=text, **options)

    overrides = "overrides the spec, metadata.json and OS_CLOUD"
    add("os_cloud", f"entry of clouds.yaml; {overrides}", metavar="NAME")
    add("jobs", "concurrent requests (8)", type=positive, metavar="N")
    choices = forms or ("text", *DATA)
    add("format", f"how to print ({choices[0]})", choices=choices)
    add("ids", "show ids in the text, too (json and yaml always hold them)", action="store_true")
    add(
        "color",
        "colours in the text (auto: on a terminal, unless NO_COLOR is set)",
        choices=("auto", "always", "never"),
    )
    add("debug", "log every request that holds no secret, and show tracebacks", action="store_true")


def build_parser(words: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser; for the words of a command line with the options of only those commands that it names."""
    parser = Parser(
        prog="openstack-prep",
        description="Take an OpenStack project from nothing to ready for a cluster, and complete its installation.",
        epilog=(__doc__ or "").partition("\n\n")[2],
    )
    parser.add_argument("--version", action="version", version=f"openstack-prep {__version__}")
    add_global(parser, WORK)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    groups = {"": commands}

    def command(
        name: str,
        run: Callable[[argparse.Namespace], int],
        cloud: bool = True,
        data: bool = False,
        forms: Sequence[str] = (),
    ) -> argparse.ArgumentParser:
        takes = WORK if cloud else PRINTING if data else PLAIN
        group, _, last = name.rpartition(" ")  # "rke check" is one of a group
        if group not in groups:
            shared = commands.add_parser(group, help=GROUPS[group], description=GROUPS[group])
            add_global(shared, WORK)
            groups[group] = shared.add_subparsers(required=True, metavar="COMMAND")
        added = groups[group].add_parser(last, help=TEXTS[name], description=TEXTS[name])
        add_global(added, takes, forms)
        added.set_defaults(parser=added, run=run, takes=takes, forms=forms, called=name)
        return added

    for module, texts in COMMANDS.items():
        shown = dict.fromkeys(name.partition(" ")[0] for name in texts)
        if words is None or not shown.keys().isdisjoint(words):
            importlib.import_module(f"openstack_prep.cli.{module}").add(command)
            continue
        for name in shown:  # in the help only
            if name not in commands.choices:
                commands.add_parser(name, help=GROUPS.get(name) or texts[name], add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
