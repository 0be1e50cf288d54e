"""``rke mesh``: the traffic that must pass between clusters that Cilium joins, and what blocks it."""

from __future__ import annotations

import argparse

from openstack_prep.cli.of_spec import fix_options
from openstack_prep.cli.output import print_result
from openstack_prep.cli.running import open_spec
from openstack_prep.kubernetes import clusters


def run(options: argparse.Namespace) -> int:
    cloud, spec = open_spec(options, options.spec)
    path, more = str(options.spec), fix_options(options, has_plain_secrets=spec.has_plain_secrets)
    found = clusters.examine_mesh(cloud, spec, path=path, options=more, jobs=options.jobs)
    print_result(options, found, found.data())
    return 0 if found.ok else 1
