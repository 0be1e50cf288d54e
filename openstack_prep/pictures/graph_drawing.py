"""What needs what in a spec, drawn: columns of boxes, each right of what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openstack_prep.core.model import Action
from openstack_prep.pictures import svg
from openstack_prep.pictures.graph import Graph
from openstack_prep.pictures.layers import Spot, lay_out

MARGIN = 24.0
HEIGHT, KIND, NAME = 40.0, 10.0, 12.5
MOST = 46
"""Letters of a name; the whole one is shown while the pointer rests on the box."""
LEGEND = 34.0


def draw(graph: Graph, name: str, *, embedded: bool = False) -> str:
    """Return the graph as SVG; see svg.picture."""
    labels = [_label(each) for each in graph.names]
    sizes = [(max(svg.width(kind, KIND) + 34, svg.width(title, NAME)) + 20, HEIGHT) for kind, title in labels]
    layout = lay_out(sizes, graph.needs)
    parts = [svg.element("g", *map(_edge, layout.paths.values()))]
    for index, spot in enumerate(layout.spots):
        parts.append(_node(spot, graph.names[index], labels[index], graph.actions.get(index)))
    legend = list(_legend(graph))
    shift = svg.element("g", "\n".join(parts), transform=f"translate({MARGIN:g} {MARGIN + LEGEND:g})")
    width = max(layout.width, 620.0) + 2 * MARGIN
    return svg.picture(name, width, layout.height + 2 * MARGIN + LEGEND, [*legend, shift], embedded=embedded)


def _label(name: str) -> tuple[str, str]:
    kind, _, rest = name.partition("/")
    return (kind.replace("_", " "), svg.cut(rest, MOST)) if rest else ("", svg.cut(kind, MOST))


def _node(spot: Spot, name: str, label: tuple[str, str], action: Action | None) -> str:
    symbol = action.symbol if action and action is not Action.KEEP else ""
    return svg.element(
        "g",
        svg.title(f"{name} ({action})" if action else name),
        svg.box(spot.x, spot.y, spot.w, spot.h, "tinted" if action else "node"),
        svg.text(spot.x + 10, spot.y + 15, label[0], "soft", size=KIND),
        svg.text(spot.x + 10, spot.y + 31, label[1], "strong", size=NAME),
        svg.text(spot.x + spot.w - 9, spot.y + 17, symbol, "hued strong", size=14, anchor="end") if symbol else "",
        class_=action.value if action else None,
    )


def _edge(path: Sequence[tuple[float, float]]) -> str:
    """Return an edge with its arrow at what is needed."""
    (x, y), *points = path
    words = [f"M{x:.1f} {y:.1f}"]
    for index, (to_x, to_y) in enumerate(points):
        end = to_x + (6 if index == len(points) - 1 else 0)
        bend = (x - end) / 2
        curve = f"C{x - bend:.1f} {y:.1f} {end + bend:.1f} {to_y:.1f} {end:.1f} {to_y:.1f}"
        words.append(f"H{end:.1f}" if abs(to_y - y) < 0.05 else curve)
        x, y = end, to_y
    tip = f"M{x - 6:.1f} {y:.1f}l8 -4v8z"
    return svg.element("path", d="".join(words), class_="edge") + svg.element("path", d=tip, class_="arrow")


def _legend(graph: Graph) -> Iterator[str]:
    """Yield what colours and arrows mean."""
    x, y = MARGIN, MARGIN + 4
    for action in (each for each in Action if each in set(graph.actions.values())):
        word = f"{action.symbol} {action}" if action is not Action.KEEP else "unchanged"
        inner = svg.box(x, y - 10, 14, 14, "tinted", round_=3), svg.text(x + 20, y + 1, word, size=11)
        yield svg.element("g", *inner, class_=action.value)
        x += svg.width(word, 11) + 38
    yield svg.text(x, y + 1, "an arrow points to what a resource needs", "soft", size=11)
