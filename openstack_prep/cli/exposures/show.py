"""``exposures show``: which outside address leads to what, and the state of each hop on the way."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.running import no_garbage, open_spec, print_result


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("exposures show", _run)
    parser.add_argument("spec", type=Path, metavar="SPEC", help="YAML file")
    parser.add_argument("--hosts", type=Path, metavar="FILE", help="hosts file to read before the resolver")


def _run(options: argparse.Namespace) -> int:
    with no_garbage():
        from openstack_prep.verbs import exposures

    cloud, spec = open_spec(options, options.spec)
    report = exposures.look(cloud, spec, path=str(options.spec), hosts=options.hosts, jobs=options.jobs)
    print_result(options, report, report.data())
    return 0 if report.ok else 1
