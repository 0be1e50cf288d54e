"""``approve``: let one apply carry out a saved plan that somebody else proposes, such as an AI assistant."""

from __future__ import annotations

import argparse
import contextlib
import sys

from openstack_prep.base import programs
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.style import visible
from openstack_prep.cli.output import print_result, style_of
from openstack_prep.cli.project.verbs import open_saved
from openstack_prep.cli.running import confirm
from openstack_prep.verbs import approval


def run(options: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError("approve: not a terminal; a person must read the plan and type its id")
    # whoever proposes the plan may have written the spec: nothing of it runs before it was read
    with contextlib.nullcontext() if options.allow_programs else programs.switched_off():
        saved, _, plan, _ = open_saved(options)
    if not plan:
        raise ConfigError(f"approve: {saved.path} has nothing left to do; no approval is needed")
    print(visible(plan.render(style_of(options, sys.stderr))), file=sys.stderr)
    confirm(f"Approve this plan for one apply within an hour? Type its id {saved.id}: ", saved.id)
    expires = approval.grant(saved)
    data = {"plan": saved.id, "expires": f"{expires:%Y-%m-%dT%H:%M:%SZ}"}
    print_result(options, f"approved plan {saved.id} for one apply until {data['expires']}", data)
    return 0
