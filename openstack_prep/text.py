"""Steps and results as lines of text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openstack_prep.model import Action, Result, Status, Step


def show(value: Any) -> str:
    """Return a value as a person would write it in a spec, shortened; secrets show as stars."""
    if value is None:
        return "(unset)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {show(each)}" for key, each in value.items()) + "}"
    if isinstance(value, frozenset):
        return "[" + ", ".join(sorted(map(show, value))) + "]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(show, value)) + "]"
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def step_line(step: Step, width: int) -> str:
    details = step.reason
    if step.action is Action.CREATE:
        details = ", ".join(f"{name} {show(value)}" for name, value in step.resource.desired().items())
    elif step.changes:
        details = ", ".join(f"{each.field} {show(each.before)} -> {show(each.after)}" for each in step.changes)
    return f"{step.action.mark:>3} {step.key!s:<{width}}  {details}".rstrip()


def result_line(result: Result, width: int) -> str:
    """Return one step's outcome, with the id and address of what stands there now."""
    mark = {Status.DONE: result.step.action.mark, Status.FAILED: "!", Status.SKIPPED: "?"}[result.status]
    details = ""
    if result.status is Status.FAILED:
        details = f"failed: {result.error}"
    elif result.status is Status.SKIPPED:
        details = f"skipped because of {result.cause}"
    elif result.observed is not None and result.step.action is not Action.DELETE:
        outputs = (f"{name} {value}" for name, value in result.observed.outputs.items())
        details = "  ".join((result.observed.id, *outputs))
    return f"{mark:>3} {result.step.key!s:<{width}}  {details}".rstrip()


def width_of(steps: Iterable[Step]) -> int:
    return max((len(str(step.key)) for step in steps), default=0)


def counts(steps: Iterable[Step]) -> str:
    """Return "2 to create, 1 to update, 5 unchanged"."""
    actions = [step.action for step in steps]
    words = {action: f"to {action}" for action in Action} | {Action.KEEP: "unchanged"}
    return ", ".join(f"{n} {words[action]}" for action in Action if (n := actions.count(action))) or "nothing"
