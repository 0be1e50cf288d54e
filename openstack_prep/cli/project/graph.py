"""``graph``: what needs what in a spec, as text for Mermaid or Graphviz, or as a picture."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from openstack_prep.base.style import visible
from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_spec
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import no_garbage, open_spec, read_spec

if TYPE_CHECKING:
    from openstack_prep.pictures.graph import Graph

FORMS = ("mermaid", "dot", "svg")


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("graph", _run, forms=FORMS)
    parser.add_argument("--plan", action="store_true", help="read the cloud, and colour what apply would do")
    add_spec(parser)


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.pictures.graph import draw

    graph = _of_plan(options) if options.plan else _of_spec(options)
    if options.format == "svg":
        print(visible(draw(graph, f"What the resources of {options.spec.name} need")))
    else:
        print(visible(graph.dot() if options.format == "dot" else graph.mermaid()))
    return 0


def _of_spec(options: argparse.Namespace) -> Graph:
    with no_garbage():
        from openstack_prep.pictures.graph import Graph
        from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
        from openstack_prep.spec.targets import NoCloud

    spec = read_spec(options, options.spec, needs_secrets=False)
    refuse_mistakes(spec)
    return Graph.of(resolve_spec(spec, NoCloud.as_cloud(), for_apply=False).resources)


def _of_plan(options: argparse.Namespace) -> Graph:
    with no_garbage():
        from openstack_prep.pictures.graph import Graph
        from openstack_prep.verbs import api

    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        plan = api.plan(cloud, spec, jobs=options.jobs)
    return Graph.of([step.resource for step in plan.steps], plan)
