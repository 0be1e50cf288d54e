"""What stands in the cloud, as kinds tell it, and how that differs from what a spec says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from openstack_prep.base.raw import Raw

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What stands in the cloud where a resource should.

    ``values`` use the spec's own vocabulary, normalised, so that compare is ``==``.  ``outputs``
    are worth showing besides the id (an address, a checksum).  ``record`` is what the kind itself has to know
    later and nobody compares: a frozen dataclass of the kind's own.  ``holds`` are ids of what is deleted
    with it.
    ``twins`` are further things with our ownership tag and the same name, made by concurrent or
    interrupted runs where OpenStack allows a name twice.  ``used_by`` says who uses one of several twins.
    ``home`` is the id of the home project that its ownership tag names, empty when it names none; None for what lies
    in a project, and is told by that from what another spec of the same name manages.
    ``managed_by`` names another spec whose ownership tag it carries.
    """

    id: str
    values: Raw = field(default_factory=dict)
    ours: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()
    record: object = None
    twins: tuple[Observed, ...] = ()
    used_by: tuple[str, ...] = ()
    created_at: str = ""
    home: str | None = None
    managed_by: str = ""

    @property
    def in_use(self) -> bool:
        """Whether one of several twins has anything on it, ours or not."""
        return bool(self.used_by or self.holds)

    def recorded(self, kind: type[T]) -> T:
        """Return the record; raises TypeError when another kind has made it."""
        if not isinstance(self.record, kind):
            raise TypeError(f"{self.id} has the record {self.record!r}, not a {kind.__name__}")
        return self.record


@dataclass(frozen=True, slots=True)
class Texts:
    """A file as it stands and as apply would write it, without secrets; ``fields`` are those whose values it shows."""

    before: str
    after: str
    fields: frozenset[str]


class Condition:
    """The condition of a field whose value is hidden or missing, such as a password that differs.

    Equal to itself alone, so that no text of a spec or of a cloud is taken for it; a plan shows its text.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


MANAGED = "managed"
"""The field of a change that gives a thing the ownership tag of the spec."""
DIFFERS = Condition("(differs)")
"""The field has a value that cannot be shown, and it is not the declared one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One field that is not as it should be."""

    field: str
    before: Any
    after: Any
