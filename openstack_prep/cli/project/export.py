"""``export``: an existing project as a spec."""

from __future__ import annotations

import argparse

from openstack_prep.cli.output import print_result, reading
from openstack_prep.cli.running import connect_chosen
from openstack_prep.resources.identity.project import Project
from openstack_prep.verbs.export import export, refuse_unknown_kinds


def run(options: argparse.Namespace) -> int:
    refuse_unknown_kinds(options.kind)
    project = Project(name=options.project, domain=options.project_domain) if options.project else None
    cloud = connect_chosen(options, None).authenticate()
    with reading(options):
        found = export(
            cloud,
            project,
            kinds=options.kind,
            name=options.name,
            tag=options.tag,
            adopt=options.adopt,
            jobs=options.jobs,
        )
    text = str(found).rstrip()
    print_result(options, text, {"spec": dict(found.sections), "left_out": list(found.unsaid)})
    return 0
