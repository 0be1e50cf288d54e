"""``unlock``: take the lease on a spec from a run that will not come back."""

from __future__ import annotations

import argparse

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.output import print_result, say
from openstack_prep.cli.running import confirm
from openstack_prep.cli.spec import read_of
from openstack_prep.cloud import lease
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.spec import Spec
from openstack_prep.verbs import api


def run(options: argparse.Namespace) -> int:
    if (options.spec is None) == (options.name is None):
        raise ConfigError("unlock: give either a SPEC or --name NAME")
    seen = api.look_for_lease(*_spec_of(options))
    if seen.holder is None:
        print_result(options, f"no run of spec {seen.spec} holds a lease", {"spec": seen.spec, "holder": None})
        return 0
    say(f"spec {seen.spec} {'was' if seen.ended else 'is being'} applied by {seen.holder}")
    if not options.yes and not seen.ended:
        confirm("If that run still lives, two runs will then change the same things. Type yes to unlock: ", "yes")
    lease.unlock(seen)
    print_result(options, f"spec {seen.spec} is unlocked", {"spec": seen.spec, "holder": str(seen.holder)})
    return 0


def _spec_of(options: argparse.Namespace) -> tuple[Cloud, Spec]:
    if options.spec is None:
        spec = Spec(options.name, ())
    else:  # no more than says where the lease lies: no secret, nothing that is generated
        spec = read_of(options, options.spec, ("name", "clouds", "project"))
        if not spec.resources:  # in the project of its resources
            spec = read_of(options, options.spec, needs_secrets=False)
    return connect(options.os_cloud or spec.clouds.admin), spec
