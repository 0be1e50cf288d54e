"""Results of commands as columns and rows, for cliff's formatters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cliff.columns import FormattableColumn

from openstack_prep.base.raw import Raw
from openstack_prep.base.style import printable
from openstack_prep.core.text import show

Table = tuple[Sequence[str], list[tuple[Any, ...]]]
FINDING = ("Status", "Code", "Where", "What", "Why", "Fix")


class Changes(FormattableColumn[list[Any]]):
    """Changes of fields: a list for programs, and "cores 7 -> 40" for people."""

    def human_readable(self) -> str:
        return printable(", ".join(map(self._text, self._value)))

    @staticmethod
    def _text(change: Raw) -> str:
        before = "" if change["before"] is None else f"{show(change['before'])} -> "
        return f"{change['field']} {before}{show(change['after'])}"


class OutputsColumn(FormattableColumn[dict[str, Any]]):
    """Outputs of a resource by name."""

    def human_readable(self) -> str:
        return printable(", ".join(f"{name} {show(value)}" for name, value in self._value.items()))


def plan(data: Raw, *, everything: bool) -> Table:
    """Return the steps of a plan, and what is managed and no longer declared."""
    shown = [each for each in data["steps"] if everything or data["purpose"] == "destroy" or each["action"] != "keep"]
    rows = [_step(each, each["action"], _note(each)) for each in shown]
    rows += [_step(each, "undeclared", each["reason"]) for each in data["undeclared"]]
    return ("Action", "Resource", "ID", "Changes", "Note"), rows


def _step(step: Raw, action: str, note: str) -> tuple[Any, ...]:
    return action, *_texts(step["resource"], step["id"] or ""), Changes(list(step["changes"])), *_texts(note)


def _note(step: Raw) -> str:
    notes = {
        "address": step.get("address"),
        "follows": ", ".join(step.get("follows", ())),
        "duplicate of": step.get("duplicate_of"),
    }
    return "; ".join(f"{name} {value}" for name, value in notes.items() if value)


def report(data: Raw, *, everything: bool) -> Table:
    """Return the outcome of each step."""
    shown = [each for each in data["steps"] if everything or each["action"] != "keep" or each["status"] != "done"]
    rows = [
        (
            each["action"],
            *_texts(each["resource"], each.get("id") or ""),
            each["status"],
            each["seconds"],
            *_texts(each["error"] or (f"skipped because of {each['because_of']}" if each["because_of"] else "")),
        )
        for each in shown
    ]
    return ("Action", "Resource", "ID", "Status", "Seconds", "Error"), rows


def resources(data: Raw) -> Table:
    """Return which resources of a spec exist."""
    rows = []
    for name, found in data.items():
        seen = found or {"id": "", "ours": False, "outputs": {}}
        rows.append(
            (*_texts(name), found is not None, *_texts(seen["id"]), seen["ours"], OutputsColumn(seen["outputs"]))
        )
    return ("Resource", "Exists", "ID", "Managed", "Outputs"), rows


def findings(data: Raw) -> Table:
    """Return the findings of a check."""
    return FINDING, [_finding(each) for each in data["findings"]]


def chains(data: Raw) -> Table:
    """Return the links of each path that was verified."""
    rows = [(*_texts(chain["name"]), *_finding(each)) for chain in data["chains"] for each in chain["links"]]
    return ("Path", *FINDING), rows


def _finding(found: Raw) -> tuple[str, ...]:
    return tuple(_texts(*(found[name.lower()] for name in FINDING)))


def sections(data: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[Any]]:
    """Return the sections of an exported spec, which as YAML or JSON are a spec again."""
    return tuple(data["spec"]), tuple(data["spec"].values())


def _texts(*values: str) -> Iterable[str]:
    """Return texts, some from the cloud, without characters that a terminal would obey."""
    return map(printable, values)
