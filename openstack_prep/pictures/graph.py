"""The dependency graph of a spec, with the action of each step of a plan: as text for Mermaid and Graphviz.

Edges that follow from others are left out. Sources: Mermaid 11, "Flowcharts" (quoted texts, entity codes); Graphviz,
"The DOT Language" (quoted strings).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from openstack_prep.base.key import Key, labels
from openstack_prep.base.style import printable
from openstack_prep.core import planner
from openstack_prep.core.model import Action, Resource
from openstack_prep.core.plan import Plan
from openstack_prep.pictures import svg
from openstack_prep.pictures.layers import BoxPosition, lay_out

# --- graph ------------------------------------------------------------------------------------


COLORS: Mapping[Action, tuple[str, str]] = {
    Action.CREATE: ("#d9f2d9", "#2e7d32"),
    Action.UPDATE: ("#fff3cd", "#b26a00"),
    Action.ADOPT: ("#e3d7f5", "#6a3fb5"),
    Action.REPLACE: ("#ffe0cc", "#c75000"),
    Action.DELETE: ("#f8d7da", "#b02a37"),
    Action.KEEP: ("#f1f3f5", "#868e96"),
}
"""Fill and line of a resource, by what a plan does with it; both are readable on light and dark ground."""


@dataclass(frozen=True)
class Graph:
    """Resources by their texts, what each needs, and what a plan does with them."""

    names: tuple[str, ...]
    needs: tuple[tuple[int, int], ...]
    """Pairs of indices: the first needs the second."""
    actions: Mapping[int, Action]

    @classmethod
    def of(
        cls, resources: Sequence[Resource], plan: Plan | None = None, shown: Callable[[Key], bool] | None = None
    ) -> Graph:
        """Return the graph of resolved resources; of a plan also what it deletes.  Raises SpecError for a cycle.

        ``shown`` chooses, if not all: what these need of each other through others is an edge.
        """
        groups = planner.dependencies(resources, creating=False)
        ordered = planner.in_order(resources, groups)
        edges = {key: frozenset[Key]().union(*needed) for key, needed in groups.items()}
        keys = [resource.key for resource in ordered]
        found = {step.key: step.action for step in plan.steps} if plan else {}
        keys += [key for key in found if key not in edges]
        if shown:
            keys = [*filter(shown, keys)]
            found = {key: found[key] for key in keys if key in found}
            edges = {key: frozenset(_all_needs(key, edges).intersection(keys)) for key in keys if key in edges}
        place = {key: index for index, key in enumerate(keys)}
        texts = labels(keys)
        needs = tuple((place[key], place[need]) for key in edges for need in _direct(key, edges))
        actions = {place[key]: action for key, action in found.items()}
        return cls(tuple(printable(texts[key]) for key in keys), tuple(sorted(needs)), actions)

    def mermaid(self) -> str:
        """Return a flowchart for Mermaid, as GitHub and GitLab show it in Markdown."""
        lines = ["flowchart RL"]
        for action in sorted(set(self.actions.values())):
            fill, stroke = COLORS[action]
            lines.append(f"  classDef {action} fill:{fill},stroke:{stroke},color:#212529")
        for index, name in enumerate(self.names):
            kind = f":::{self.actions[index]}" if index in self.actions else ""
            lines.append(f'  r{index}["{escape_mermaid(name)}"]{kind}')
        return "\n".join([*lines, *(f"  r{one} --> r{other}" for one, other in self.needs)])

    def dot(self) -> str:
        """Return a digraph for Graphviz."""
        lines = ["digraph spec {", "  rankdir=RL", '  node [shape=box, style="rounded,filled", fillcolor="#ffffff"]']
        for index, name in enumerate(self.names):
            color = ""
            if index in self.actions:
                fill, stroke = COLORS[self.actions[index]]
                color = f', fillcolor="{fill}", color="{stroke}", tooltip="{self.actions[index]}"'
            lines.append(f'  r{index} [label="{escape_dot(name)}"{color}]')
        return "\n".join([*lines, *(f"  r{one} -> r{other}" for one, other in self.needs), "}"])


def _direct(key: Key, edges: Mapping[Key, frozenset[Key]]) -> set[Key]:
    """Return what a resource needs without what these need anyway."""
    direct = set(edges[key])
    for need in edges[key]:
        direct -= _all_needs(need, edges)
    return direct


def _all_needs(key: Key, edges: Mapping[Key, frozenset[Key]]) -> set[Key]:
    found: set[Key] = set()
    waiting = [*edges[key]]
    while waiting:
        need = waiting.pop()
        if need not in found:
            found.add(need)
            waiting += edges[need]
    return found


def escape_mermaid(text: str) -> str:
    """Return a text with entity codes for what Mermaid or HTML could interpret."""
    return "".join(each if each.isalnum() or each in " /.-_:" else f"#{ord(each)};" for each in text)


def escape_dot(text: str) -> str:
    """Return a text for a quoted string of Graphviz."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


# --- drawing ----------------------------------------------------------------------------------


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


def _node(spot: BoxPosition, name: str, label: tuple[str, str], action: Action | None) -> str:
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
