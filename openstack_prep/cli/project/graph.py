"""``graph``: the dependency graph of a spec, as text for Mermaid or Graphviz, or as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.key import Key
from openstack_prep.base.style import visible
from openstack_prep.cli.output import reading
from openstack_prep.cli.running import open_spec
from openstack_prep.cli.spec import read_spec
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.pictures.graph import Graph, draw
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.spec.targets import limit_to
from openstack_prep.verbs import api


def run(options: argparse.Namespace) -> int:
    graph = _of_plan(options) if options.plan else _of_spec(options)
    shown = {name.partition("/")[0] for name in graph.names}
    for kind in options.kind:
        if kind not in shown:
            raise ConfigError(
                f"--kind {kind!r}: the spec has no resource of this kind; plan --all lists them as KIND/NAME"
            )
    if options.format == "svg":
        print(visible(draw(graph, f"What the resources of {options.spec.name} need")))
    else:
        print(visible(graph.dot() if options.format == "dot" else graph.mermaid()))
    return 0


def _of_spec(options: argparse.Namespace) -> Graph:
    spec = read_spec(options, options.spec, needs_secrets=False)
    refuse_mistakes(spec)
    spec = limit_to(spec, options.target) if options.target else spec
    return Graph.of(resolve_spec(spec, NoCloud.as_cloud(), for_apply=False).chosen, shown=_of_kinds(options))


def _of_plan(options: argparse.Namespace) -> Graph:
    cloud, spec = open_spec(options, options.spec)
    spec = limit_to(spec, options.target) if options.target else spec
    with reading(options):
        plan = api.plan(cloud, spec, jobs=options.jobs)
    return Graph.of([step.resource for step in plan.steps], plan, _of_kinds(options))


def _of_kinds(options: argparse.Namespace) -> Callable[[Key], bool] | None:
    return (lambda key: key.kind in options.kind) if options.kind else None
