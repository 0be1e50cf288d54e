"""A run of a fleet: its chosen targets, what became of them, and the journal of a run that changes clouds."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, PlanRefused, PrepError
from openstack_prep.base.raw import Values
from openstack_prep.core import interrupts
from openstack_prep.fleet import journal, process, specs, waves
from openstack_prep.fleet.engine import Engine, Event, Limits, Tell, silent, threads
from openstack_prep.fleet.file.model import Fleet
from openstack_prep.fleet.journal import Journal
from openstack_prep.fleet.order import Options, Order, Outcome, Status, Verb
from openstack_prep.fleet.specs import Checked
from openstack_prep.fleet.waves import Wave
from openstack_prep.spec import Spec

JOBS = 8
ENDED_BADLY = (Status.FAILED, Status.INTERRUPTED, Status.NOT_BEGUN)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of the targets of a fleet."""

    fleet: str
    """Name of the fleet."""
    outcomes: tuple[Outcome, ...]
    """One per target, in the order of the waves."""
    left_out: tuple[str, ...] = ()
    """Targets that an interrupted run had done before."""
    seconds: float = 0.0
    """Duration in seconds."""
    interrupt: int | None = None
    """The signal that stopped the run; None when nothing did."""

    def of(self, *statuses: Status) -> list[Outcome]:
        """Return the outcomes with one of these statuses."""
        return [each for each in self.outcomes if each.status in statuses]

    @property
    def exit_code(self) -> int:
        """What the command exits with: 0; 1 for failures and drift; 2 for refusals; 128 and the number of a signal."""
        if self.interrupt is not None:
            return interrupts.exit_code(self.interrupt)
        if self.of(*ENDED_BADLY, Status.DRIFT):
            return 1
        return 2 if self.of(Status.REFUSED) else 0

    def raise_for_failures(self) -> None:
        """Raise FleetFailed if a target was refused, failed, was interrupted or was not begun."""
        bad = self.of(Status.REFUSED, *ENDED_BADLY)
        if bad:
            lines = [f"{each.target}: {each.status}: {each.first_error or each.summary}" for each in bad]
            raise FleetFailed("\n".join(lines), self)


class FleetFailed(PrepError):
    """Some targets were refused, failed or were not begun; ``result`` says which and why."""

    code = "fleet.failed"

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Chosen:
    """The chosen targets of a fleet, whose specs were read."""

    fleet: Fleet
    waves: tuple[Wave, ...]
    orders: Mapping[str, Order]
    checked: Checked


def choose(
    fleet: Fleet,
    only: Collection[str] = (),
    cloud: str | None = None,
    examine: Callable[[Spec], tuple[Spec, list[str]]] | None = None,
) -> Chosen:
    """Return the targets of some groups or names, or all; raises SpecError, ConfigError.

    ``cloud`` is the entry for targets that name none, ``examine`` a function that returns a spec with the
    resources that a plan lists, and warnings about them.
    """
    targets = {each.name: each for each in waves.choose(fleet, only)}
    folder = str(fleet.folder)
    orders = {
        name: Order(
            target=name,
            verb="plan",
            spec=str(each.spec),
            variables=each.variables,
            places={variable: f"{each.place}: variables.{variable}" for variable in each.variables},
            folder=folder,
            vars_files=tuple(map(str, each.vars_files)),
            cloud=each.cloud,
            region=each.region,
        )
        for name, each in targets.items()
    }
    checked = specs.check(targets, orders, cloud, examine)
    return Chosen(fleet, tuple(waves.arrange(fleet, list(targets.values()))), checked.orders, checked)


def run(
    chosen: Chosen,
    verb: Verb,
    options: Options,
    *,
    jobs: int = JOBS,
    executor: Callable[[int], Executor] = threads,
    tell: Tell = silent,
    without: Collection[str] = (),
    settled: Mapping[str, Outcome] | None = None,
    agreed: Mapping[str, Values] | None = None,
    saved: Mapping[str, Values] | None = None,
    saved_in: str = "",
) -> Result:
    """Do the same for all chosen targets; never raises for a target.

    ``without`` are targets to leave out, ``settled`` outcomes that are known already, ``agreed`` and ``saved`` plans
    that are carried out. What only reads has one wave.
    """
    begun, phase = time.monotonic(), secrets.token_hex(4)
    clouds = chosen.checked.clouds
    neighbours = Counter(clouds[name] for name in chosen.orders if name not in without)
    orders = {
        name: replace(
            each,
            verb=verb,
            options=options,
            parallel=jobs,
            phase=phase,
            neighbours=neighbours[clouds[name]],
            agreed=(agreed or {}).get(name),
            saved=(saved or {}).get(name),
            saved_in=saved_in,
        )
        for name, each in chosen.orders.items()
        if name not in without
    }
    changes = verb in ("apply", "destroy")
    engine = Engine(
        executor,
        Limits(chosen.fleet.limits),
        clouds,
        jobs,
        chosen.fleet.stop_after if changes else len(orders) + 1,
        tell,
        settled or {},
    )
    names = [(wave.title, [orders[each.name] for each in wave.targets if each.name in orders]) for wave in chosen.waves]
    try:
        engine.run(names if changes else [("all targets", list(orders.values()))])
    finally:
        process.end_phase(phase)
    return Result(
        fleet=chosen.fleet.name,
        outcomes=tuple(engine.outcomes[name] for name in orders),
        left_out=tuple(name for name in chosen.orders if name in without),
        seconds=time.monotonic() - begun,
        interrupt=engine.interrupt,
    )


@dataclass(frozen=True)
class Changing:
    """A run that changes clouds, with its journal: at most one per fleet at a time."""

    chosen: Chosen
    verb: Verb
    options: Options
    journal: Journal
    saved: Mapping[str, Values] = field(default_factory=dict)
    saved_in: str = ""

    def plan(self, *, jobs: int, executor: Callable[[int], Executor] = threads, tell: Tell = silent) -> Result:
        """Return what the run would do to the targets that an interrupted run has left."""
        options = replace(self.options, destroy=self.verb == "destroy")
        done = self.journal.done
        return run(self.chosen, "plan", options, jobs=jobs, executor=executor, tell=tell, without=done)

    def carry_out(
        self,
        planned: Result | None = None,
        *,
        jobs: int,
        executor: Callable[[int], Executor] = threads,
        tell: Tell = silent,
    ) -> Result:
        """Carry out the plans that were agreed to, or plan and carry out; note each target that has ended."""
        agreed, settled = {}, {}
        for each in planned.outcomes if planned else ():
            if each.status is Status.CHANGES and each.agreement is not None:
                agreed[each.target] = each.agreement
            else:
                settled[each.target] = each

        def note(event: Event) -> None:
            if event.outcome is not None:
                self.journal.note(event.outcome)
            tell(event)

        missing = {
            name: Outcome(
                target=name, status=Status.REFUSED, summary="refused", errors=[_unplanned(name, self.saved_in)]
            )
            for name in self.chosen.orders
            if self.saved_in and name not in self.saved
        }
        result = run(
            self.chosen,
            self.verb,
            self.options,
            jobs=jobs,
            executor=executor,
            tell=note,
            without=self.journal.done,
            settled=settled | missing,
            agreed=agreed,
            saved=self.saved,
            saved_in=self.saved_in,
        )
        if result.interrupt is None and not result.of(Status.NOT_BEGUN):
            self.journal.complete()
        return result


def _unplanned(target: str, path: str) -> Values:
    from openstack_prep.base.diagnostic import Diagnostic

    what, fix = "the saved plan has no plan of this target", "create it again with `openstack-prep fleet plan -o`"
    return Diagnostic(code=Code.PLAN_CHANGED, where=f"{path}: {target}", what=what, fix=fix).data()


def _unknown(target: str, path: str) -> Mistake:
    fix = "create the plans again with `openstack-prep fleet plan -o`"
    return Mistake(f"{path}: {target}", "the fleet no longer has this target", fix, code=Code.PLAN_CHANGED)


@contextlib.contextmanager
def changing(
    chosen: Chosen,
    verb: Verb,
    options: Options,
    *,
    restart: bool = False,
    saved: Mapping[str, Values] | None = None,
    saved_in: str = "",
) -> Iterator[Changing]:
    """Yield a run that changes clouds; raises LeaseHeld if another run of the fleet is at work.

    A run of the same verb that was interrupted is continued unless ``restart`` is set.
    """
    plans = saved or {}
    known = {each.name for each in chosen.fleet.targets}
    refusals = [_unknown(name, saved_in) for name in plans if name not in known]
    if refusals:
        raise PlanRefused(refusals)
    orders = {
        name: replace(each, verb=verb, options=options, saved=plans.get(name)) for name, each in chosen.orders.items()
    }
    with journal.opened(chosen.fleet, verb, orders, chosen.checked.files, restart=restart) as notes:
        yield Changing(chosen, verb, options, notes, plans, saved_in)
