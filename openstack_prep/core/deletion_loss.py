"""What a deletion takes from others: what goes with a resource although the spec does not manage it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, PrepError
from openstack_prep.base.key import Key
from openstack_prep.base.raw import Values
from openstack_prep.core.observed import Observed
from openstack_prep.core.resource import Resource

OPTION = "--allow-loss"
UNREAD = "unread"
"""The kind of a loss that nobody knows, because a service has failed or shows it to administrators only."""


class LossEffect(StrEnum):
    """What the deletion of a resource does to something else."""

    DELETED = "deleted"
    """The service deletes it, too."""
    CUT_OFF = "cut off"
    """It stays, but traffic, access or a function that it has is lost."""
    ORPHANED = "orphaned"
    """It stays without an owner who could reach it."""
    UNREAD = "not checked"
    """A service has failed, or shows it to administrators only, so that nobody knows."""

    @property
    def verb(self) -> str:
        return {"deleted": "delete", "cut off": "cut off", "orphaned": "orphan"}[self.value]


@dataclass(frozen=True, kw_only=True)
class DeletionLoss:
    """Something that a deletion takes from others.

    ``id`` identifies it among its ``kind``. ``name`` is what a person knows it by, ``detail`` where it is or what it
    loses. ``code`` is that of its refusal, ``fix`` how to remove it, if not as usual. ``is_own``: it belongs to
    the user who deletes, so that it is shown and needs no permission.
    """

    effect: LossEffect
    kind: str
    id: str
    name: str = ""
    detail: str = ""
    fix: str = ""
    code: Code = Code.PLAN_LOSES
    is_own: bool = False

    @classmethod
    def unread(cls, kind: str, what: str, error: PrepError, *, fix: str = "") -> Self:
        """Return what is not known of a kind, because a service has failed or refuses to list it."""
        reason = error.reason if isinstance(error, CloudError) else str(error)
        return cls(effect=LossEffect.UNREAD, kind=UNREAD, id=kind, detail=f"{what}: {reason}", fix=fix)

    @property
    def address(self) -> str:
        """How ``--allow-loss`` names it."""
        return f"{self.kind}/{self.id}"

    def is_allowed(self, allowed: Collection[str]) -> bool:
        return self.is_own or self.address in allowed

    def placed(self, where: str) -> Self:
        """Return it with a further word on where it is."""
        return replace(self, detail=", ".join(filter(None, (self.detail, where))))

    def __str__(self) -> str:
        words = ", ".join(filter(None, (self.name, self.detail)))
        return f"{self.address} ({words})" if words else self.address

    def data(self, allowed: Collection[str]) -> Values:
        return {
            "effect": self.effect.value,
            "address": self.address,
            "kind": self.kind,
            "id": self.id,
            "name": self.name,
            "detail": self.detail,
            "allowed": self.is_allowed(allowed),
        }


@dataclass(frozen=True)
class Unchecked:
    """What the credentials in use may not read, so that nobody knows whether a deletion takes it along."""

    what: str
    why: str

    def placed(self, where: str) -> Self:
        """Return it with a further word on where that is."""
        return replace(self, what=f"{self.what} {where}")

    def __str__(self) -> str:
        return f"not checked: {self.what}: {self.why}"


@dataclass(frozen=True)
class Deletion:
    """A resource that is about to be deleted."""

    resource: Resource
    observed: Observed

    @property
    def key(self) -> Key:
        return self.resource.key

    @property
    def id(self) -> str:
        return self.observed.id


Finding = tuple[Key, DeletionLoss | Unchecked]


class TakesInUpdate(Protocol):
    """A kind whose update takes something from others as well."""

    def list_taken(self, observed: Observed) -> Iterable[DeletionLoss | Unchecked]:
        """Yield what an update takes from others, which needs the same permission as with a deletion.

        Pure: it judges by the result of ``find``, for a plan and again right before the update.
        """
        ...


class TakesAlong(Protocol):
    """A kind whose deletion takes something along, or cuts it off."""

    @classmethod
    def find_losses(cls, run: Any, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        """Yield what these deletions take from others, by the key of the resource that is deleted.

        ``going`` are the ids of everything that the plan deletes. It is called for a plan, with all deletions of the
        kind, and again for each of them right before it. It reads in bulk, and changes nothing. What these credentials
        may not read is yielded as unchecked, what a service fails to answer as a loss with the effect UNREAD.
        """
        ...
