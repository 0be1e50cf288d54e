"""Plans and reports: what would be done, and how it went."""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, PlanRefused, PrepError, text_of
from openstack_prep.base.raw import Values
from openstack_prep.base.style import PLAIN, PRUNABLE, Style
from openstack_prep.core import text
from openstack_prep.core.model import Action, Change, Key, Result, Status, Step


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What would be done, in an order in which it could be.

    ``purpose`` is what it was created for; ``refusals`` are why it may not be carried out.  ``undeclared``
    are the deletions that apply would add with ``prune``: of what is managed and no longer in the spec; and what stays
    in any case, because another spec of the same name may manage it.
    ``left_out`` is how many resources of the spec were not asked for.
    ``allow_replace`` and ``adopt`` say what the user allowed.  They cover what the steps show, and what
    steps that are ``previewed_later`` replace: whatever else a run finds is refused.
    ``allow_loss`` names what deletions and updates may take from others, as their refusals print it.
    ``not_checked`` is what could not be judged before the services are asked to do it.
    ``warnings`` are those about the spec and about valid settings of its resources.
    """

    spec: str
    """Name of the spec."""
    purpose: Literal["apply", "destroy"]
    steps: tuple[Step, ...]
    """One step per resource, also of those that are kept."""
    refusals: tuple[Mistake, ...] = ()
    undeclared: tuple[Step, ...] = ()
    left_out: int = 0
    allow_replace: bool = False
    adopt: bool = False
    allow_loss: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def pending(self) -> tuple[Step, ...]:
        """The steps that change something."""
        return tuple(step for step in self.steps if step.action is not Action.KEEP)

    def data(self) -> list[Values]:
        """Return the steps as plain data, without a secret."""
        return [_step_data(step, self.allow_loss) for step in self.steps]

    def undeclared_data(self) -> list[Values]:
        """Return what is managed and no longer declared, in the form of the steps."""
        return [_step_data(step, self.allow_loss) | {"reason": step.reason} for step in self.undeclared]

    def document(self) -> Values:
        """Return the plan as data: one shape for all commands that only show one."""
        return {
            "spec": self.spec,
            "purpose": self.purpose,
            "changes_pending": bool(self),
            "steps": self.data(),
            "undeclared": self.undeclared_data(),
            "refusals": self.refusals_data(),
            "warnings": list(self.warnings),
        } | {
            name: value
            for name, value in (("left_out", self.left_out), ("not_checked", list(self.not_checked)))
            if value
        }

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.pending)

    def refusals_data(self) -> list[Values]:
        """Return the refusals as diagnostics for JSON."""
        return [refusal.diagnostic(PlanRefused.code).data() for refusal in self.refusals]

    def raise_for_refusals(self) -> None:
        """Raise PlanRefused when there are refusals."""
        if self.refusals:
            raise PlanRefused(self.refusals)

    @property
    def table(self) -> str:
        """A line per step that does something or is kept for a reason, and how many steps there are of each sort."""
        return self.render()

    def render(self, style: Style = PLAIN) -> str:
        """Return the table in a style."""
        every = (*self.steps, *self.undeclared)
        steps = [step for step in every if style.unchanged or not text.is_unchanged(step)]
        width = text.width_of(steps, style)
        lines = [text.step_line(step, width, style, self._sign(step)) for step in steps]
        counts = "; ".join(filter(None, [text.counts(self.steps), self.left_over]))
        unsure = [f"not checked: {'; '.join(self.not_checked)}"] if self.not_checked else []
        return "\n".join([*lines, f"{self.purpose} {self.spec}: {counts}", *unsure])

    def _sign(self, step: Step) -> str:
        """Return the symbol of a step; in parentheses for a deletion that only --prune would add."""
        only_with_prune = step.action is Action.DELETE and any(step is each for each in self.undeclared)
        return PRUNABLE if only_with_prune else step.action.symbol

    @property
    def left_over(self) -> str:
        """What the plan leaves: what apply would delete with ``prune``, and what was not asked for; mostly empty."""
        removals = [step for step in self.undeclared if step.action is Action.DELETE]
        words = [f"{len(removals)} no longer in the spec, deleted only with --prune"] if removals else []
        words += [f"{self.left_out} left out by --target"] if self.left_out else []
        return "; ".join(words)

    def __str__(self) -> str:
        return "\n".join([self.table, *(f"  ! {refusal}" for refusal in self.refusals)])


def unresolved_keys(refusals: Iterable[Mistake]) -> frozenset[Key]:
    """Return what refers to something missing: it seems to change, and no permission and no deletion helps."""
    return frozenset(key for refusal in refusals if refusal.code == Code.SPEC_UNRESOLVED for key in refusal.keys)


Order = graphlib.TopologicalSorter[Key | frozenset[Key]]


def order_of(steps: Mapping[Key, Step]) -> Order:
    """Return the order of steps and of the groups of keys that they come after, ready to be asked.

    A group comes after its steps, and before those that share it: so no pair of both needs an edge.
    """
    order: Order = graphlib.TopologicalSorter()
    for key, step in steps.items():
        order.add(key, *step.after)
    # a thousand steps that share a group of a thousand need two thousand edges, not a million
    for group in frozenset[frozenset[Key]]().union(*(step.after for step in steps.values())):
        order.add(group, *(group & steps.keys()))
    order.prepare()
    return order


def _step_data(step: Step, allow_loss: Set[str]) -> Values:
    address = text.address_of(step)
    return (
        {
            "resource": str(step),
            "action": step.action.value,
            "id": step.observed.id if step.observed else None,
            "changes": [
                {"field": change.field, "before": text.plain(change.before), "after": text.plain(change.after)}
                for change in _changes(step)
            ],
        }
        | ({"address": address} if address else {})
        | ({"follows": sorted(map(str, step.follows))} if step.follows else {})
        | ({"duplicate_of": step.duplicate_of} if step.duplicate_of else {})
        | ({"previewed_later": True} if step.previewed_later else {})
        | ({"effects": effects.data} if (effects := text.effects_of(step)) else {})
        | (
            {"losses": [deletion_loss.data(allow_loss) for deletion_loss in step.deletion_losses]}
            if step.deletion_losses
            else {}
        )
        | ({"not_checked": [vars(unchecked) for unchecked in step.unchecked]} if step.unchecked else {})
    )


def _changes(step: Step) -> Iterable[Change]:
    if step.action is Action.CREATE:
        return [Change(name, None, value) for name, value in text.fields_of_new(step.resource).items()]
    return step.changes


def differences(before: Iterable[Values], after: Iterable[Values], files: Collection[str] = ()) -> list[str]:
    """Return the resources to which the second of two plans (as data) does what the first one does not show.

    A plan that does nothing, because the first one was carried out before, differs in nothing. ``files`` are resources
    that only exist on this machine: a retried job begins without them, so the same plan may create them again.
    """
    old, new = ({step["resource"]: step for step in data} for data in (before, after))
    changed_resources = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    changed = {key for key, step in new.items() if step["action"] != Action.KEEP.value}
    if changed <= {*files}:
        changed_resources = [key for key in changed_resources if key in changed]
    return sorted(changed_resources)


@dataclass(frozen=True)
class Report:
    """How a plan went, in the plan's order."""

    results: tuple[Result, ...]
    """The outcome of each step."""
    seconds: float = 0.0
    """Duration of the run in seconds."""
    interrupt: int | None = None
    """The signal that stopped the run; None when nothing did."""

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results of the steps that failed."""
        return tuple(result for result in self.results if result.status is Status.FAILED)

    @property
    def skipped(self) -> tuple[Result, ...]:
        """The results of the steps that were skipped because of others, or of a signal."""
        return tuple(result for result in self.results if result.status is Status.SKIPPED)

    @property
    def changed(self) -> tuple[Result, ...]:
        """The results of the steps that have changed something."""
        done = (result for result in self.results if result.status is Status.DONE)
        return tuple(result for result in done if result.step.action is not Action.KEEP)

    @property
    def outputs(self) -> dict[str, str]:
        """For each resource its principal value: an address, a path, otherwise its id."""
        return {
            str(result.step): next(iter(result.observed.outputs.values()), result.observed.id)
            for result in self.results
            if result.observed is not None and result.step.action is not Action.DELETE
        }

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the run; its last steps may have been under way by then, and done."""
        return self.interrupt is not None

    def data(self) -> Values:
        """Return the report as plain data, without a secret."""
        return {"seconds": round(self.seconds, 3), "steps": [text.result_data(result) for result in self.results]}

    def raise_for_failures(self) -> None:
        """Raise ApplyFailed when any step failed or was skipped."""
        if self.failed or self.skipped:
            lines = [f"{result.step}: {text_of(result.error)}" for result in self.failed]
            lines += [f"{result.step}: skipped because of {result.cause}" for result in self.skipped]
            raise ApplyFailed("\n".join(lines), self)

    @property
    def summary(self) -> str:
        """One line: how many steps were done, failed or skipped, and the duration."""
        kept = len(self.results) - len(self.changed) - len(self.failed) - len(self.skipped)
        if kept == len(self.results):
            return f"nothing to do: {kept} unchanged" if kept else "nothing to do"
        counts = f"{len(self.changed)} done, {len(self.failed)} failed, {len(self.skipped)} skipped, {kept} unchanged"
        return f"{counts} in {self.seconds:.1f} s"

    def __str__(self) -> str:
        width = text.width_of(result.step for result in self.results)
        lines = [text.result_line(result, width) for result in self.results]
        return "\n".join([*lines, self.summary])


class ApplyFailed(PrepError):
    """Some steps failed; ``report`` says which, why, and what was done or skipped."""

    code = "apply.failed"

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report
