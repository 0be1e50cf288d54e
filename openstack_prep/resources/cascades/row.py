"""One row of a table: what a service does to something else when it deletes a resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import NotAllowed, NotFound
from openstack_prep.base.key import Key
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect, Unchecked
from openstack_prep.core.model import OwnershipTag
from openstack_prep.core.run import query
from openstack_prep.resources.lists import queries

ADMINISTRATORS = "only an administrator sees those of other projects"


@dataclass(frozen=True)
class Deletions:
    """Resources of one kind that are about to be deleted, and the ids of everything that goes with the plan."""

    run: CloudRun
    every: Sequence[Deletion]
    going: frozenset[str]

    @cached_property
    def by_id(self) -> Mapping[str, Deletion]:
        return {each.id: each for each in self.every}

    @property
    def ids(self) -> list[str]:
        return list(self.by_id)

    def stays(self, raw: Raw) -> bool:
        """Whether the plan does not delete something itself."""
        return raw["id"] not in self.going


@dataclass(frozen=True)
class Dependent:
    """Something that the deletion of ``of`` takes along; ``fix`` says how to remove it, if not as usual."""

    of: Deletion
    id: str
    name: str = ""
    detail: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class CascadeRow:
    """A rule of a service.

    ``takes`` is the kind of what is taken along. ``source`` is the program, its version and its file. ``read`` returns
    what exists of it; ``what`` says in words what was not read if the credentials in use may not. ``hidden``: what
    belongs to other projects is only in an administrator's list.
    """

    effect: LossEffect
    takes: str
    what: str
    source: str
    read: Callable[[Deletions], Iterable[Dependent]] = field(repr=False)
    hidden: bool = False
    code: Code = Code.PLAN_LOSES

    def find(self, deletions: Deletions) -> Iterator[Finding]:
        try:
            found = list(self.read(deletions))
        except NotFound:  # a service without this API: then there is no such thing
            found = []
        except NotAllowed as error:
            yield from self._unchecked(deletions, str(error))
            return
        for each in found:
            yield (
                each.of.key,
                DeletionLoss(
                    effect=self.effect,
                    kind=self.takes,
                    id=each.id,
                    name=each.name,
                    detail=each.detail,
                    fix=each.fix,
                    code=self.code,
                ),
            )
        if self.hidden and not sees_everything(deletions.run):
            yield from self._unchecked(deletions, ADMINISTRATORS)

    def _unchecked(self, deletions: Deletions, why: str) -> Iterator[tuple[Key, Unchecked]]:
        return ((each.key, Unchecked(self.what, why)) for each in deletions.every)


CascadeTable = tuple[CascadeRow, ...]


def find_losses(
    table: CascadeTable, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]
) -> Iterator[Finding]:
    """Yield what deletions of one kind take from others, by its table."""
    for row in table:
        yield from row.find(Deletions(run, deletions, going))


def sees_everything(run: CloudRun) -> bool:
    """Whether the services show the connection what belongs to other projects.

    Their default policies ask for the role admin (Neutron 29.0.0, conf/policies/base.py; Nova 34.0.0, policies/base.py;
    keystone 30.0.0, common/policies/base.py).
    """
    return "admin" in map(str.lower, run.admin.roles)  # oslo.policy 6.0.1, _checks.py, RoleCheck: case does not count


def place(run: CloudRun, raw: Raw, *words: str) -> str:
    """Return in which project something is, and which spec manages it, as far as it says so."""
    project_id = raw.get("project_id") or raw.get("tenant_id") or ""
    other = owner_in(raw)
    project = f"in project {queries.project_name(run, project_id)}" if project_id else ""
    return ", ".join(filter(None, (*words, project, f"managed by spec {other}" if other else "")))


def owner_in(raw: Raw) -> str:
    """Return the name of the spec whose ownership tag the description or the tags of something contain."""
    found = OwnershipTag.spec_in(raw.get("description") or "")
    return found or ", ".join(OwnershipTag.specs_in(raw.get("tags") or ()))


@query
def user_name(run: CloudRun, user_id: str) -> str:
    """Return a user's name; the id if these credentials may not read it."""
    try:
        return str(run.admin.identity.get(f"/users/{user_id}")["user"]["name"])
    except (NotAllowed, NotFound):
        return user_id
