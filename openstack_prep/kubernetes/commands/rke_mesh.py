"""``rke mesh``: the traffic that must pass between clusters that Cilium joins, and what blocks it."""

from __future__ import annotations

import argparse

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_spec
from openstack_prep.cli.running import no_garbage, open_spec, print_result


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("rke mesh", _run)
    add_spec(parser, "YAML file")


def _run(options: argparse.Namespace) -> int:
    with no_garbage():
        from openstack_prep.kubernetes import clusters

    cloud, spec = open_spec(options, options.spec)
    found = clusters.examine_mesh(cloud, spec, path=str(options.spec), jobs=options.jobs)
    print_result(options, found, found.data())
    return 0 if found.ok else 1
