"""``credential rotate``: new application credentials in place of those in use."""

from __future__ import annotations

import argparse
import sys

from openstack_prep.base.style import visible
from openstack_prep.cli.output import reading
from openstack_prep.cli.running import carry_out, open_spec
from openstack_prep.resources.credentials.application_credential import RotatedKeepingOld
from openstack_prep.verbs import rotation

COPIES = """\
openstack-prep: clouds.yaml holds the new credential. An OpenShift cluster keeps a copy of its own, in the secret
  openstack-credentials of its namespace kube-system: replace the entry there, too."""
UNTIL = "Until then it cannot reach OpenStack: the old credential is deleted. --keep-old keeps it."
KEPT = "The old credential still works, as entry {name}-old. When nothing uses it, remove the entry and run apply."


def run(options: argparse.Namespace) -> int:
    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        plan = rotation.plan_rotation(
            cloud,
            spec,
            credential=options.name,
            keep_old=options.keep_old,
            allow_replace=options.allow_replace,
            jobs=options.jobs,
        )
    code = carry_out(options, cloud, plan)
    if code == 0:
        kept = [step.resource.cloud for step in plan.pending if isinstance(step.resource, RotatedKeepingOld)]
        print(
            visible("\n  ".join([COPIES, *(KEPT.format(name=name) for name in kept)] if kept else [COPIES, UNTIL])),
            file=sys.stderr,
        )
    return code
