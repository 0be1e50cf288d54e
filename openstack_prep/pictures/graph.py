"""What needs what in a spec, with the action of each step of a plan: as text for Mermaid and Graphviz.

Edges that follow from others are left out. Sources: Mermaid 11, "Flowcharts" (quoted texts, entity codes); Graphviz,
"The DOT Language" (quoted strings).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from openstack_prep.base.key import Key, labels
from openstack_prep.base.style import printable
from openstack_prep.core import planner
from openstack_prep.core.model import Action, Resource
from openstack_prep.core.plan import Plan

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
    def of(cls, resources: Sequence[Resource], plan: Plan | None = None) -> Graph:
        """Return the graph of resolved resources; of a plan also what it deletes.  Raises SpecError for a cycle."""
        groups = planner.dependencies(resources, creating=False)
        ordered = planner.in_order(resources, groups)
        edges = {key: frozenset[Key]().union(*needed) for key, needed in groups.items()}
        keys = [each.key for each in ordered]
        found = {step.key: step.action for step in plan.steps} if plan else {}
        keys += [key for key in found if key not in edges]
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
