"""The words of this package: frozen data, no I/O.

A *resource* is one thing we want to exist; what stands in the cloud in its place is *observed*; a
*step* leads from the one to the other, and its *result* says how it went.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar
from urllib.parse import quote, unquote

from openstack_prep.base.errors import Loss
from openstack_prep.base.key import Key as Key
from openstack_prep.core.adoptable import Adoptable as Adoptable
from openstack_prep.core.adoptable import Resolved as Resolved
from openstack_prep.core.observed import DIFFERS as DIFFERS
from openstack_prep.core.observed import MANAGED as MANAGED
from openstack_prep.core.observed import Change as Change
from openstack_prep.core.observed import Condition as Condition
from openstack_prep.core.observed import Observed as Observed
from openstack_prep.core.observed import Texts as Texts
from openstack_prep.core.resource import Coherent as Coherent
from openstack_prep.core.resource import Context as Context
from openstack_prep.core.resource import Resource as Resource

ATTACHED = "~attached"
"""Ends what stands for SPEC in the mark of a floating IP that a spec put on its port without managing it: a note."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Our sign on what we create, so that destroy takes back nothing else.

    ``spec`` is the name of the spec.  It stands at the end of a description, as
    ``[openstack-prep:SPEC/NAME]``, or alone as a tag or property ``openstack-prep:SPEC``.
    NAME tells apart things that have no name of their own in OpenStack, such as floating IPs.
    ``home`` is the id of the spec's home project.  What lies in no project names it, too, as ``NAME@HOME`` or by the
    further tag ``openstack-prep:SPEC~HOME``, so that two specs of one name do not take each other's.
    """

    spec: str
    home: str = ""

    _PATTERN: ClassVar[re.Pattern[str]] = re.compile(r" ?\[openstack-prep:([^\]/]*)(?:/([^\]@]*)(?:@([^\]]*))?)?\]$")

    @property
    def tag(self) -> str:
        return f"openstack-prep:{_word(self.spec)}"

    def describe(self, name: str, text: str | None = None) -> str:
        """Return a description that carries the mark behind the user's own text."""
        home = f"@{self.home}" if self.home else ""
        return f"{text or ''} [{self.tag}/{_word(name)}{home}]".lstrip()

    @property
    def tags(self) -> tuple[str, ...]:
        """The tag, behind the further one that names the home project if that is known."""
        return (*([f"{self.tag}~{self.home}"] if self.home else ()), self.tag)

    @classmethod
    def home_in(cls, description: str | None) -> str:
        """Return the id of the home project that a description names; empty when it names none."""
        found = cls._PATTERN.search(description or "")
        return (found[3] or "") if found else ""

    def home_among(self, tags: Iterable[str]) -> str:
        """Return the id of the home project that our tags among some name; empty when they name none."""
        return next((each.partition("~")[2] for each in sorted(tags) if each.startswith(f"{self.tag}~")), "")

    def another_in(self, description: str | None) -> str:
        """Return the name of the other spec that a description says manages what it describes, or nothing."""
        found = self.spec_in(description or "")
        return found if found and found != self.spec else ""

    @staticmethod
    def is_tag(tag: str) -> bool:
        """Whether a tag is one of ours, whichever spec it names."""
        return tag.startswith("openstack-prep:")

    @classmethod
    def spec_in(cls, description: str) -> str | None:
        """Return the name of the spec that a description says manages what it describes; a note says that of none."""
        found = cls._PATTERN.search(description)
        return unquote(found[1]) if found and not found[1].endswith(ATTACHED) else None

    @staticmethod
    def specs_in(tags: Iterable[str]) -> list[str]:
        """Return the names of the specs whose ownership tags are among some tags."""
        found = (tag.partition(":")[2] for tag in sorted(tags) if tag.startswith("openstack-prep:"))
        return [unquote(name) for name in found if not name.startswith("~") and "~" not in name]

    @classmethod
    def name_in(cls, description: str | None) -> str | None:
        """Return the name that a mark in a description gives, whosever mark it is."""
        found = cls._PATTERN.search(description or "")
        return unquote(found[2]) if found and found[2] else None

    def owns(self, description: str | None, name: str | None = None) -> bool:
        """Whether a description carries our mark, and, if given, for just this name."""
        found = self._PATTERN.search(description or "")
        return found is not None and found[1] == _word(self.spec) and (name is None or found[2] == _word(name))

    @classmethod
    def strip(cls, description: str | None) -> str:
        """Return the user's own text of a description."""
        return cls._PATTERN.sub("", description or "")


def _word(name: str) -> str:
    """Return a name without what ends a mark, or what tags may not hold: as in a URL."""
    return quote(name, safe="")


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    ADOPT = "adopt"
    """Change what exists without the ownership tag of the spec."""
    REPLACE = "replace"
    DELETE = "delete"
    KEEP = "keep"

    @property
    def mark(self) -> str:
        return {"create": "+", "update": "~", "adopt": "@", "replace": "-/+", "delete": "-", "keep": "="}[self.value]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do to one resource, after the steps it needs.

    ``follows`` are those of them whose work changes what is to be done: so that is found out just before.
    ``label`` tells its resource from the others of the plan; empty when the key's own text does.
    ``duplicate_of`` is the id of the twin that stays.  ``losses`` are what an update takes away;
    ``previewed_later``: the plan could not tell all of it, and says so.
    """

    resource: Resource
    action: Action
    observed: Observed | None = None
    changes: tuple[Change, ...] = ()
    needs: frozenset[Key] = frozenset()
    follows: frozenset[Key] = frozenset()
    reason: str = ""
    label: str = ""
    duplicate_of: str = ""
    previewed_later: bool = False
    losses: tuple[Loss, ...] = ()

    @property
    def decided_later(self) -> bool:
        """Whether only the run finds out what it does, right before it does it.

        What it takes over may carry another spec's ownership tag by then, and most services would overwrite that.
        """
        taken = self.action is Action.ADOPT and isinstance(self.resource, Adoptable) and self.resource.takes_over
        previewed = self.resource.previewed and self.action in (Action.UPDATE, Action.ADOPT)
        return taken or previewed or bool(self.follows)

    @property
    def key(self) -> Key:
        return self.resource.key

    def __str__(self) -> str:
        return self.label or str(self.key)


INTERRUPT = "the interrupt"
"""The cause of steps that were skipped because the user stopped the run."""
LOST_LEASE = "the lost lease"
"""The cause of steps that were skipped because another run may be at work."""


class Status(StrEnum):
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one step went; ``cause`` names the failed step because of which it was skipped."""

    step: Step
    status: Status
    observed: Observed | None = None
    seconds: float = 0.0
    error: Exception | None = None
    cause: str = ""
