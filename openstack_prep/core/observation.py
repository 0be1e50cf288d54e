"""Read the existing resources of a spec, and check what would go wrong."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import ParamSpec, TypeVar

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, NotAllowed, NotUnique, PlanRefused, PrepError
from openstack_prep.base.key import labels
from openstack_prep.base.secret import secrets_in
from openstack_prep.base.suggestion import suggest
from openstack_prep.core.deletion_loss import (
    Deletion,
    DeletionLoss,
    Finding,
    LossEffect,
    TakesAlong,
    TakesInUpdate,
    Unchecked,
)
from openstack_prep.core.model import Action, Key, Observed, Resource, Step
from openstack_prep.core.plan import Plan, unresolved_keys
from openstack_prep.core.resource import (
    BareReference,
    Checks,
    ListsAlternatives,
    OnePerSpec,
    Undeclarable,
    deleted_ids,
    kind_supports,
    provided_keys,
    supports,
)
from openstack_prep.core.run import IDS_PER_REQUEST, Run
from openstack_prep.core.twin import check_delete

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
DELETING = (Action.DELETE, Action.REPLACE)
UPDATING = (Action.UPDATE, Action.ADOPT)
JOBS = 8
"""Default number of parallel requests and steps."""


def in_parallel(work: Callable[[T], R], items: Iterable[T], *, jobs: int) -> list[R]:
    """Return the result of each item, of at most so many at a time; with one job in this thread."""
    items = list(items)
    if jobs == 1 or len(items) < 2:
        return list(map(work, items))
    with ThreadPoolExecutor(min(jobs, len(items))) as pool:
        return list(pool.map(work, items))


class ThisThread(Executor):
    """Executes at once, in the calling thread: for one job at a time another thread costs more than it brings."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        done: Future[R] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            done.set_exception(error)
        return done


@contextlib.contextmanager
def beside(work: Callable[[], R] | None, *, jobs: int) -> Iterator[Callable[[], R | None]]:
    """Do some work, if any, beside a block, to which a function is given that returns the result.

    It is done when the block is left; with one job in this thread.
    """
    if work is None:
        yield lambda: None
    elif jobs == 1:
        result: Future[R] = Future()

        def get() -> R:
            if not result.done():
                try:
                    result.set_result(work())
                except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
                    result.set_exception(error)
            return result.result()

        yield get
        # an error is raised to whoever asked for the result; if nobody did, it does not matter
        with contextlib.suppress(Exception):
            get()
    else:
        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(work).result


def observe(
    run: Run,
    resources: Sequence[Resource],
    *,
    jobs: int = JOBS,
    failed: Callable[[type[Resource], CloudError], None] | None = None,
) -> dict[Key, Observed]:
    """Return the existing resources, each kind read in bulk, the kinds in parallel.

    Kinds whose service fails are left out if ``failed`` is given, which is called with the kind and the error.
    """

    def find(group: tuple[type[Resource], list[Resource]]) -> Mapping[Key, Observed]:
        kind, wanted = group
        try:
            return kind.find(run, wanted)
        except CloudError as error:
            if failed is None or isinstance(error, NotAllowed | NotUnique):
                raise
            failed(kind, error)
            return {}

    groups: dict[type[Resource], list[Resource]] = defaultdict(list)
    for resource in resources:
        groups[type(resource)].append(resource)
    # one thread per kind: a kind reads one list for all of its resources
    found = in_parallel(find, groups.items(), jobs=jobs)
    return {key: observed for each in found for key, observed in each.items()}


def examine(
    run: Run, resources: Sequence[Resource], *, others: Set[Key] = frozenset(), jobs: int = JOBS
) -> tuple[dict[Key, Observed], list[Mistake]]:
    """Read the existing resources and everything that would go wrong: missing references, and each kind's checks.

    ``others`` are further resources that the spec would create. Resources found only by name or id are left out.
    """
    declared = {key for resource in resources for key in (resource.key, *provided_keys(resource))} | run.known.keys()
    references = (reference for resource in resources for reference in resource.references())
    outside = {reference.key: reference for reference in references if reference.key not in declared}
    try:
        observed = observe(run, [*resources, *outside.values()], jobs=jobs)
    except NotUnique as error:
        raise PlanRefused([Mistake("cloud", str(error), code=error.code)]) from error
    checking = [resource for resource in resources if supports(resource, Checks)]
    checks = in_parallel(lambda resource: list(resource.check(run, observed.get(resource.key))), checking, jobs=jobs)
    names = labels((*declared, *outside))
    mistakes = [
        Mistake.about(
            _users_of(key, resources),
            f"{_shown(key, names)} does not exist",
            suggestion(run, reference, _fix(reference, declared, others), declared),
            code=Code.SPEC_UNRESOLVED,
        )
        for key, reference in outside.items()
        if key not in observed
    ]
    mistakes += [
        Mistake.about(resource.key, f"a secret of it has no value: {text}", "plan again", code=Code.SECRET_MISSING)
        for resource in resources
        for text in dict.fromkeys(secret.missing for secret in secrets_in(vars(resource)) if secret.missing)
    ]
    # what was found by its name or id alone lacks the values that a resource with the same key compares
    described = {
        key: found
        for key, found in observed.items()
        if key not in outside or not isinstance(outside[key], BareReference)
    }
    return described, mistakes + [mistake for found in checks for mistake in found]


def examine_deletes(run: Run, plan: Plan, *, jobs: int = JOBS) -> list[Mistake]:
    """Check which deletions and replacements of a plan the services would refuse in its middle, or would break."""
    going = [(step.resource, step.observed) for step in _deletions(plan) if step.observed is not None]
    ids = going_ids(plan)
    view = run.for_deletions(companions(plan))
    found = in_parallel(lambda each: list(check_delete(each[0], view, each[1], ids)), going, jobs=jobs)
    return [mistake for each in found for mistake in each]


def _deletions(plan: Plan) -> Iterator[Step]:
    """Yield the deletions and replacements of a plan, without those that only seem so."""
    return (step for step in _resolved(plan) if step.action in DELETING)


def _resolved(plan: Plan) -> Iterator[Step]:
    unresolved = unresolved_keys(plan.refusals)
    return (step for step in plan if step.key not in unresolved)


def find_losses(run: Run, plan: Plan, *, jobs: int = JOBS) -> Plan:
    """Return a plan whose deletions, replacements and updates show what they take from others.

    Each kind is read in bulk.
    """
    found = losses_of(
        run.for_deletions(companions(plan), is_patient=False), _resolved(plan), going_ids(plan), jobs=jobs
    )
    managed = managed_ids(plan)
    return replace(plan, steps=tuple(with_findings(step, found.get(step.key, ()), managed) for step in plan))


def losses_of(
    run: Run, steps: Iterable[Step], going: frozenset[str], *, jobs: int = 1
) -> dict[Key, list[DeletionLoss | Unchecked]]:
    """Return what deletions and updates take from others, by the key of their step."""
    groups: dict[tuple[object, ...], list[Deletion]] = defaultdict(list)
    findings_by_key: dict[Key, list[DeletionLoss | Unchecked]] = defaultdict(list)
    for step in steps:
        if step.observed is None:
            continue
        if step.action in UPDATING and supports(step.resource, TakesInUpdate):
            findings_by_key[step.key] += step.resource.list_taken(step.observed)
        if step.action in DELETING:  # companions together: what is read one by one is read by several threads
            beside = run.companions_of(step.resource.kind, step.observed.id)[:1] if run.companions else ()
            groups[type(step.resource), beside].append(Deletion(step.resource, step.observed))

    def read(deletions: list[Deletion]) -> list[Finding]:
        kind = type(deletions[0].resource)
        return list(kind.find_losses(run, deletions, going)) if kind_supports(kind, TakesAlong) else []

    for findings in in_parallel(read, groups.values(), jobs=jobs):
        for key, finding in findings:
            findings_by_key[key].append(finding)
    return findings_by_key


def with_findings(step: Step, found: Iterable[DeletionLoss | Unchecked], managed: frozenset[str]) -> Step:
    """Return a step with what its deletion or update takes from others.

    ``managed`` are the ids of what the spec itself manages: to cut that off takes nothing from others.
    """
    losses = [loss for loss in found if isinstance(loss, DeletionLoss)]
    foreign = (loss for loss in losses if loss.effect is not LossEffect.CUT_OFF or loss.id not in managed)
    unchecked = (each for each in found if isinstance(each, Unchecked))
    return replace(step, deletion_losses=tuple(foreign), unchecked=tuple(unchecked))


def companions(steps: Iterable[Step]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return, by kind and id of each resource that is deleted, the ids of those that the same list is read for."""
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    for step in steps:
        if step.action in DELETING and step.observed is not None:
            kinds[step.resource.kind][step.observed.id] = None
    together_by_id: dict[tuple[str, str], tuple[str, ...]] = {}
    for kind, ids in kinds.items():
        size = math.ceil(len(ids) / math.ceil(len(ids) / IDS_PER_REQUEST))  # none much shorter than the others
        for first in range(0, len(ids), size):
            together = tuple(ids)[first : first + size]
            together_by_id |= dict.fromkeys(((kind, resource_id) for resource_id in together), together)
    return together_by_id


def going_ids(plan: Plan) -> frozenset[str]:
    """Return the ids of everything that a plan deletes, also to create it again."""
    going = ((step.resource, step.observed) for step in plan if step.action in DELETING)
    return frozenset[str]().union(*(deleted_ids(one, seen) for one, seen in going if seen is not None))


def managed_ids(plan: Plan) -> frozenset[str]:
    """Return the ids of everything that the spec manages."""
    managed = (step.observed for step in plan if step.observed is not None and step.observed.ours)
    return frozenset(resource_id for observed in managed for resource_id in (observed.id, *observed.contained_ids))


def _shown(key: Key, names: Mapping[Key, str]) -> str:
    """Return a key's text, with its domain if it has one, and with its project only if the spec has several."""
    return key.qualified if len(key.scope) == 1 else names[key]


def suggestion(run: Run, missing: Resource, otherwise: str, declared: Set[Key] = frozenset()) -> str:
    """Return which declared or existing resource a reference may mean, or else another fix."""
    names = {key.name for key in declared if (key.kind, key.scope) == (missing.key.kind, missing.key.scope)}
    with contextlib.suppress(PrepError):  # the mistake itself does not depend on it
        names |= {*missing.list_alternatives(run)} if supports(missing, ListsAlternatives) else set()
    return suggest(missing.name, sorted(names - {missing.name, ""}), otherwise, count=3)


def _fix(missing: Resource, declared: Set[Key], others: Set[Key]) -> str:
    if missing.key in others:
        return "apply the whole spec first"
    if isinstance(missing, OnePerSpec) and any(key.kind == missing.kind for key in declared):
        return f"apply a spec that declares this {missing.kind} first, or correct the name"
    return (
        "declare it in the spec, or correct the name" if not isinstance(missing, Undeclarable) else "correct the name"
    )


def _users_of(key: Key, resources: Iterable[Resource]) -> tuple[Key, ...]:
    return tuple(resource.key for resource in resources if key in {needed.key for needed in resource.references()})
