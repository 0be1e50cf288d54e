"""Plan, apply, destroy and audit a fleet from Python."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor

from openstack_prep.fleet.engine import Tell, silent, threads
from openstack_prep.fleet.file.fields import Fleet
from openstack_prep.fleet.order import Options
from openstack_prep.fleet.runs import JOBS, FleetResult, changing, choose, run


def plan(
    fleet: Fleet,
    *,
    only: Collection[str] = (),
    cloud: str | None = None,
    allow_replace: bool = False,
    adopt: bool = False,
    prune: bool = False,
    allow_loss: Collection[str] = (),
    jobs: int = JOBS,
    executor: Callable[[int], Executor] = threads,
    tell: Tell = silent,
) -> FleetResult:
    """Return what apply would do to each target; nothing is changed.

    ``only`` are names of groups and targets, ``cloud`` is the entry of clouds.yaml for targets and specs without one.
    ``allow_replace``, ``adopt``, ``prune`` and ``allow_loss`` are those of ``openstack_prep.plan``. ``jobs`` is how
    many requests are sent at a time, by an ``executor`` of ``concurrent.futures`` that is made for so many targets at a
    time. ``tell`` is called with an Event whenever a target begins or ends. Raises SpecError with the mistakes in all
    specs, ConfigError.
    """
    options = Options(allow_replace=allow_replace, adopt=adopt, prune=prune, allow_loss=tuple(allow_loss), data=True)
    return run(choose(fleet, only, cloud), "plan", options, jobs=jobs, executor=executor, tell=tell)


def apply(
    fleet: Fleet,
    *,
    only: Collection[str] = (),
    cloud: str | None = None,
    allow_replace: bool = False,
    adopt: bool = False,
    prune: bool = False,
    allow_loss: Collection[str] = (),
    jobs: int = JOBS,
    executor: Callable[[int], Executor] = threads,
    tell: Tell = silent,
    lock_timeout: float = 60.0,
    restart: bool = False,
) -> FleetResult:
    """Plan and apply each target, wave by wave; call ``raise_for_failures`` of the result.

    ``only``, ``cloud``, ``allow_replace``, ``adopt``, ``prune``, ``allow_loss``, ``jobs``, ``executor`` and ``tell``
    are those of ``plan``, ``lock_timeout`` (seconds) that of ``openstack_prep.apply``. A run that was interrupted is
    continued unless ``restart`` is set. Raises SpecError, ConfigError, LeaseHeld if another run of the fleet is at
    work.
    """
    options = Options(
        allow_replace=allow_replace,
        adopt=adopt,
        prune=prune,
        allow_loss=tuple(allow_loss),
        lock_timeout=lock_timeout,
        data=True,
    )
    with changing(choose(fleet, only, cloud), "apply", options, restart=restart) as made:
        return made.carry_out(jobs=jobs, executor=executor, tell=tell)


def destroy(
    fleet: Fleet,
    *,
    only: Collection[str] = (),
    cloud: str | None = None,
    allow_loss: Collection[str] = (),
    jobs: int = JOBS,
    executor: Callable[[int], Executor] = threads,
    tell: Tell = silent,
    lock_timeout: float = 60.0,
    restart: bool = False,
) -> FleetResult:
    """Delete what the spec of each target manages, wave by wave; everything else is kept.

    ``only``, ``cloud``, ``allow_loss``, ``jobs``, ``executor``, ``tell``, ``lock_timeout`` (seconds) and ``restart``
    are those of ``apply``. Raises SpecError, ConfigError, LeaseHeld.
    """
    options = Options(allow_loss=tuple(allow_loss), lock_timeout=lock_timeout, data=True)
    with changing(choose(fleet, only, cloud), "destroy", options, restart=restart) as made:
        return made.carry_out(jobs=jobs, executor=executor, tell=tell)


def audit(
    fleet: Fleet,
    *,
    only: Collection[str] = (),
    cloud: str | None = None,
    jobs: int = JOBS,
    executor: Callable[[int], Executor] = threads,
    tell: Tell = silent,
) -> FleetResult:
    """Return what differs from the spec of each target, is undeclared, or is managed by nobody.

    ``only``, ``cloud``, ``jobs``, ``executor`` and ``tell`` are those of ``plan``. Raises SpecError, ConfigError.
    """
    return run(choose(fleet, only, cloud), "audit", Options(data=True), jobs=jobs, executor=executor, tell=tell)
