"""Steps and results as lines of text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass

from openstack_prep.base.errors import PrepError
from openstack_prep.base.key import Key, labels
from openstack_prep.base.raw import Values
from openstack_prep.core.model import Action, Change, Observed, Resource, Result, Status, Step

WHOLE = frozenset({"next", "then", "warning"})
"""Outputs that are useless if they are shortened, such as commands to type."""


def show(value: object) -> str:
    """Return a value as a person would write it in a spec, shortened; secrets are shown as stars."""
    if value is None:
        return "(unset)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_dataclass(value):
        value = {name: each for name, each in vars(value).items() if each is not None}
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {show(each)}" for key, each in value.items()) + "}"
    if isinstance(value, frozenset):
        return "[" + ", ".join(sorted(map(show, value))) + "]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(show, value)) + "]"
    text = str(value) or '""'
    text = text if text.isprintable() else repr(text)  # line ends and terminal codes
    return text if len(text) <= 60 else text[:57] + "..."


def plain(value: object) -> object:
    """Return a value as JSON and YAML represent it; a secret becomes stars."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value):
        return plain({name: each for name, each in vars(value).items() if each is not None})
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted((plain(each) for each in value), key=str)
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    return str(value)


def fields_of_new(resource: Resource) -> Values:
    """Return the fields with which a resource is created, without those that all new resources of its kind have."""
    return {name: value for name, value in resource.desired().items() if name not in resource.implied}


def step_line(step: Step, width: int) -> str:
    return f"{step.action.mark:>3} {step!s:<{width}}  {details(step)}".rstrip()


def details(step: Step) -> str:
    """Return what a step would change, and why."""
    if step.action is Action.CREATE:
        wanted = fields_of_new(step.resource).items()
        return ", ".join(f"{name} {show(value)}" for name, value in wanted if value not in (None, frozenset()))
    if step.action is Action.DELETE:
        address = address_of(step)
        return "  ".join(filter(None, (address and f"address {address}", step.reason)))
    if step.changes:
        return ", ".join(map(change_text, step.changes)) + (f" ({step.reason})" if step.reason else "")
    return step.reason


def address_of(step: Step) -> str:
    """Return the address that a deletion releases, such as a floating IP's; empty for other resources."""
    found = step.observed.outputs.get("address") if step.observed else None
    return found or "" if step.action is Action.DELETE else ""


def change_text(change: Change) -> str:
    """Return "ram 1024 -> 2048"; of sets only the difference: "rules +[ingress IPv4 tcp 22 from anywhere]".

    Of mappings only what differs: "parameters.node_count 3 -> 4".
    """
    before, after = change.before, change.after
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return ", ".join(change_text(Change(f"{change.field}.{key}", before.get(key), after.get(key))) for key in keys)
    if isinstance(before, frozenset) and isinstance(after, frozenset):
        parts = [("+", after - before), ("-", before - after)]
        return " ".join([change.field, *(sign + show(part) for sign, part in parts if part)])
    return f"{change.field} {show(before)} -> {show(after)}"


def result_line(result: Result, width: int) -> str:
    """Return the outcome of one step, with the id and address of the resource that now exists."""
    mark = {Status.DONE: result.step.action.mark, Status.FAILED: "!", Status.SKIPPED: "?"}[result.status]
    details = ""
    if result.status is Status.FAILED:
        details = f"failed: {explain(result.error)}"
    elif result.status is Status.SKIPPED:
        details = f"skipped because of {result.cause}"
    elif result.step.action is Action.DELETE:
        details = f"address {address}" if (address := address_of(result.step)) else ""
    elif result.observed is not None:
        details = "  ".join([*_outputs(result.observed), *_before(result.step)])
    return f"{mark:>3} {result.step!s:<{width}}  {details}".rstrip()


def _before(step: Step) -> Iterable[str]:
    """Yield the former values of a resource that the spec does not manage, so that they can be restored manually."""
    if _changes_foreign(step):
        yield "was " + ", ".join(f"{change.field} {show(change.before)}" for change in step.changes)


def _changes_foreign(step: Step) -> bool:
    """Whether a step changes a resource that the spec does not manage; quotas have no tag and cannot be adopted."""
    foreign = step.observed is not None and not step.observed.ours
    return foreign and step.action in (Action.ADOPT, Action.UPDATE)


def explain(error: Exception | None) -> str:
    """Return an error's text; the text of a foreign exception begins with its class."""
    return str(error) if isinstance(error, PrepError) else repr(error)


def result_data(result: Result) -> Values:
    return (
        {
            "resource": str(result.step),
            "action": result.step.action.value,
            "status": result.status.value,
            "seconds": round(result.seconds, 3),
            "error": explain(result.error) if result.error else None,
            "because_of": result.cause or None,
        }
        | _former(result.step)
        | (observed_data(result.observed) or {})
    )


def _former(step: Step) -> Values:
    if not _changes_foreign(step):
        return {}
    return {"before": {change.field: plain(change.before) for change in step.changes}}


def observed_data(observed: Observed | None) -> Values | None:
    if observed is None:
        return None
    return {"id": observed.id, "ours": observed.ours, "outputs": dict(observed.outputs)}


def _outputs(observed: Observed) -> Iterable[str]:
    """Yield the id and other useful outputs."""
    yield observed.id
    worth_showing = ((name, value) for name, value in observed.outputs.items() if value not in observed.id)
    for name, value in worth_showing:
        whole = value.isprintable() and (len(value) <= 120 or name in WHOLE)
        yield f"{name} {value if whole else show(value)}"


def observed_table(found: Mapping[Key, Observed | None]) -> str:
    """Return the existing resources, one line each: name, id, addresses, and owner."""
    names = labels(found)
    width = max(map(len, names.values()), default=0)
    lines = []
    for key, observed in found.items():
        words = ["-"]
        if observed is not None:
            words = [*_outputs(observed), *(() if observed.ours else ("(not managed by this spec)",))]
        lines.append(f"{names[key]:<{width}}  {'  '.join(words)}")
    return "\n".join(lines)


def width_of(steps: Iterable[Step]) -> int:
    return max((len(str(step)) for step in steps), default=0)


def counts(steps: Iterable[Step]) -> str:
    """Return "2 to create, 1 to update, 5 unchanged"."""
    actions = [step.action for step in steps]
    words = {action: f"to {action}" for action in Action} | {Action.KEEP: "unchanged"}
    return ", ".join(f"{n} {words[action]}" for action in Action if (n := actions.count(action))) or "nothing"
