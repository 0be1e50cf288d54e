"""What is asked of a target, and what became of it: plain data that another process can have, without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from openstack_prep.base.raw import Values
from openstack_prep.base.style import Style

Verb = Literal["plan", "apply", "destroy", "audit", "export"]


class TargetStatus(StrEnum):
    """What became of a target."""

    UNCHANGED = "unchanged"
    """Nothing to do."""
    CHANGES = "changes"
    """A plan would change something."""
    DONE = "done"
    """Something was changed, or exported."""
    DRIFT = "drift"
    """An audit has found something."""
    REFUSED = "refused"
    """Its plan may not be carried out; nothing was changed."""
    FAILED = "failed"
    """An error, or steps that failed."""
    INTERRUPTED = "interrupted"
    """A signal has stopped it; run again."""
    NOT_BEGUN = "not begun"
    """Too many other targets failed before, or a signal came."""


BAD = (TargetStatus.REFUSED, TargetStatus.FAILED)
"""What counts as a failure for the waves."""


def words_of(counts: Mapping[str, int], *, done: bool) -> str:
    """Return "3 to create, 1 to update", or "3 created, 1 updated"."""
    past = {count: f"{count}{'' if count.endswith('e') else 'e'}d" for count in counts}
    return ", ".join(f"{number} {past[each] if done else f'to {each}'}" for each, number in counts.items())


@dataclass(frozen=True, kw_only=True)
class Options:
    """How all targets are planned and carried out; as for a single spec."""

    allow_replace: bool = False
    adopt: bool = False
    prune: bool = False
    allow_loss: tuple[str, ...] = ()
    """What deletions may take from others."""
    destroy: bool = False
    """Whether the plan is one to destroy."""
    lock_timeout: float = 60.0
    """Seconds to wait for another run on the same spec."""
    kinds: tuple[str, ...] = ()
    """Kinds that are exported; default: all."""
    style: Style | None = None
    """How to render the plan of each target; None: not at all."""
    data: bool = False
    """Whether the outcome has the whole plan or report as data."""
    save_to: str | None = None
    """The file that plans will be saved to; the outcome has what it saves."""
    salt: str = ""
    """Of the digests in saved plans, in hexadecimal: one for all targets, so that each file is digested once."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One task: a target and what to do with it."""

    target: str
    verb: Verb
    spec: str
    """Path of the spec."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Values of its variables, none of them a secret in plain text."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where each of them is declared."""
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """Texts of variables in the environment of the command; None: the environment of this process has them."""
    folder: str = "."
    """The folder of the fleet file, to which paths in sources of secrets are relative."""
    vars_files: tuple[str, ...] = ()
    cloud: str | None = None
    """Entry of clouds.yaml; None: that of OS_* variables."""
    region: str | None = None
    content: str = ""
    """Digest of the spec when the run began: other content was neither checked nor tried by an earlier wave."""
    labels: tuple[str, ...] = ()
    """Labels of the workers that may carry it out: the region, of the target or of the entry, and the entry."""
    address: str = ""
    """The address of Keystone that the entry has, as far as it is known."""
    options: Options = Options()
    jobs: int = 1
    """Concurrent requests of this target."""
    parallel: int = 1
    """Concurrent requests of all targets of the run."""
    neighbours: int = 1
    """How many targets of the run are in its cloud, with itself."""
    phase: str = ""
    """Names the run, whose orders share connections."""
    wave: int = 0
    """The number of its wave, whose orders share what plans read."""
    agreed: Values | None = field(default=None, repr=False)
    """The plan that a person has agreed to: nothing else is carried out."""
    saved: Values | None = field(default=None, repr=False)
    """The saved plan that is carried out, and nothing else."""
    saved_in: str = ""
    """The file of the saved plan, for messages."""


@dataclass(frozen=True, kw_only=True)
class TargetOutcome:
    """What became of a target."""

    target: str
    """Its name."""
    status: TargetStatus
    """What became of it."""
    cloud: str = ""
    """Entry of clouds.yaml, as far as it is known."""
    summary: str = ""
    """One line for people, such as "3 to create, 12 unchanged"."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many resources are created, updated, deleted and so on, by the action."""
    errors: Sequence[Values] = ()
    """Why it was refused or failed, as diagnostics."""
    warnings: Sequence[str] = ()
    """Warnings about the spec and valid settings."""
    seconds: float = 0.0
    """How long it took."""
    data: Values | None = field(default=None, repr=False)
    """The plan, the report, the drift or the exported spec, as the single command prints it, if asked for."""
    table: str = field(default="", repr=False)
    """The plan for people, if asked for."""
    agreement: Values | None = field(default=None, repr=False)
    """What a person agrees to, for the order that carries it out."""
    saved: Values | None = field(default=None, repr=False)
    """The saved plan, if asked for."""

    @property
    def first_error(self) -> str:
        """The first reason of a refusal or failure, in one line."""
        if not self.errors:
            return ""
        first = self.errors[0]
        return ": ".join(filter(None, (first.get("where"), first["what"])))

    def line(self) -> Values:
        """Return it as one line of ``--format json``."""
        return {
            "target": self.target,
            "status": self.status.value,
            "cloud": self.cloud,
            "summary": self.summary,
            "counts": dict(self.counts),
            "errors": list(self.errors),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
        } | ({"result": self.data} if self.data is not None else {})
