"""``export``: an existing project as a spec."""

from __future__ import annotations

import argparse

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import connect_chosen
from openstack_prep.cli.reading import reading


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("export", _run)
    parser.add_argument("--project", metavar="NAME", help="the project (default: that of the connection)")
    parser.add_argument("--project-domain", metavar="NAME", default="Default", help="its domain (Default)")
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help="only this kind, such as network")
    parser.add_argument("--name", default="*", metavar="PATTERN", help="only matching names, such as 'web-*'")
    parser.add_argument("--tag", metavar="SPEC", help="only resources that the spec of this name manages")


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.cli.running import print_result
    from openstack_prep.resources.identity.project import Project
    from openstack_prep.verbs.export import export, refuse_unknown_kinds

    refuse_unknown_kinds(options.kind)
    project = Project(name=options.project, domain=options.project_domain) if options.project else None
    cloud = connect_chosen(options, None).authenticate()
    with reading(options):
        found = export(cloud, project, kinds=options.kind, name=options.name, tag=options.tag, jobs=options.jobs)
    text = str(found).rstrip()
    print_result(options, text, {"spec": dict(found.sections), "left_out": list(found.unsaid)})
    return 0
