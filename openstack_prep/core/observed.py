"""Existing resources in the cloud as kinds report them, and their differences from a spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from openstack_prep.base.raw import Raw, Values

if TYPE_CHECKING:
    from openstack_prep.base.secret import Secret

T = TypeVar("T")


def owner_text(spec: str | None) -> str:
    """Return whose something is that this spec does not manage; ``spec`` is what its ownership tag names, if any."""
    return f"managed by spec {spec}" if spec else "not managed by this spec"


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The existing counterpart of a resource in the cloud.

    ``id`` is its id in OpenStack, or the path of a file; ``created_at`` its time of creation, as far as it matters.
    ``ours``: whether it has the ownership tag of the spec. ``values`` are in the vocabulary of a spec, normalised, so
    that ``==`` compares them. ``outputs`` are shown besides the id (an address, a checksum); ``secrets`` are the values
    of those shown as stars. ``record`` is data that the kind itself needs later and that is never compared: a frozen
    dataclass of the kind. ``contained_ids`` are the ids of what is deleted with it. ``twins`` are further resources
    with our ownership tag and the same name, created by concurrent or interrupted runs where OpenStack allows a name
    twice. ``used_by`` names the users of one of several twins. ``home`` is the id of the home project in its ownership
    tag, empty if the tag names none; None for resources in a project, where the project itself distinguishes specs with
    the same name. ``managed_by`` names another spec whose ownership tag it has. ``kept_because`` is why destroy keeps
    something of which there is nothing to delete, or a part of it. ``doubt`` is why its ownership tag does not prove
    that the spec manages it: if ``ours`` nevertheless, only as long as the spec declares it.
    """

    id: str
    values: Raw = field(default_factory=dict)
    ours: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict, repr=False, compare=False)
    contained_ids: frozenset[str] = frozenset()
    record: object = None
    twins: tuple[Observed, ...] = ()
    used_by: tuple[str, ...] = ()
    created_at: str = ""
    home: str | None = None
    managed_by: str = ""
    kept_because: str = ""
    doubt: str = ""

    @property
    def known_owner(self) -> str:
        """Whose it is by its ownership tag, or why that is doubtful; empty for what no spec manages."""
        return owner_text(self.managed_by) if self.managed_by else self.doubt

    @property
    def owner(self) -> str:
        """Whose it is if it is not managed by this spec, in the words of a refusal."""
        return self.known_owner or owner_text("")

    @property
    def in_use(self) -> bool:
        """Whether anything uses this twin, managed or not."""
        return bool(self.used_by or self.contained_ids)

    def record_as(self, kind: type[T]) -> T:
        """Return the record; raises TypeError if it belongs to a different kind."""
        if not isinstance(self.record, kind):
            raise TypeError(f"{self.id} has the record {self.record!r}, not a {kind.__name__}")
        return self.record


@dataclass(frozen=True, slots=True)
class Texts:
    """The content of a file now and after apply, without secrets; ``fields`` are those whose values it shows."""

    before: str
    after: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class UpdateEffects:
    """What an update does to the parts of a resource; a plan shows ``text`` in place of the field that lists them."""

    field: str
    text: str
    data: Values


class Condition:
    """The condition of a field whose value is hidden or missing, such as a password that differs.

    It equals only itself, so no text of a spec or of a cloud is mistaken for it; a plan shows its text.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


MANAGED = "managed"
"""The field of a change that adds the ownership tag of the spec."""
DIFFERS = Condition("(differs)")
"""The field has a value that cannot be shown, and that differs from the declared one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs from the spec."""

    field: str
    """Name of the field."""
    before: Any
    """The present value."""
    after: Any
    """The declared value."""
