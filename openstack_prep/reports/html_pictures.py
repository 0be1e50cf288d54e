"""The drawings of a report: a report is written even if the cloud cannot be read for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from openstack_prep.base.errors import PrepError
from openstack_prep.core.plan import Plan
from openstack_prep.pictures import graph_drawing
from openstack_prep.pictures.graph import Graph
from openstack_prep.pictures.topology import drawing
from openstack_prep.pictures.topology.model import Topology
from openstack_prep.reports.html import Picture


def of_plan(plan: Plan) -> Iterator[Picture]:
    """Yield what the resources of a plan need, coloured by what the plan does."""
    if plan.steps:
        yield _drawn("What needs what", lambda: _graph(plan))


def _graph(plan: Plan) -> Picture:
    graph = Graph.of([step.resource for step in plan.steps], plan)
    return Picture(title="What needs what", svg=graph_drawing.draw(graph, "What needs what", embedded=True))


def of_topology(look: Callable[[], Topology]) -> Picture:
    """Return the networks; or why they are not drawn."""
    return _drawn("Networks", lambda: _networks(look()))


def _networks(found: Topology) -> Picture:
    title = "Networks"
    if not (found.networks or found.servers or found.clusters):
        return Picture(title=title, note=f"There are no networks in {found.subject}.")
    return Picture(title=title, svg=drawing.draw(found, embedded=True))


def _drawn(title: str, draw: Callable[[], Picture]) -> Picture:
    """Return a drawing; or why there is none."""
    try:
        return draw()
    except PrepError as error:
        return Picture(title=title, note=f"Not drawn: {error}")
    except Exception as error:  # noqa: BLE001 - a fault of the drawing must not cost the report
        return Picture(title=title, note=f"Not drawn: {type(error).__name__}: {error}")
