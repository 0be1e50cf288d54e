"""Steps and results as lines of text for people."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace

from openstack_prep.base.errors import text_of
from openstack_prep.base.key import Key, labels
from openstack_prep.base.raw import Values
from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import DIM, GREEN, OF_MARK, PLAIN, YELLOW, Style, printable
from openstack_prep.core.model import (
    MANAGED,
    Action,
    Change,
    Observed,
    Resource,
    Result,
    Status,
    Step,
    Texts,
    UpdateEffects,
)
from openstack_prep.core.resource import HasImplied, HasTexts, ListsEffects, supports

WHOLE = frozenset({"next", "needs", "then", "warning"})
"""Outputs that are useless if they are shortened, such as commands to type."""


def show(value: object, most: int = PLAIN.most) -> str:
    """Return a value as a person would write it in a spec; texts of more characters are cut, secrets show as stars.

    What exists may have been written by somebody else, so that no field knows the password in a URL as a secret.
    """
    if value is None:
        return "(unset)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_dataclass(value):
        value = {name: each for name, each in vars(value).items() if each is not None}
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {show(each, most)}" for key, each in value.items()) + "}"
    if isinstance(value, frozenset):
        return "[" + ", ".join(sorted(show(each, most) for each in value)) + "]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(show(each, most) for each in value) + "]"
    text = without_logins(str(value)) or '""'
    text = text if text.isprintable() else repr(text)  # line ends and terminal codes
    if len(text) <= most:
        return text
    space = text.rfind(" ", 0, most - 3)
    end = space if space > most // 2 else most - 3  # not within an address
    return text[:end].rstrip(",") + "..."


def plain(value: object, shown: Callable[[str], str] = without_logins) -> object:
    """Return a value as JSON and YAML represent it; a secret becomes stars, and ``shown`` says what of a text stays."""
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if is_dataclass(value):
        return plain({name: each for name, each in vars(value).items() if each is not None}, shown)
    if isinstance(value, Mapping):
        return {str(key): plain(each, shown) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted((plain(each, shown) for each in value), key=str)
    if isinstance(value, Sequence):
        return [plain(each, shown) for each in value]
    return str(value)


def fields_of_new(resource: Resource) -> Values:
    """Return the fields with which a resource is created, without those that all new resources of its kind have."""
    implied = resource.implied if supports(resource, HasImplied) else frozenset()
    return {name: value for name, value in resource.desired().items() if name not in implied}


def step_line(step: Step, width: int, style: Style = PLAIN, sign: str = "") -> str:
    """Return what a step would do, and below it which lines of a file; ``sign`` replaces that of its action."""
    resource, observed = step.resource, step.observed
    texts = resource.texts(observed) if supports(resource, HasTexts) and observed and step.changes else None
    rest = tuple(change for change in step.changes if texts is None or change.field not in texts.fields)
    found = step.observed.id if step.observed and style.ids else ""
    words = "  ".join(filter(None, (found, details(replace(step, changes=rest), style.most))))
    line = style.line(sign or step.action.symbol, f"{step!s:<{width}}", words)
    return "\n".join([line, *(_changed_lines(texts, style) if texts else ()), *_loss_lines(step, style)])


def _loss_lines(step: Step, style: Style) -> Iterable[str]:
    """Return a line per thing that a deletion or an update takes from others."""
    return (
        style.wrapped(f"{'':6}{deletion_loss.effect}: {printable(str(deletion_loss))}", 8)
        for deletion_loss in step.deletion_losses
    )


def _changed_lines(texts: Texts, style: Style) -> Iterable[str]:
    """Yield a unified diff, with dots between its parts in place of line numbers."""
    for number, line in enumerate(difflib.unified_diff(texts.before.splitlines(), texts.after.splitlines(), n=2)):
        if number > 2:
            shown = "..." if line.startswith("@@") else without_logins(line)
            yield style.wrapped(f"{'':6}{style.paint(shown, OF_MARK.get(shown[0], '0'))}", 8)


def is_unchanged(step: Step) -> bool:
    """Whether there is nothing to say about a step: what is kept for a reason is no such thing."""
    return step.action is Action.KEEP and not details(step)


def details(step: Step, most: int = PLAIN.most) -> str:
    """Return what a step would change, and why."""
    if step.action is Action.CREATE:
        wanted = fields_of_new(step.resource).items()
        return ", ".join(f"{name} {show(value, most)}" for name, value in wanted if value not in (None, frozenset()))
    if step.action is Action.DELETE:
        address = address_of(step)
        return "  ".join(filter(None, (address and f"address {address}", step.reason)))
    if step.changes:
        effects = effects_of(step)
        shown = (change for change in step.changes if effects is None or change.field != effects.field)
        changes = ", ".join([*(change_text(change, most) for change in shown), *([effects.text] if effects else ())])
        return f"{changes} ({step.reason})" if step.reason else changes
    return step.reason


def effects_of(step: Step) -> UpdateEffects | None:
    """Return what an update does to the parts of a resource."""
    resource, observed = step.resource, step.observed
    if not supports(resource, ListsEffects) or observed is None or not step.changes:
        return None
    return resource.update_effects(observed)


def address_of(step: Step) -> str:
    """Return the address that a deletion releases, such as a floating IP's; empty for other resources."""
    found = step.observed.outputs.get("address") if step.observed else None
    return found or "" if step.action is Action.DELETE else ""


def change_text(change: Change, most: int = PLAIN.most) -> str:
    """Return "ram 1024 -> 2048"; of sets only what comes and goes: "rules +[ingress IPv4 tcp 22 from anywhere]".

    Of mappings only what differs: "parameters.node_count 3 -> 4".
    """
    before, after = change.before, change.after
    if change.field == MANAGED and after:
        return "taken over by this spec"
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        inner = (Change(f"{change.field}.{key}", before.get(key), after.get(key)) for key in keys)
        return ", ".join(change_text(each, most) for each in inner)
    if isinstance(before, frozenset) and isinstance(after, frozenset):
        parts = [("+", after - before), ("-", before - after)]
        return " ".join([change.field, *(sign + show(part, most) for sign, part in parts if part)])
    return f"{change.field} {show(before, most)} -> {show(after, most)}"


def result_line(result: Result, width: int, style: Style = PLAIN, note: str = "") -> str:
    """Return one step's outcome, with the address of what exists now, its id if wanted, and a note."""
    symbol = {Status.DONE: result.step.action.symbol, Status.FAILED: "!", Status.SKIPPED: "?"}[result.status]
    details = ""
    if result.status is Status.FAILED:
        details = f"failed: {text_of(result.error)}"
    elif result.status is Status.SKIPPED:
        details = f"skipped because of {result.cause}"
    elif result.step.action is Action.KEEP and result.step.reason:
        details, note = result.step.reason, ""
    elif result.step.action is Action.DELETE:
        details = f"address {address}" if (address := address_of(result.step)) else ""
    elif result.observed is not None:
        details = "  ".join([*_main_outputs(result.observed, style), *_before(result.step)])
        if WHOLE & result.observed.outputs.keys():
            style = replace(style, width=None)  # a command that is broken into two lines becomes two commands
    line = style.line(symbol, f"{result.step!s:<{width}}", "  ".join(filter(None, (details, note))))
    return "\n".join([line, *(_loss_lines(result.step, style) if _has_taken(result) else ())])


def _has_taken(result: Result) -> bool:
    """Whether a step was done that has taken something from others, by permission."""
    done = result.step.action is not Action.KEEP and result.status is Status.DONE
    return done and bool(result.step.deletion_losses)


def _before(step: Step) -> Iterable[str]:
    """Yield the former values of a resource that the spec does not manage, so that they can be restored manually."""
    changes = [change for change in step.changes if change.field != MANAGED]
    if _changes_foreign(step) and changes:
        yield "was " + ", ".join(f"{change.field} {show(change.before)}" for change in changes)


def _changes_foreign(step: Step) -> bool:
    """Whether a step changes a resource that the spec does not manage; quotas have no tag and cannot be adopted."""
    foreign = step.observed is not None and not step.observed.ours
    return foreign and step.action in (Action.ADOPT, Action.UPDATE)


def result_data(result: Result) -> Values:
    return (
        {
            "resource": str(result.step),
            "action": result.step.action.value,
            "status": result.status.value,
            "seconds": round(result.seconds, 3),
            "error": text_of(result.error) if result.error else None,
            "because_of": result.cause or None,
        }
        | _former(result.step)
        | _losses(result)
        | (observed_data(result.observed) or {})
    )


def _losses(result: Result) -> Values:
    """Return what a step has taken from others, all of it with permission."""
    return (
        {"losses": [deletion_loss.data({deletion_loss.address}) for deletion_loss in result.step.deletion_losses]}
        if _has_taken(result)
        else {}
    )


def _former(step: Step) -> Values:
    if not _changes_foreign(step):
        return {}
    return {"before": {change.field: plain(change.before) for change in step.changes}}


def observed_data(observed: Observed | None) -> Values | None:
    if observed is None:
        return None
    return {"id": observed.id, "ours": observed.ours, "outputs": dict(observed.outputs)}


def _main_outputs(observed: Observed, style: Style) -> Iterable[str]:
    """Yield the id, the outputs of one value each, and how many others, such as lists of a stack, ``show`` has."""
    single = {name: value for name, value in observed.outputs.items() if name in WHOLE or _is_single(value)}
    yield from _id_and_outputs(replace(observed, outputs=single), style)
    if left := len(observed.outputs) - len(single):
        yield f"({counted(left, 'more output')}: openstack-prep show)"


def _is_single(value: str) -> bool:
    """Whether an output is one value on one line: no list, map or null as JSON."""
    try:
        return not isinstance(json.loads(value), list | dict | None)
    except (ValueError, RecursionError):
        return "\n" not in value


def _id_and_outputs(observed: Observed, style: Style) -> Iterable[str]:
    """Yield the id, if wanted or if people can read it, and the outputs that it does not contain."""
    readable = any(each in observed.id for each in " .:/")  # such as "5 ports", an address range or a path
    shown = observed.id if style.ids or readable else ""
    if shown:
        yield shown
    others = ((name, value) for name, value in observed.outputs.items() if value not in shown)
    for name, value in others:
        whole = value.isprintable() and (len(value) <= 120 or name in WHOLE)
        yield f"{name} {value if whole else show(value, style.most)}"


def observed_table(found: Mapping[Key, Observed | None], style: Style = PLAIN) -> str:
    """Return what exists, a line per resource: its name, id and addresses, and whether the spec manages it."""
    names = labels(found)
    width = style.column(names.values())
    lines = []
    for key, observed in found.items():
        words, code = ["-"], DIM
        if observed is not None:
            words, code = [*_id_and_outputs(observed, replace(style, ids=True))], GREEN if observed.ours else YELLOW
            words += [] if observed.ours else [f"({observed.known_owner or observed.kept_because or observed.owner})"]
        words = [printable(word) for word in words]
        name = f"{printable(names[key]):<{width}}"
        lines.append(style.beside(name, "  ".join(words)).replace(name.rstrip(), style.paint(name.rstrip(), code), 1))
    return "\n".join(lines)


def counted(number: int, word: str) -> str:
    """Return "1 port" or "5 ports"."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def width_of(steps: Iterable[Step], style: Style = PLAIN) -> int:
    return style.column(map(str, steps))


def counts(steps: Iterable[Step]) -> str:
    """Return "2 to create, 1 to update, 5 unchanged"."""
    numbers = Counter(map(_count_word, steps))
    order = [*(f"to {action}" for action in Action if action is not Action.KEEP), "to take over", "unchanged"]
    return ", ".join(f"{numbers[word]} {word}" for word in order if numbers[word]) or "nothing"


def _count_word(step: Step) -> str:
    if step.action is Action.ADOPT and any(change.field == MANAGED for change in step.changes):
        return "to take over"
    return "unchanged" if step.action is Action.KEEP else f"to {step.action}"
