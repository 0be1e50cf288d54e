"""A run of a fleet: its chosen targets, what became of them, and the journal of a run that changes clouds."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import math
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from openstack_prep.base.codes import Code
from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import ConfigError, LeaseHeld, Mistake, PlanRefused, PrepError, SpecError
from openstack_prep.base.given_file import MIB, read_text
from openstack_prep.base.private_file import make_private_folder
from openstack_prep.base.raw import Values, walk
from openstack_prep.base.secret import SOURCE_NAMES
from openstack_prep.base.secret_forms import has_url_secrets, list_named_secrets
from openstack_prep.base.state_folder import folder
from openstack_prep.cloud import lease
from openstack_prep.cloud.connection import chosen_entry
from openstack_prep.core import interrupts
from openstack_prep.fleet import process
from openstack_prep.fleet.engine import Engine, FleetEvent, Limits, Tell, silent, threads
from openstack_prep.fleet.file.fields import Fleet, FleetTarget, WaveFields
from openstack_prep.fleet.file.targets import meant
from openstack_prep.fleet.order import Options, Order, TargetOutcome, TargetStatus, Verb
from openstack_prep.spec import Spec
from openstack_prep.spec.variables import ENVIRONMENT
from openstack_prep.verbs.plan_file import AGAIN
from openstack_prep.verbs.spec_files import local_files

# What a run of a fleet has done so far: one line per target that ended, so that the next run goes on with the rest.
#
# The file is private, beside the log of requests (``reports/last_run.py``), and can be deleted at any time. While a run
# is at work it holds flock(2) on it, which the kernel releases with the process: a second run is refused.

FORMAT = 1
LATEST = timedelta(days=1)
"""An interrupted run is continued for so long; afterwards too much may have changed in the cloud."""
ENDED_WELL = (TargetStatus.DONE, TargetStatus.UNCHANGED)

_log = logging.getLogger(__name__)


@dataclass
class Journal:
    """The journal of a run; ``done`` are targets that an interrupted run has done, with when it began."""

    path: Path | None = None
    done: frozenset[str] = frozenset()
    began: str = ""
    _descriptor: int | None = None
    _keys: Mapping[str, str] = field(default_factory=dict)

    def note(self, outcome: TargetOutcome) -> None:
        """Write that a target has ended."""
        if outcome.status is not TargetStatus.NOT_BEGUN:
            key = self._keys.get(outcome.target)
            self._write({"target": outcome.target, "key": key, "status": outcome.status.value})

    def complete(self) -> None:
        """Write that each target was begun, so that the next run begins with all of them."""
        self._write({"complete": _now()})

    def _write(self, data: Mapping[str, object]) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, json.dumps(data).encode() + b"\n")
        except OSError as error:
            _log.warning("the journal %s cannot be written: %s", self.path, error.strerror)
            self._descriptor = None


def path_of(fleet: Fleet) -> Path:
    """Return the file of a fleet's journal; raises RuntimeError if there is no home."""
    return folder() / f"fleet-{hashlib.sha256(os.path.realpath(fleet.path).encode()).hexdigest()[:16]}.jsonl"


@contextlib.contextmanager
def opened(
    fleet: Fleet, verb: str, orders: Mapping[str, Order], files: Mapping[str, Sequence[str]], *, restart: bool
) -> Iterator[Journal]:
    """Yield the journal for a run of these orders, by target; raises LeaseHeld if another run is at work.

    ``files`` are those of the spec of each. ``restart``: a run that was interrupted is not continued.
    """
    try:
        path = path_of(fleet)
        make_private_folder(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except (OSError, RuntimeError) as error:
        _log.warning("there is no journal, so that an interrupted run cannot be continued: %s", error)
        yield Journal()
        return
    try:
        _lock(descriptor, path, fleet)
        keys = {name: _key(each, files[name]) for name, each in orders.items()}
        began, done = ("", frozenset[str]()) if restart else _left_by_last(path, verb, keys)
        os.ftruncate(descriptor, 0)  # it may end with half a line
        journal = Journal(path, done, began, descriptor, keys)
        journal._write({"format": FORMAT, "fleet": fleet.name, "verb": verb, "began": began or _now(), **_whose()})
        for name in sorted(done):
            journal.note(TargetOutcome(target=name, status=TargetStatus.DONE))
        yield journal
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, fleet: Fleet) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = next((line for line in _lines(path) if "began" in line), {})
        holder = f"{who.get('who', 'another run')} (process {who.get('process', 'unknown')})"
        since = f"{who.get('verb', 'run')} since {who.get('since', 'just now')}"
        what = f"{holder} is at work on the fleet {fleet.name}: {since}"
        raise LeaseHeld(f"{what}; wait until it ends, or end that process") from None
    except OSError as error:
        _log.warning("two runs of the fleet at once are not prevented: %s cannot be locked: %s", path, error.strerror)


def _left_by_last(path: Path, verb: str, keys: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Return when an interrupted run of the same verb began, and which targets it has done as they are now."""
    lines = _lines(path)
    heads = [line for line in lines if "began" in line]
    if not heads or any("complete" in line for line in lines):
        return "", frozenset()
    head = heads[0]
    try:
        is_late = datetime.now(UTC) - datetime.fromisoformat(head["began"]) > LATEST
    except (TypeError, ValueError):
        return "", frozenset()
    if head.get("format") != FORMAT or head.get("verb") != verb or is_late:
        return "", frozenset()
    ended = {line["target"]: line for line in lines if isinstance(line.get("target"), str)}
    good = [status.value for status in ENDED_WELL]
    done = {name for name, each in ended.items() if each.get("status") in good and each.get("key") == keys.get(name)}
    return head["began"], frozenset(done)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal; one that a killed run has not completed is left out."""
    found = []
    try:
        text = read_text(path, 64 * MIB)
    except (OSError, UnicodeDecodeError):
        return []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            parsed = json.loads(line)
            found += [parsed] if isinstance(parsed, dict) else []
    return found


def _key(order: Order, files: Sequence[str]) -> str:
    """Return a digest of what a target is made from: files by size and time, since they may have secrets.

    Secrets from other sources than files do not count.
    """
    options = order.options
    data = {
        "files": [_state(each) for each in (*files, *order.vars_files)],
        "variables": {name: order.variables[name] for name in sorted(order.variables)},
        "environment": order.environment,
        "cloud": [order.cloud, order.labels, order.address],
        "options": [options.allow_replace, options.adopt, options.prune],
        "saved": (order.saved or {}).get("digest"),
    }
    return hashlib.sha256(json.dumps(data, default=str).encode()).hexdigest()[:24]


def _state(path: str) -> list[object]:
    try:
        found = os.stat(path)
        return [path, found.st_size, found.st_mtime_ns]
    except (OSError, ValueError):  # a path with a null character
        return [path]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _whose() -> dict[str, object]:
    return {"since": _now(), "process": os.getpid(), "who": lease.owner()}


# --- spec -------------------------------------------------------------------------------------


@dataclass
class Checked:
    """What was read: the entry of clouds.yaml of each target, and warnings about specs."""

    clouds: dict[str, str] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    """The order of each target, with what the environment adds: that of a worker differs."""
    specs: dict[str, str] = field(default_factory=dict)
    """Names of the specs by target."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The files of the spec of each target, and those that it names."""
    resources: dict[str, int] = field(default_factory=dict)
    """How many resources a plan of each target lists."""
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Which targets a warning is about."""
    sent_secrets: list[Mistake] = field(default_factory=list)
    """Variables that a scheduler must not see."""


def check(
    targets: Mapping[str, FleetTarget],
    orders: Mapping[str, Order],
    cloud: str | None = None,
    examine: Callable[[Spec], tuple[Spec, list[str]]] | None = None,
) -> Checked:
    """Read the spec of each target; raises SpecError with the mistakes of all, and for targets that are doubles.

    ``cloud`` is the entry for targets that name none. ``examine`` returns a spec with the resources that
    a plan lists, and warnings about them, or raises SpecError;
    with it the specs are only checked, which needs no values of secrets.
    """
    found, wrong = Checked(), dict[Mistake, list[str]]()
    owners: dict[tuple[str, str, str], str] = {}
    entries: dict[str | None, tuple[str | None, str, str]] = {}
    doubles: list[Mistake] = []
    for name, order in orders.items():
        try:
            spec = process.spec_of(order, needs_secrets=examine is None)
            _refuse_sources(spec, order, targets[name].from_row)
            resolved, more = examine(spec) if examine else (spec, [])
        except SpecError as error:
            for mistake in error.mistakes:
                wrong.setdefault(mistake, []).append(name)
            continue
        for warning in (*spec.warnings, *more):
            found.warnings.setdefault(warning, []).append(name)
        named = order.cloud or cloud or spec.clouds.admin
        if named not in entries:
            entries[named] = chosen_entry(named)
        entry, region, address = entries[named]
        region = order.region or region
        labels, environment = tuple(filter(None, (region, entry))), _environment(spec)
        content = process.content_of(spec)
        found.orders[name] = replace(
            order, cloud=entry, address=address, content=content, labels=labels, environment=environment
        )
        found.sent_secrets += _sent_secrets(name, spec, environment)
        found.clouds[name], found.specs[name], found.resources[name] = entry or "", spec.name, len(resolved.resources)
        found.files[name] = [*(str(part.path) for part in spec.parts), *local_files(spec)]
        other = owners.setdefault((spec.name, entry or "", region), name)
        if other != name:
            what = f"target {name} is the same spec {spec.name} in the same cloud and region as target {other}"
            fix = f"remove one of them, or give their specs different names; {other} is at {targets[other].place}"
            doubles.append(Mistake(targets[name].place, what, fix, code=Code.SPEC_DUPLICATE_NAME))
    mistakes = [_of_targets(mistake, names, targets) for mistake, names in wrong.items()]
    if mistakes or doubles:
        raise SpecError([*mistakes, *doubles])
    return found


def _environment(spec: Spec) -> dict[str, str]:
    """Return the variables of the environment that have values for a spec, without secrets."""
    names = (f"{ENVIRONMENT}{value.upper()}" for value in spec.values)
    return {name: os.environ[name] for name in names if name in os.environ}


def _sent_secrets(target: str, spec: Spec, environment: Mapping[str, str]) -> Iterator[Mistake]:
    """Yield the variables of the environment that may be a secret, or a part of one: an order holds their values."""
    what = "may be a secret in plain text, and the scheduler would get it"
    fix = "declare the variable with secret: true, or give it by vars_files"
    for name, value in sorted(spec.values.items()):
        variable = f"{ENVIRONMENT}{name.upper()}"
        is_secret = spec.has_plain_secrets or has_url_secrets(value) or any(list_named_secrets(value, name))
        if variable in environment and is_secret:
            yield Mistake(f"target {target}: {variable}", what, fix, code=Code.SPEC_VARIABLE)


def _refuse_sources(spec: Spec, order: Order, names: Collection[str]) -> None:
    """Raise SpecError if a value from a row could be the source of a secret in the spec: any file, or any program."""
    what, fix = "contains a source of a secret, which cannot come from a row", "write it in the fleet file or the spec"
    wrong = [name for name in sorted(names) if _has_source(spec.values.get(name))]
    if wrong:
        raise SpecError([Mistake(order.places[each], what, fix, code=Code.SPEC_VARIABLE) for each in wrong])


def _has_source(value: object) -> bool:
    return any(isinstance(part, dict) and len(part) == 1 and {*part} & {*SOURCE_NAMES} for part in walk(value))


def _of_targets(mistake: Mistake, names: list[str], targets: Mapping[str, FleetTarget]) -> Mistake:
    """Return a mistake of the spec of some targets, with the first of them."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    first = targets[names[0]]
    return replace(mistake, where=f"{mistake.where} (target {first.name}{more}, {first.place})")


# --- wave -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FleetWave:
    """Targets that are worked on at the same time."""

    title: str
    targets: tuple[FleetTarget, ...]


def choose_wave(fleet: Fleet, only: Collection[str]) -> list[FleetTarget]:
    """Return the targets of some groups, or of some names; without any all of them.  Raises ConfigError."""
    known = {target.name for target in fleet.targets} | {group for target in fleet.targets for group in target.groups}
    for name in only:
        if name not in known:
            raise ConfigError(
                f"--only {name}: the fleet {fleet.name} has no such group or target; {meant(name, known)}"
            )
    return [target for target in fleet.targets if not only or {target.name, *target.groups} & {*only}]


def arrange(fleet: Fleet, targets: Sequence[FleetTarget]) -> list[FleetWave]:
    """Return targets in waves, in the order of the fleet; the last one has the rest."""
    left, waves = list(targets), list[FleetWave]()
    for number, each in enumerate(fleet.waves, 1):
        chosen = list(_of_wave(each, left, len(targets)))
        left = [target for target in left if target not in chosen]
        if chosen:
            waves.append(FleetWave(f"wave {number} ({_words(each)})", tuple(chosen)))
    if left:
        waves.append(FleetWave("the rest" if waves else "all targets", tuple(left)))
    return waves


def _of_wave(wave: WaveFields, left: Sequence[FleetTarget], total: int) -> Iterator[FleetTarget]:
    if wave.percent is not None:
        yield from left[: math.ceil(total * wave.percent / 100)]
        return
    for target in left:
        if target.name in wave.targets or {*target.groups} & {*wave.groups}:
            yield target


def _words(wave: WaveFields) -> str:
    return f"{wave.percent} %" if wave.percent is not None else ", ".join((*wave.groups, *wave.targets))


# --- running ----------------------------------------------------------------------------------


JOBS = 8
ENDED_BADLY = (TargetStatus.FAILED, TargetStatus.INTERRUPTED, TargetStatus.NOT_BEGUN)


@dataclass(frozen=True, kw_only=True)
class FleetResult:
    """What became of the targets of a fleet."""

    fleet: str
    """Name of the fleet."""
    outcomes: tuple[TargetOutcome, ...]
    """One per target, in the order of the waves."""
    left_out: tuple[str, ...] = ()
    """Targets that an interrupted run had done before."""
    seconds: float = 0.0
    """Duration in seconds."""
    interrupt: int | None = None
    """The signal that stopped the run; None when nothing did."""

    def of(self, *statuses: TargetStatus) -> list[TargetOutcome]:
        """Return the outcomes with one of these statuses."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def exit_code(self) -> int:
        """What the command exits with: 0; 1 for failures and drift; 2 for refusals; 128 and the number of a signal."""
        if self.interrupt is not None:
            return interrupts.exit_code(self.interrupt)
        if self.of(*ENDED_BADLY, TargetStatus.DRIFT):
            return 1
        return 2 if self.of(TargetStatus.REFUSED) else 0

    def raise_for_failures(self) -> None:
        """Raise FleetFailed if a target was refused, failed, was interrupted or was not begun."""
        bad = self.of(TargetStatus.REFUSED, *ENDED_BADLY)
        if bad:
            lines = [f"{outcome.target}: {outcome.status}: {outcome.first_error or outcome.summary}" for outcome in bad]
            raise FleetFailed("\n".join(lines), self)


class FleetFailed(PrepError):
    """Some targets were refused, failed or were not begun; ``result`` says which and why."""

    code = "fleet.failed"

    def __init__(self, message: str, result: FleetResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Chosen:
    """The chosen targets of a fleet, whose specs were read."""

    fleet: Fleet
    waves: tuple[FleetWave, ...]
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
    targets = {target.name: target for target in choose_wave(fleet, only)}
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
    checked = check(targets, orders, cloud, examine)
    return Chosen(fleet, tuple(arrange(fleet, list(targets.values()))), checked.orders, checked)


def run(
    chosen: Chosen,
    verb: Verb,
    options: Options,
    *,
    jobs: int = JOBS,
    executor: Callable[[int], Executor] = threads,
    tell: Tell = silent,
    without: Collection[str] = (),
    settled: Mapping[str, TargetOutcome] | None = None,
    agreed: Mapping[str, Values] | None = None,
    saved: Mapping[str, Values] | None = None,
    saved_in: str = "",
) -> FleetResult:
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
    names = [
        (wave.title, [orders[target.name] for target in wave.targets if target.name in orders]) for wave in chosen.waves
    ]
    try:
        engine.run(names if changes else [("all targets", list(orders.values()))])
    finally:
        process.end_phase(phase)
    return FleetResult(
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

    def plan(self, *, jobs: int, executor: Callable[[int], Executor] = threads, tell: Tell = silent) -> FleetResult:
        """Return what the run would do to the targets that an interrupted run has left."""
        options = replace(self.options, destroy=self.verb == "destroy")
        done = self.journal.done
        return run(self.chosen, "plan", options, jobs=jobs, executor=executor, tell=tell, without=done)

    def carry_out(
        self,
        planned: FleetResult | None = None,
        *,
        jobs: int,
        executor: Callable[[int], Executor] = threads,
        tell: Tell = silent,
    ) -> FleetResult:
        """Carry out the plans that were agreed to, or plan and carry out; note each target that has ended."""
        agreed, settled = {}, {}
        for each in planned.outcomes if planned else ():
            if each.status is TargetStatus.CHANGES and each.agreement is not None:
                agreed[each.target] = each.agreement
            else:
                settled[each.target] = each

        def note(event: FleetEvent) -> None:
            if event.outcome is not None:
                self.journal.note(event.outcome)
            tell(event)

        missing = {
            name: TargetOutcome(
                target=name, status=TargetStatus.REFUSED, summary="refused", errors=[_unplanned(name, self.saved_in)]
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
        if result.interrupt is None and not result.of(TargetStatus.NOT_BEGUN):
            self.journal.complete()
        return result


def _unplanned(target: str, path: str) -> Values:
    what = "the saved plan has no plan of this target"
    return Diagnostic(code=Code.PLAN_CHANGED, where=f"{path}: {target}", what=what, fix=AGAIN).data()


def _unknown(target: str, path: str) -> Mistake:
    what = "the fleet no longer has this target"
    return Mistake(f"{path}: {target}", what, AGAIN, code=Code.PLAN_CHANGED)


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
    known = {target.name for target in chosen.fleet.targets}
    refusals = [_unknown(name, saved_in) for name in plans if name not in known]
    if refusals:
        raise PlanRefused(refusals)
    orders = {
        name: replace(each, verb=verb, options=options, saved=plans.get(name)) for name, each in chosen.orders.items()
    }
    with opened(chosen.fleet, verb, orders, chosen.checked.files, restart=restart) as notes:
        yield Changing(chosen, verb, options, notes, plans, saved_in)
