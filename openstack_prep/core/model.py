"""The vocabulary of this package: frozen data, no I/O.

A *resource* is one object that should exist; its existing counterpart in the cloud is *observed*; a *step* leads from
the observed to the desired state, and its *result* is the outcome.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar
from urllib.parse import quote, unquote

from openstack_prep.base.errors import Loss
from openstack_prep.base.key import Key as Key
from openstack_prep.core.deletion_loss import DeletionLoss as DeletionLoss
from openstack_prep.core.deletion_loss import Unchecked as Unchecked
from openstack_prep.core.observed import DIFFERS as DIFFERS
from openstack_prep.core.observed import MANAGED as MANAGED
from openstack_prep.core.observed import Change as Change
from openstack_prep.core.observed import Condition as Condition
from openstack_prep.core.observed import Observed as Observed
from openstack_prep.core.observed import Texts as Texts
from openstack_prep.core.observed import UpdateEffects as UpdateEffects
from openstack_prep.core.resource import Adoptable as Adoptable
from openstack_prep.core.resource import Coherent as Coherent
from openstack_prep.core.resource import Context as Context
from openstack_prep.core.resource import FromContext as FromContext
from openstack_prep.core.resource import PreviewsUpdate, supports
from openstack_prep.core.resource import Resource as Resource

Groups = frozenset[frozenset[Key]]
"""Sets of keys. Dependencies are kept in this form because many resources need the same many others, such as all role
assignments in a project: one set that they share in place of an edge for each pair."""

COPIED = "not managed by this spec, because its ownership tag names another resource"
"""The doubt about a resource whose ownership tag somebody has copied, or that somebody has renamed."""
UNNAMED = (
    "its ownership tag, of an earlier version, does not name it; to delete it, run destroy with a spec that declares it"
)
"""The doubt about a resource whose ownership tag may be copied: a spec manages it only while it declares it."""
SEPARATOR = "~"
"""What follows the name of a spec in tags: its home project, or a note. No name of a spec contains it."""
ATTACHED = f"{SEPARATOR}attached"
"""Suffix of SPEC in the tag of a floating IP that a spec has attached to a port without managing it: a note."""


@dataclass(frozen=True, slots=True)
class OwnershipTag:
    """The ownership tag of created resources, so that destroy deletes nothing else.

    ``spec`` is the name of the spec. The tag is at the end of a description, as ``[openstack-prep:SPEC/NAME]``, or it
    is a tag or property of its own, ``openstack-prep:SPEC``. NAME distinguishes resources without a name in OpenStack,
    such as floating IPs. ``home`` is the id of the spec's home project. The tag of a resource outside of projects
    contains it, too, as ``NAME@HOME`` or by the additional tag ``openstack-prep:SPEC~HOME``, so that two specs with the
    same name do not manage each other's resources. ``place`` is where a resource is that its name
    and home project do not identify, as ``NAME@HOME@PLACE``: the id of the domain of a user outside of the home
    project's domain, or a digest of the cloud of a file.

    Where it is a tag, a further one names what it belongs to: ``openstack-prep:~DIGEST~name~DIGEST``, digests of the
    spec and of the resource, because Heat allows 80 characters. Copied tags name another resource.
    """

    spec: str
    home: str = ""
    place: str = ""

    _PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r" ?\[openstack-prep:([^\]/]*)(?:/([^\]@]*)(?:@([^\]@]*)(?:@([^\]]*))?)?)?\]$"
    )

    @property
    def tag(self) -> str:
        return f"openstack-prep:{_word(self.spec)}"

    def describe(self, name: str, text: str | None = None) -> str:
        """Return a description with the ownership tag appended to the user's own text."""
        place = f"@{self.place}" if self.place else ""
        home = f"@{self.home}" if self.home or place else ""
        own = f"{text} " if text else ""
        return f"{own}[{self.tag}/{_word(name)}{home}{place}]"

    @property
    def tags(self) -> tuple[str, ...]:
        """The tag, after the additional tag that names the home project if the project is known."""
        return (*([f"{self.tag}~{self.home}"] if self.home else ()), self.tag)

    def record(self, word: str, *identity: object) -> str:
        """Return a tag that records something about what its identity tells; earlier versions pass over it."""
        return f"{self._records}{word}~{identity_digest(identity)[:16]}"

    def is_record(self, tag: str) -> bool:
        """Whether a tag is a record of this spec."""
        return tag.startswith(self._records)

    @property
    def _records(self) -> str:
        return f"openstack-prep:~{identity_digest(self.spec)[:8]}~"

    def name_tag(self, *identity: object) -> str:
        """Return the tag that names what the ownership tag beside it belongs to."""
        return self.record("name", *identity)

    def doubt(self, tags: Collection[str], *identity: object) -> str:
        """Return why ownership tags do not prove that the spec manages what has them; empty if they do."""
        names = {each for each in tags if each.startswith(self.record("name")[:-16])}
        if self.name_tag(*identity) in names:
            return ""
        return COPIED if names else UNNAMED

    @classmethod
    def place_in(cls, description: str | None) -> str:
        """Return the place that a description names; empty if it names none."""
        found = cls._PATTERN.search(description or "")
        return (found[4] or "") if found else ""

    @classmethod
    def home_in(cls, description: str | None) -> str:
        """Return the id of the home project that a description names; empty if it names none."""
        found = cls._PATTERN.search(description or "")
        return (found[3] or "") if found else ""

    def home_among(self, tags: Iterable[str]) -> str:
        """Return the id of the home project that our tags among some tags name; empty if they name none."""
        return next((each.partition("~")[2] for each in sorted(tags) if each.startswith(f"{self.tag}~")), "")

    def another_in(self, description: str | None) -> str:
        """Return the name of the other spec that a description names as the owner, or an empty string."""
        found = self.spec_in(description or "")
        return found if found and found != self.spec else ""

    @staticmethod
    def is_tag(tag: str) -> bool:
        """Whether a tag is an ownership tag, of any spec."""
        return tag.startswith("openstack-prep:")

    @classmethod
    def spec_in(cls, description: str) -> str | None:
        """Return the name of the spec that a description names as the owner; a note names no owner."""
        found = cls._PATTERN.search(description)
        return unquote(found[1]) if found and not found[1].endswith(ATTACHED) else None

    @staticmethod
    def specs_in(tags: Iterable[str]) -> list[str]:
        """Return the names of the specs whose ownership tags are among some tags."""
        found = (tag.partition(":")[2] for tag in sorted(tags) if tag.startswith("openstack-prep:"))
        return [unquote(name) for name in found if "~" not in name]

    @classmethod
    def name_in(cls, description: str | None) -> str | None:
        """Return the name in an ownership tag of a description, whichever spec it belongs to."""
        found = cls._PATTERN.search(description or "")
        return unquote(found[2]) if found and found[2] else None

    def owns(self, description: str | None, name: str | None = None) -> bool:
        """Whether a description has our ownership tag, with the given name if any."""
        found = self._PATTERN.search(description or "")
        return found is not None and found[1] == _word(self.spec) and (name is None or found[2] == _word(name))

    def manages(self, name: str, description: str | None) -> bool:
        """Whether a resource is managed by this spec: if the tag in its description names another one, it is a copy."""
        return self.owns(description) and self.name_in(description) in (None, name)

    @classmethod
    def strip(cls, description: str | None) -> str:
        """Return the user's own text of a description."""
        return cls._PATTERN.sub("", description or "")


def identity_digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _word(name: str) -> str:
    """Return a name without characters that end a tag or that tags may not contain, encoded as in a URL."""
    return quote(name, safe="")


class Action(StrEnum):
    """What a step does with its resource."""

    CREATE = "create"
    UPDATE = "update"
    ADOPT = "adopt"
    """Change an existing resource that has no ownership tag of the spec."""
    REPLACE = "replace"
    DELETE = "delete"
    KEEP = "keep"

    @property
    def symbol(self) -> str:
        """What a plan shows before its line."""
        return {"create": "+", "update": "~", "adopt": "@", "replace": "-/+", "delete": "-", "keep": "="}[self.value]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One action on one resource, after the steps that it depends on.

    ``action`` is what it does. ``resource`` is the declared one, ``observed`` the existing one, ``changes`` are the
    fields that differ. ``after`` are the keys of the steps that come first, in sets that many steps share, ``needs``
    the same keys in one set; ``reason`` says why something is kept or deleted. ``follows`` are those of them whose
    changes determine the work of this step: so it is decided right before it runs. ``label`` distinguishes its resource
    from others of the plan; empty if the key's text is unique. ``duplicate_of`` is the id of the twin that is kept.
    ``losses`` are what an update deletes; ``previewed_later``: the plan cannot show all losses, and its text says so.
    ``deletion_losses`` are what a deletion, replacement or update takes from others, ``unchecked`` what nobody could
    read of it.
    """

    resource: Resource
    action: Action
    observed: Observed | None = None
    changes: tuple[Change, ...] = ()
    after: Groups = frozenset()
    follows: frozenset[Key] = frozenset()
    reason: str = ""
    label: str = ""
    duplicate_of: str = ""
    previewed_later: bool = False
    losses: tuple[Loss, ...] = ()
    deletion_losses: tuple[DeletionLoss, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()

    @property
    def decided_later(self) -> bool:
        """Whether the run decides what it does right before it does it.

        A resource to be adopted may have another spec's ownership tag by then, and most services would overwrite it.
        """
        taken = self.action is Action.ADOPT and isinstance(self.resource, Adoptable) and self.resource.takes_over
        previewed = supports(self.resource, PreviewsUpdate) and self.action in (Action.UPDATE, Action.ADOPT)
        return taken or previewed or bool(self.follows)

    @property
    def needs(self) -> frozenset[Key]:
        """The keys of all steps that come first."""
        return frozenset[Key]().union(*self.after)

    @property
    def key(self) -> Key:
        """The key of its resource."""
        return self.resource.key

    def __str__(self) -> str:
        return self.label or str(self.key)


INTERRUPT = "an interrupt"
"""The cause of steps that were skipped because the user stopped the run."""
LOST_LEASE = "the lost lease"
"""The cause of steps that were skipped because another run may be in progress."""


class Status(StrEnum):
    """The outcome of a step."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of one ``step``.

    ``observed`` is the resource after it, ``seconds`` how long it took. ``error`` is why it failed; ``cause`` names the
    failed step because of which it was skipped.
    """

    step: Step
    status: Status
    """Whether it was done, failed or was skipped."""
    observed: Observed | None = None
    seconds: float = 0.0
    error: Exception | None = None
    cause: str = ""
