"""``graph``: what needs what in a spec, as text for Mermaid or Graphviz, or as a picture."""

from __future__ import annotations

import argparse

from openstack_prep.base.style import visible
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import open_spec
from openstack_prep.cli.spec import read_spec
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.pictures.graph import Graph, draw
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.verbs import api


def run(options: argparse.Namespace) -> int:
    graph = _of_plan(options) if options.plan else _of_spec(options)
    if options.format == "svg":
        print(visible(draw(graph, f"What the resources of {options.spec.name} need")))
    else:
        print(visible(graph.dot() if options.format == "dot" else graph.mermaid()))
    return 0


def _of_spec(options: argparse.Namespace) -> Graph:
    spec = read_spec(options, options.spec, needs_secrets=False)
    refuse_mistakes(spec)
    return Graph.of(resolve_spec(spec, NoCloud.as_cloud(), for_apply=False).resources)


def _of_plan(options: argparse.Namespace) -> Graph:
    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        plan = api.plan(cloud, spec, jobs=options.jobs)
    return Graph.of([step.resource for step in plan.steps], plan)
