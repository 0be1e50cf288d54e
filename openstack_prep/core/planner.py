"""Compare the desired with the existing resources and decide the steps: pure, no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.key import labels
from openstack_prep.core import permission
from openstack_prep.core.model import MANAGED, Action, Adoptable, Change, Groups, Key, Observed, Resource, Step
from openstack_prep.core.plan import Plan, unresolved_keys
from openstack_prep.core.resource import (
    LosesInUpdate,
    PreviewsUpdate,
    YieldsTo,
    followed_keys,
    is_replaced_by,
    outlived_keys,
    provided_keys,
    supports,
)
from openstack_prep.core.twin import Twin, created_at_once

UNDECLARED = "no longer in the spec"


def diff(resource: Resource, observed: Observed) -> tuple[Change, ...]:
    """Return the declared fields that differ from the cloud, in the order of declaration."""
    return tuple(
        Change(name, observed.values.get(name), value)
        for name, value in resource.desired().items()
        if observed.values.get(name) != value
    )


def decide(resource: Resource, observed: Observed | None, after: Groups = frozenset()) -> Step:
    """Return the step that brings one resource to its desired state."""
    if observed is None:
        return Step(resource=resource, action=Action.CREATE, after=after)
    changes = diff(resource, observed)
    if isinstance(resource, Adoptable) and resource.takes_over and not observed.ours:
        changes += (Change(MANAGED, False, True),)
    action = Action.KEEP
    if changes:
        fixed = any(is_replaced_by(resource, change) for change in changes)
        foreign = isinstance(resource, Adoptable) and not observed.ours
        action = Action.REPLACE if fixed else Action.ADOPT if foreign else Action.UPDATE
    step = Step(
        resource=resource,
        action=action,
        observed=observed,
        changes=changes,
        after=after,
        reason="" if observed.ours else observed.known_owner,
    )
    return _with_losses(step)


def _with_losses(step: Step) -> Step:
    """Return a step with the losses that it causes if it is an update."""
    if step.action not in (Action.UPDATE, Action.ADOPT) or step.observed is None:
        return step
    losses = step.resource.list_losses(step.observed) if supports(step.resource, LosesInUpdate) else ()
    return replace(step, losses=(*permission.lost_secrets(step), *losses))


def plan_apply(
    spec: str,
    resources: Sequence[Resource],
    observed: Mapping[Key, Observed],
    *,
    mistakes: Sequence[Mistake] = (),
    allow_replace: bool = False,
    adopt: bool = False,
) -> Plan:
    """Plan the steps to the desired state; replacements are refusals unless they are allowed.

    Raises SpecError if two resources share a key or the references form a cycle.
    """
    edges = dependencies(resources)
    ordered = in_order(resources, edges)
    twins = _twins(ordered, edges, observed)
    # twins first, so that the step of the resource itself finds just one with its name
    steps: list[Step] = [step for each in reversed(ordered) for step in twins[each.key]]
    pending: dict[Key, Action] = {}
    unresolved = unresolved_keys(mistakes)
    names = labels(edges)
    for resource in ordered:
        after = edges[resource.key] | {frozenset(step.key for step in twins[resource.key])}
        step = decide(resource, observed.get(resource.key), after)
        step = _following(replace(step, label=names[resource.key]), pending.keys(), names)
        step = step if step.key in unresolved else _previewed_later(step, pending, names, allow_replace)
        steps.append(step)
        if step.action is not Action.KEEP:
            pending[step.key] = step.action
    refusals = list(mistakes)
    judged = [step for step in steps if step.key not in unresolved]
    if not allow_replace:
        refusals += permission.refuse_replacements(judged)
    refusals += permission.refuse_always(judged)
    if not adopt:
        refusals += permission.refuse_adoptions(judged)
    return Plan(
        spec=spec,
        purpose="apply",
        steps=tuple(steps),
        refusals=tuple(refusals),
        allow_replace=allow_replace,
        adopt=adopt,
    )


def plan_removals(made: Plan, undeclared: Sequence[tuple[Resource, Observed]], *, prune: bool) -> Plan:
    """Return a plan that also names managed resources that are no longer declared; with ``prune`` apply deletes them.

    They are deleted last, dependents first, and only if all other steps succeeded. Resources that may belong to another
    spec are only named.
    """
    undeclared_steps = plan_destroy(made.spec, (), {}, undeclared).steps
    names = labels([step.key for step in (*made.steps, *undeclared_steps)])
    before = frozenset(step.key for step in made.steps)
    named = [replace(step, label=names[step.key]) for step in undeclared_steps]
    kept = [step for step in named if step.action is Action.KEEP]
    # after all other steps: a new resource may replace one that is no longer declared
    removals = [
        replace(step, after=step.after | {before}, reason=UNDECLARED) for step in named if step.action is Action.DELETE
    ]
    if prune:
        return replace(made, steps=(*made.steps, *removals), undeclared=tuple(kept))
    return replace(made, undeclared=(*removals, *kept))


def _twins(
    ordered: Sequence[Resource],
    edges: Mapping[Key, Groups],
    observed: Mapping[Key, Observed],
    *,
    all_go: bool = False,
) -> dict[Key, tuple[Step, ...]]:
    """Return, for each resource, the steps that delete its twins, after those of its dependents.

    A twin that others use is kept. ``all_go``: no twin remains, because the resource itself is deleted.
    """
    steps: dict[Key, tuple[Step, ...]] = {resource.key: () for resource in ordered}
    with_twins = [each for each in reversed(ordered) if (found := observed.get(each.key)) and found.twins]
    # most plans have no twins, and need no inversion
    dependents = _inverted(edges, {}) if with_twins else {}
    for resource in with_twins:
        found = observed[resource.key]
        twins = frozenset(step.key for group in dependents[resource.key] for key in group for step in steps[key])
        after = frozenset({twins, *(dependents[resource.key] if all_go else ())})
        steps[resource.key] = tuple(_twin_step(resource, found, twin, after, all_go) for twin in found.twins)
    return steps


def _inverted(edges: Mapping[Key, Groups], twins: Mapping[Key, Sequence[Step]]) -> dict[Key, Groups]:
    """Return, for each key, the keys that come after it, with those of their ``twins``."""
    users: dict[frozenset[Key], set[Key]] = defaultdict(set)
    for key, groups in edges.items():
        for group in groups:
            users[group] |= {key, *(step.key for step in twins.get(key, ()))}
    dependents: dict[Key, set[frozenset[Key]]] = defaultdict(set)
    for group, keys in users.items():
        shared = frozenset(keys)
        for need in group:
            dependents[need].add(shared)
    return {key: frozenset(dependents[key]) for key in edges}


def _twin_step(resource: Resource, kept: Observed, twin: Observed, after: Groups, all_go: bool) -> Step:
    step = replace(delete_twin(resource, kept, twin), after=after)
    if all_go:
        step = replace(step, resource=Twin(of=resource, id=twin.id))
    if not twin.ours:
        reason = f"duplicate of {kept.id} without an ownership tag; if nobody needs it, delete it manually"
        return replace(step, action=Action.KEEP, reason=reason)
    if not created_at_once(kept, twin):
        reason = f"duplicate of {kept.id}, but not of the same time, so somebody may have copied the ownership tag"
        return replace(step, action=Action.KEEP, reason=f"{reason}; if nobody needs it, delete it manually")
    if twin.used_by:
        holders = ", ".join(twin.used_by)
        fix = (
            "detach or delete them, then run destroy again" if all_go else "move them to that one, then run apply again"
        )
        return replace(step, action=Action.KEEP, reason=f"duplicate of {kept.id}, but used by {holders}; {fix}")
    return step


def delete_twin(resource: Resource, kept: Observed, twin: Observed) -> Step:
    """Return the step that deletes one twin of a resource."""
    return Step(
        resource=Twin(of=resource, id=twin.id, kept=kept.id),
        action=Action.DELETE,
        observed=twin,
        reason=f"created by a concurrent or interrupted run; {kept.id} is kept",
        duplicate_of=kept.id,
    )


def _following(step: Step, pending: Set[Key], names: Mapping[Key, str]) -> Step:
    """Return a step with the pending steps that it follows; these may cause work although nothing differs yet."""
    follows = frozenset(followed_keys(step.resource)) & pending
    if not follows:
        return step
    action = Action.UPDATE if step.action is Action.KEEP else step.action
    reason = f"as {', '.join(sorted(names[key] for key in follows))} will be"
    return _with_losses(replace(step, action=action, follows=follows, reason=_joined(step.reason, reason)))


def _previewed_later(step: Step, pending: Mapping[Key, Action], names: Mapping[Key, str], allow_replace: bool) -> Step:
    """Return an update whose text shows that, and from when on, the service can preview all of it."""
    if step.action not in (Action.UPDATE, Action.ADOPT) or step.observed is None:
        return step
    if not supports(step.resource, PreviewsUpdate):
        return step
    missing = sorted(names[key] for key in step.needs if pending.get(key) in (Action.CREATE, Action.REPLACE))
    if not missing and step.resource.is_foreseen(step.observed):
        return step
    when = f"once {', '.join(missing)} exists" if missing else "right before it is sent"
    reason = f"the update is previewed again {when}, and "
    reason += "may replace anything in it" if allow_replace else "refused at that time if it replaces anything"
    return replace(step, reason=_joined(step.reason, f"{reason} (--allow-replace)"), previewed_later=True)


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))


def plan_destroy(
    spec: str,
    resources: Sequence[Resource],
    observed: Mapping[Key, Observed],
    undeclared: Sequence[tuple[Resource, Observed]] = (),
) -> Plan:
    """Plan to delete everything that the spec manages, dependents first; the rest is kept, with the reason."""
    resources = (*resources, *(resource for resource, _ in undeclared))
    left = {resource.key: existing for resource, existing in undeclared}
    observed = {**observed, **left}
    edges = dependencies(resources, creating=False)
    ordered = in_order(resources, edges)
    twins = _twins(ordered, edges, observed, all_go=True)
    dependents = _inverted(edges, twins)
    steps: list[Step] = []
    names = labels(edges)
    for resource in reversed(ordered):
        steps += twins[resource.key]
        existing = observed.get(resource.key)
        if existing is None:
            continue
        owner = existing.known_owner or existing.kept_because or existing.owner
        step = Step(
            resource=resource,
            action=Action.KEEP,
            observed=existing,
            reason=_kept(spec, existing) if resource.key in left else owner,
            label=names[resource.key],
        )
        if existing.ours:
            step = replace(step, action=Action.DELETE, after=dependents[resource.key], reason=existing.kept_because)
        steps.append(step)
    return Plan(spec=spec, purpose="destroy", steps=tuple(steps))


def _kept(spec: str, existing: Observed) -> str:
    """Return why a resource that names the spec as its owner is kept although the spec does not declare it."""
    if existing.doubt:
        return f"not in the spec, kept: {existing.doubt}"
    return (
        f"{UNDECLARED}, kept: it may belong to another spec named {spec}; "
        "to delete it, run destroy with a spec that declares it"
    )


def dependencies(resources: Sequence[Resource], *, creating: bool = True, existing: bool = False) -> dict[Key, Groups]:
    """Return, for each resource, the keys of this spec that come before it: for each thing it needs its providers.

    ``existing``: only those without which it cannot exist.
    """
    found: dict[Key, set[Key]] = defaultdict(set)
    edges: dict[Key, Groups] = {}
    for resource in resources:
        for provided in provided_keys(resource):
            found[provided].add(resource.key)
    providers = {provided: frozenset(keys) for provided, keys in found.items()}
    for resource in resources:
        if resource.key in edges:
            twice, fix = "is declared twice", "choose distinct names"
            raise SpecError([Mistake.about(resource.key, twice, fix, code=Code.SPEC_DUPLICATE_NAME)])
        wanted = {reference.key for reference in resource.references()} | {*resource.needs(), *followed_keys(resource)}
        # a deletion asks for nothing that has to be free
        wanted |= {*resource.yields_to()} if creating and supports(resource, YieldsTo) else set()
        wanted -= {*outlived_keys(resource)} if existing else set()
        own = {resource.key}
        # a resource may be one of several that provide what it needs, such as a part of a stack
        groups = (providers[need] for need in wanted & providers.keys())
        edges[resource.key] = frozenset(group if own.isdisjoint(group) else group - own for group in groups) - {
            frozenset()
        }
    return edges


def in_order(resources: Sequence[Resource], edges: Mapping[Key, Groups]) -> list[Resource]:
    """Sort resources so that each comes after its dependencies, and otherwise as declared; raises SpecError."""
    # the order of the spec decides where dependencies do not, so that two plans of a spec are the same
    rank = {resource.key: number for number, resource in enumerate(resources)}
    ordered: dict[int, Resource] = {}
    path: dict[int, Key] = {}  # from a dependent to what it needs
    placed: set[frozenset[Key]] = set()  # many resources may share a group: only the first one reads it

    def place(number: int) -> None:
        if number in path:
            ring = list(path.values())[list(path).index(number) :]
            what = "these resources refer to one another in a cycle"
            where = " -> ".join(map(str, (*ring, ring[0])))
            raise SpecError([Mistake(where, what, "remove one of these references", code=Code.SPEC_CYCLE)])
        path[number] = resources[number].key
        # a group that was placed before adds nothing, and may have thousands of members
        groups = edges[path[number]] - placed
        for needed in sorted({rank[key] for group in groups for key in group}):
            if needed not in ordered:
                place(needed)
        placed.update(groups)
        del path[number]
        ordered[number] = resources[number]

    for number in range(len(resources)):
        if number not in ordered:
            place(number)
    return list(ordered.values())
