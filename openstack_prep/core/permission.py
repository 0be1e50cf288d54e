"""Changes that need permission: a run replaces, adopts or deletes only what its plan has shown; pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, replace
from typing import Any, cast

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Loss, Mistake
from openstack_prep.base.key import Key
from openstack_prep.base.raw import dotted, walk_steps
from openstack_prep.base.secret import Secret, secrets_in
from openstack_prep.base.suggestion import ask, similar
from openstack_prep.core import text
from openstack_prep.core.deletion_loss import OPTION, DeletionLoss, LossEffect
from openstack_prep.core.model import Action, Adoptable, Step
from openstack_prep.core.observed import owner_text
from openstack_prep.core.plan import Plan
from openstack_prep.core.resource import (
    FromContext,
    HasImplied,
    PreviewsUpdate,
    Resource,
    Settles,
    Unguarded,
    Untagged,
    WritesFiles,
    is_replaced_by,
    supports,
)

AGAIN = "plan again"


def refuse_replacements(steps: Iterable[Step]) -> list[Mistake]:
    """Return the replacements among steps, as refusals."""
    steps = tuple(steps)
    replaced = (step for step in steps if step.action is Action.REPLACE and not _replaces_another(step))
    refusals: list[Mistake] = [_replacement(step) for step in replaced]
    return [*refusals, *(loss for step in steps for loss in step.losses), *_new_secrets(steps)]


def lost_secrets(step: Step) -> Iterable[Loss]:
    """Yield the secrets in use that an update would replace by new ones, because the file with theirs is not here.

    One of a kind that needs adoption is that kind's own business while somebody else manages it.
    """
    if isinstance(step.resource, Adoptable) and not (step.observed and step.observed.ours):
        return
    for change in step.changes:
        if change.before is not None and isinstance(change.after, Secret) and change.after.is_to_generate:
            yield lost_secret(step.key, change.field, change.after)


def _new_secrets(steps: Sequence[Step]) -> Iterator[Loss]:
    """Yield the secrets of unchanged resources that another step would generate, because their file is not here.

    Later the file exists, and nothing shows any more that it is not the one in use.
    """
    kept = [step for step in steps if step.action is Action.KEEP and step.observed and step.observed.ours]
    in_use = [(step, name, secret) for step in kept for name, secret in _own_secrets(step.resource)]
    if not in_use:
        return
    pending = (step.resource for step in steps if step.action is not Action.KEEP)
    new = {secret.path for each in pending for secret in secrets_in(each) if secret.is_to_generate}
    yield from (lost_secret(step.key, name, secret) for step, name, secret in in_use if secret.path in new)


def _own_secrets(resource: Resource) -> Iterator[tuple[str, Secret]]:
    """Yield the secrets that are to be generated among the fields of a resource, not of related ones."""
    for each in fields(cast(Any, resource)):
        value = getattr(resource, each.name)
        for steps, part in walk_steps(value, (each.name,)) if not isinstance(value, FromContext | Resource) else ():
            if isinstance(part, Secret) and part.is_to_generate:
                yield dotted(steps), part


def lost_secret(key: Key, name: str, secret: Secret) -> Loss:
    """Return that a secret which others may use would be generated again."""
    what = f"its {name} would be replaced, because {secret.path} does not exist"
    fix = "copy the file from where the spec was applied, or allow the replacement (--allow-replace)"
    return replace(Loss.about(key, what, fix), lost=(name,))


def refuse_losses(steps: Iterable[Step], allowed: Set[str]) -> list[Mistake]:
    """Return what deletions and updates take from others, as refusals: one per step, effect and kind."""
    found: list[Mistake] = []
    steps = tuple(steps)
    seen = ((step.observed, step) for step in steps if isinstance(step.resource, Adoptable))
    declared = {  # what another spec manages is never taken over
        observed.id: step.key for observed, step in seen if observed and not observed.ours and not observed.managed_by
    }
    for step in steps:
        groups: dict[tuple[LossEffect, str, Code, str], list[DeletionLoss]] = defaultdict(list)
        for loss in step.deletion_losses:
            if not loss.is_allowed(allowed):
                groups[loss.effect, loss.kind, loss.code, loss.fix].append(loss)
        found += [_loss(step, losses, declared) for losses in groups.values()]
    return found


def unknown_losses(steps: Iterable[Step], allowed: Set[str]) -> list[str]:
    """Return a warning for each allowed loss that no deletion has."""
    known = {loss.address: loss.name for step in steps for loss in step.deletion_losses}
    unknown = (address for address in sorted(allowed) if address not in known)
    return [f"{OPTION} {address}: no deletion takes it along; {_nearest(address, known)}" for address in unknown]


def _nearest(given: str, known: Mapping[str, str]) -> str:
    """Return which losses may be meant: those of a kind with this name, otherwise those that are spelt alike."""
    name = given.rpartition("/")[2]
    near = [address for address, known_as in known.items() if name in (known_as, address.partition("/")[2])]
    return ask(near or similar(given, known), "the refusal says what to allow")


def _loss(step: Step, losses: Sequence[DeletionLoss], declared: Mapping[str, Key]) -> Mistake:
    """Return the refusal of losses of one kind; ``declared`` are, by id, those that it may take over."""
    first = losses[0]
    cause = "the update" if step.action in (Action.UPDATE, Action.ADOPT) else "its deletion"
    lost = tuple(dict.fromkeys(loss.address for loss in losses))  # two regions may both hide one kind
    options = " ".join(shell.join([OPTION, address]) for address in lost)
    if first.effect is LossEffect.UNREAD:
        what = f"{cause} may take along what cannot be read: {', '.join(loss.detail for loss in losses)}"
        fix = first.fix or "run the command again when the service answers"
    else:
        what = f"{cause} would {first.effect.verb} {', '.join(map(str, losses))}, which this spec does not manage"
        fix = first.fix or f"remove {'it' if len(losses) == 1 else 'them'} first"
        if own := [str(declared[loss.id]) for loss in losses if loss.id in declared]:
            fix += f", or set adopt: permanently on {' and '.join(own)}, and apply"
    fix = f"{fix}, or allow this: {options}"
    return Loss(str(step.key), what, fix, (step.key,), code=first.code, lost=lost)


def refuse_adoptions(steps: Iterable[Step]) -> list[Mistake]:
    """Return the changes of resources that the spec does not manage, as refusals."""
    refusals = []
    for step in steps:
        if step.action is Action.ADOPT and isinstance(step.resource, Adoptable) and not step.resource.adopt:
            owner = step.observed.owner if step.observed else ""
            what = f"exists, is {owner} and would be changed: {_changed(step)}"
            fix = "choose another name, or allow the change (adopt: true in the spec, or --adopt)"
            refusals.append(Mistake.about(step.key, what, fix, code=Code.PLAN_ADOPTS))
    return refusals


def refuse_always(steps: Iterable[Step]) -> list[Mistake]:
    """Return the steps that would replace or adopt another spec's resources, as refusals that no option overrides."""
    steps = tuple(steps)
    found = [_foreign(step) for step in steps if _replaces_another(step)]
    return found + [_of_another(step) for step in steps if _takes_from_another(step)]


def _takes_from_another(step: Step) -> bool:
    owned = step.observed is not None and bool(step.observed.managed_by)
    return step.action is Action.ADOPT and owned and isinstance(step.resource, Adoptable) and step.resource.takes_over


def _of_another(step: Step) -> Mistake:
    owner = step.observed.managed_by if step.observed else ""
    what = f"is {owner_text(owner)}, which would delete it on its own destroy"
    fix = "remove the ownership tag of that spec first, or set adopt: true"
    return Mistake.about(step.key, what, fix, code=Code.PLAN_OTHER_SPEC)


def _replaces_another(step: Step) -> bool:
    """Whether a step would delete a resource that the spec does not manage, which no option allows.

    A kind without an ownership tag, such as a server group, may have any owner: then --allow-replace decides.
    """
    foreign = step.observed is not None and not step.observed.ours
    return step.action is Action.REPLACE and foreign and not isinstance(step.resource, Untagged)


def _foreign(step: Step) -> Mistake:
    owner = step.observed.owner if step.observed else ""
    what = f"exists, is {owner}, and these fields cannot be changed in place: {_changed(step)}"
    code = Code.PLAN_OTHER_SPEC if step.observed and step.observed.managed_by else Code.PLAN_FOREIGN
    return Mistake.about(step.key, what, "choose another name, or declare its current values", code=code)


def _changed(step: Step) -> str:
    return ", ".join(map(text.change_text, step.changes))


def _replacement(step: Step) -> Mistake:
    differences = ", ".join(
        f"{change.field} {change.before!r} -> {change.after!r}"
        for change in step.changes
        if is_replaced_by(step.resource, change)
    )
    return Mistake.about(
        step.key,
        f"exists, and these fields cannot be changed in place: {differences}",
        "choose another name, or allow its replacement (--allow-replace)",
        code=Code.PLAN_REPLACES,
    )


def beyond(shown: Step, now: Step, *, allow_replace: bool) -> list[Mistake]:
    """Return what an updated step would adopt, replace or delete beyond what its plan has shown, as refusals.

    The permission covers what was shown; ``allow_replace``: a plan with it also shows what it may replace.
    """
    found = refuse_always([now])
    same = shown.observed is not None and now.observed is not None and shown.observed.id == now.observed.id
    if not (shown.action is Action.ADOPT and same):
        found += [_not_shown(mistake, "--adopt") for mistake in refuse_adoptions([now])]
    if now.action is Action.REPLACE and not (shown.action is Action.REPLACE and same) and not found:
        found.append(Mistake.about(now.key, "was modified concurrently", AGAIN, code=Code.PLAN_CHANGED))
    # the files of a cluster that follows others differ by what this run has done before
    in_files = supports(shown.resource, WritesFiles)
    judged = not shown.follows or (isinstance(shown.resource, Unguarded) and not in_files)
    if shown.observed is not None and supports(shown.resource, Settles):
        judged &= shown.resource.is_settled(shown.observed)
    is_new = shown.action is Action.CREATE and isinstance(shown.resource, Unguarded)
    is_of_others = now.observed is not None and not now.observed.ours
    if (shown.action in (Action.UPDATE, Action.ADOPT) and same and judged) or (is_new and is_of_others):
        found += _came_in(shown, now)
    if not allow_replace:
        return [*found, *now.losses]
    if not shown.previewed_later:
        known = {thing for loss in shown.losses for thing in loss.things}
        found += [_not_shown(loss, "--allow-replace") for loss in now.losses if not known.issuperset(loss.things)]
    return found


def _came_in(shown: Step, now: Step) -> list[Mistake]:
    """Return the values that somebody has set since the plan, and that would be lost, as refusals.

    Of a list they are its elements; a field that no spec can set, such as a status, is nobody's choice, nor what a
    previewed update does.
    """
    known = {**(shown.observed.values if shown.observed else {}), **{each.field: each.before for each in shown.changes}}
    implied = now.resource.implied if supports(now.resource, HasImplied) else frozenset()
    previewed, refusals = supports(now.resource, PreviewsUpdate), []
    for change in now.changes:
        before, seen = change.before, known.get(change.field)
        what = ""
        if isinstance(before, frozenset | tuple):
            kept = (*_elements(change.after), *_elements(seen))
            lost = () if previewed else sorted(str(element) for element in before if element not in kept)
            what = f"it has {', '.join(lost)}, which this would remove" if lost else ""
        elif change.field not in implied and before not in (None, "", seen):
            what = f"it is {text.show(before)} now, which this would overwrite"
        if what:
            what = f"{change.field} was modified concurrently: {what}"
            refusals.append(Mistake.about(now.key, what, AGAIN, code=Code.PLAN_CHANGED))
    return refusals


def _elements(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, frozenset | tuple) else ()


def beyond_plan(shown: Plan, now: Plan) -> list[Mistake]:
    """Return what a plan of the same steps would delete beyond what the former plan has shown, as refusals."""
    former = {step.key: step for step in shown}
    pairs = ((former[step.key], step) for step in now if step.key in former)
    return [refusal for pair in pairs for refusal in beyond(*pair, allow_replace=shown.allow_replace)]


def _not_shown(mistake: Mistake, option: str) -> Mistake:
    fix = f"plan again, and apply that plan ({option})"
    return replace(mistake, what=f"{mistake.what}; the plan did not show that", fix=fix)
