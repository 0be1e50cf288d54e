"""One row of a table: what a service does to something else when it deletes a resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, ConfigError, NotAllowed, NotFound
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.answers import Outages
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect, Unchecked
from openstack_prep.core.model import OwnershipTag
from openstack_prep.core.run import IDS_PER_REQUEST, fact
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import NeutronRecord

# Lists of a whole cloud: one in place of one list per deletion, where a service has no filter for several.
#
# A deletion reads such a list again and again (see ``executor.FRESH``), so only a short one is read, and only for
# several deletions. Otherwise each deletion has a list of its own.

SEVERAL = 4
"""Deletions from which on a whole list is worth its request."""


@dataclass(frozen=True, kw_only=True)
class WholeList:
    """A list of a service: ``service`` is the connection's attribute, ``member`` the answer's.

    ``most`` is how many rows count as short. ``has_limit``: the service has the parameter limit, so that no more are
    read to know that. ``secret`` is the member of a row that is neither logged nor kept.
    """

    service: str
    path: str
    member: str
    most: int = 2000
    params: tuple[tuple[str, object], ...] = ()
    has_limit: bool = False
    secret: str = ""

    def of(self, **params: object) -> Self:
        return replace(self, params=(*self.params, *params.items()))

    def at(self, thing_id: str) -> Self:
        return replace(self, path=self.path.format(thing_id))

    def read_for(self, run: CloudRun, kind: str, thing_id: str) -> Sequence[Raw] | None:
        """Return all rows, in which those of one deletion are; None if it has to read a list of its own."""
        return self.rows(run) if len(run.companions_of(kind, thing_id)) >= SEVERAL else None

    def rows(self, run: CloudRun) -> Sequence[Raw] | None:
        """Return all rows; None if they are too many, or these credentials may not read them."""
        return run.read_once(self, lambda: self._read(run))

    def give_up(self, run: CloudRun) -> None:
        """Do not read it again in this run."""
        _given_up(run).add(self)

    def _read(self, run: CloudRun) -> Sequence[Raw] | None:
        if self in _given_up(run):
            return None
        params: Values = dict(self.params) | ({"limit": self.most + 1} if self.has_limit else {})
        rows: list[Raw] = []
        try:
            service = getattr(run.admin, self.service)
            for page in service.pages(self.path, self.member, params, log=not self.secret, once=True):
                rows += map(self._without_secret, page[self.member])
                # keystone 30.0.0, server/flask/common.py, wrap_collection: truncated, after list_limit rows
                if len(rows) > self.most or page.get("truncated"):
                    self.give_up(run)
                    return None
        except CloudError:  # only its own parts may be read, or all are too many in time: each deletion says what fails
            self.give_up(run)
            return None
        return rows

    def _without_secret(self, raw: Raw) -> Raw:
        return {name: value for name, value in raw.items() if name != self.secret}


@fact
def _given_up(run: CloudRun) -> set[WholeList]:
    """Return the lists that are of no use in this cloud."""
    return set()


ADMINISTRATORS = "only an administrator sees those of other projects"
ASK_ADMINISTRATOR = "delete it with a connection whose user has the role admin"
ASK_READER = "delete it with a connection whose user may list them"


@dataclass(frozen=True)
class Deletions:
    """Resources of one kind that are about to be deleted, and the ids of everything that goes with the plan."""

    run: CloudRun
    items: Sequence[Deletion]
    going: frozenset[str]

    def __iter__(self) -> Iterator[Deletion]:
        return iter(self.items)

    @cached_property
    def by_id(self) -> Mapping[str, Deletion]:
        return {deletion.id: deletion for deletion in self}

    def listed(self, path: str, field: str, **which: object) -> Iterator[Raw]:
        """Yield what a list of Neutron contains for these resources, read also for those deleted beside them."""
        kinds = {deletion.id: deletion.resource.kind for deletion in self}
        beside = {deletion_id: self.run.companions_of(kind, deletion_id) for deletion_id, kind in kinds.items()}
        alone = [deletion_id for deletion_id, ids in beside.items() if len(ids) == 1]
        together = {ids for ids in beside.values() if len(ids) > 1}
        chunks = [tuple(alone[at : at + IDS_PER_REQUEST]) for at in range(0, len(alone), IDS_PER_REQUEST)]
        for ids in (*sorted(together), *chunks):
            listed = queries.listed_for(self.run, path, field, ids, tuple(which.items()))
            yield from (raw for raw in listed if raw[field] in self.by_id)

    def stays(self, raw: Raw) -> bool:
        """Whether the plan does not delete something itself."""
        return raw["id"] not in self.going


@dataclass(frozen=True)
class Dependent:
    """Something that a deletion takes along; ``fix`` and ``is_own`` are those of a loss."""

    deletion: Deletion
    id: str
    name: str = ""
    detail: str = ""
    fix: str = ""
    is_own: bool = False


Read = Callable[[Deletions], Iterable[Dependent]]
Text = Callable[[CloudRun, Raw], str]


class UsuallyHidden(NotAllowed):
    """The credentials in use may not read what services usually hide from them: a refusal would end each destroy."""


@dataclass(frozen=True, kw_only=True)
class CascadeRow:
    """A rule of a service.

    ``takes`` is the kind of what is taken along. ``source`` is the program, its version and its file. ``read`` yields
    what exists of it, before it raises if there may be more; ``what`` says in words what was not read if the
    credentials in use may not, or the service fails. ``hidden``: what belongs to other projects is only in an
    administrator's list. ``is_final``: no later run finds what remains, so what a connection may not read is
    a loss, unless services usually hide it, or this run has read it before it deleted the user who may. ``by_member``:
    a user of the project may read it, even if the administrator may not. ``service`` is the type of the service that
    the row of a project reads.
    """

    effect: LossEffect
    takes: str
    what: str
    source: str
    read: Read = field(repr=False)
    hidden: bool = False
    is_final: bool = False
    by_member: bool = False
    service: str = ""
    code: Code = Code.PLAN_LOSES

    def find(self, deletions: Deletions) -> Iterator[Finding]:
        dependents: list[Dependent] = []
        unread: DeletionLoss | Unchecked | None = None
        try:
            dependents.extend(self.read(deletions))
        except NotFound as error:
            if len(deletions.items) > 1:  # one of them no longer exists
                for deletion in deletions:
                    yield from self.find(Deletions(deletions.run, [deletion], deletions.going))
                return
            unread = None if error.of_resource else self._unread(deletions, error)
        except (CloudError, ConfigError) as error:
            unread = self._unread(deletions, error)
        if unread is None and self.hidden and not sees_everything(deletions.run):
            unread = self._unread(deletions, NotAllowed(ADMINISTRATORS))
        if unread is None:
            _known(deletions.run).update((self.takes, deletion.id) for deletion in deletions)
        yield from ((dependent.deletion.key, self._loss(dependent)) for dependent in dependents)
        if unread is not None:
            yield from ((deletion.key, unread) for deletion in deletions)

    def _loss(self, dependent: Dependent) -> DeletionLoss:
        return DeletionLoss(
            effect=self.effect,
            kind=self.takes,
            id=dependent.id,
            name=dependent.name,
            detail=dependent.detail,
            fix=dependent.fix,
            code=self.code,
            is_own=dependent.is_own,
        )

    def _unread(self, deletions: Deletions, error: CloudError | ConfigError) -> DeletionLoss | Unchecked:
        """Return what nobody knows: what these credentials never may read, or what a service fails to answer now."""
        if not isinstance(error, NotAllowed):
            return DeletionLoss.unread(self.takes, self.what, error)
        known = _known(deletions.run).issuperset((self.takes, deletion.id) for deletion in deletions)
        if self.is_final and not (known or isinstance(error, UsuallyHidden)):
            fix = ASK_READER if sees_everything(deletions.run) else ASK_ADMINISTRATOR
            return DeletionLoss.unread(self.takes, self.what, error, fix=fix)
        return Unchecked(self.what, error.reason)


CascadeTable = tuple[CascadeRow, ...]


@fact
def _known(run: CloudRun) -> set[tuple[str, str]]:
    """Return what has been read in this run: what is taken along, by what would be deleted."""
    return set()


def find_losses(
    run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str], rows: Sequence[CascadeRow] | None = None
) -> Iterator[Finding]:
    """Return what deletions of one kind take from others, by its table, which extensions may add to, or by ``rows``.

    A service that does not answer one row is not asked for the others, and for a plan is not asked for long: the plan
    names what was not read.
    """
    if rows is None:
        kinds = dict.fromkeys(deletion.resource.kind for deletion in deletions)
        rows = [row for kind in kinds for row in extensions.cascades(kind)]
    with run.read_once(Outages, Outages).in_use(retries=None if run.is_patient else 1):
        found = [finding for row in rows for finding in row.find(Deletions(run, deletions, going))]
    return iter(found)


def find_losses_everywhere(
    run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str], *, by_member: bool = False
) -> Iterator[Finding]:
    """Yield what deletions of one kind take in all regions of the cloud: these share Keystone.

    ``by_member``: only what the users of a project read.
    """
    kinds = dict.fromkeys(deletion.resource.kind for deletion in deletions)
    rows = [row for kind in kinds for row in extensions.cascades(kind) if row.by_member or not by_member]
    yield from find_losses(run, deletions, going, rows)
    yield from find_losses_elsewhere(run, deletions, going, [row for row in rows if row.service])


def find_losses_elsewhere(
    run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str], rows: Sequence[CascadeRow]
) -> Iterator[Finding]:
    """Yield what deletions take in the other regions of a cloud, by rows that name a service.

    A service with one endpoint for several regions is read once.
    """
    read = {service: {run.admin.endpoint_of(service)} for service in {row.service for row in rows}}
    # without key pairs and containers, whose names are those of one region
    going = frozenset(each for each in going if {" ", "/"}.isdisjoint(each))
    for region in run.admin.list_regions() if rows else ():
        there = _in_region(run, region).fresh().for_deletions(run.companions, is_patient=run.is_patient)
        found = {service: there.admin.endpoint_of(service) for service in read}
        new = {service for service, endpoint in found.items() if endpoint and endpoint not in read[service]}
        for key, finding in find_losses(there, deletions, going, [row for row in rows if row.service in new]):
            yield key, finding.placed(f"in region {region}")
        for service in new:
            read[service].add(found[service])


@fact
def _in_region(run: CloudRun, region: str) -> CloudRun:
    return run.in_region(region)


class HasCascades:
    """Base of kinds whose deletion takes from others what their table says."""

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        return find_losses_everywhere(run, deletions, going)


def sees_everything(run: CloudRun) -> bool:
    """Whether the services show the connection what belongs to other projects.

    Their default policies ask for the role admin (Neutron 29.0.0, conf/policies/base.py; Nova 34.0.0, policies/base.py;
    keystone 30.0.0, common/policies/base.py).
    """
    return "admin" in map(str.lower, run.admin.roles)  # oslo.policy 6.0.1, _checks.py, RoleCheck: case does not count


def place(run: CloudRun, raw: Raw, *words: str) -> str:
    """Return in which project something is, and which spec manages it, as far as it says so."""
    project_id = raw.get("project_id") or raw.get("tenant_id") or ""
    return located(run, project_id, owner_in(raw.get("description"), raw.get("tags")), *words)


def place_of(run: CloudRun, record: NeutronRecord) -> str:
    """Return in which project a record is, and which spec manages it, as far as it says so."""
    return located(run, record.project_id, owner_in(record.description, record.tags))


def located(run: CloudRun, project_id: str, other: str, *words: str) -> str:
    """Return the project with this id and the spec ``other``, as far as there are any."""
    project = f"in project {queries.project_name(run, project_id)}" if project_id else ""
    return ", ".join(filter(None, (*words, project, f"managed by spec {other}" if other else "")))


def name_of(run: CloudRun, raw: Raw) -> str:
    return str(raw.get("name") or "")


def no_text(run: CloudRun, raw: Raw) -> str:
    return ""


def per_deletion(
    read: Callable[[CloudRun, Deletion], Iterable[Raw]], name: Text = name_of, detail: Text = place
) -> Read:
    """Return a reader of what a list of each deletion contains and the plan does not delete itself."""

    def find(deletions: Deletions) -> Iterator[Dependent]:
        run = deletions.run
        for deletion in deletions:
            for raw in filter(deletions.stays, read(run, deletion)):
                yield Dependent(deletion, raw["id"], name(run, raw), detail(run, raw))

    return find


def in_neutron(
    path: str,
    field: str,
    *,
    name: Text = name_of,
    detail: Text = place,
    counts: Callable[[Deletions, Raw], bool] = lambda deletions, raw: True,
    **which: object,
) -> Read:
    """Return a reader of one list of Neutron whose entries name the resources that are deleted in a field."""

    def find(deletions: Deletions) -> Iterator[Dependent]:
        run = deletions.run
        for raw in deletions.listed(path, field, **which):
            if deletions.stays(raw) and counts(deletions, raw):
                yield Dependent(deletions.by_id[raw[field]], raw["id"], name(run, raw), detail(run, raw))

    return find


def owner_in(description: str | None, tags: Iterable[str] | None) -> str:
    """Return the name of the spec whose ownership tag the description or the tags of something contain."""
    return OwnershipTag.spec_in(description or "") or ", ".join(OwnershipTag.specs_in(tags or ()))


@fact
def user_name(run: CloudRun, user_id: str) -> str:
    """Return a user's name; the id if these credentials may not read it."""
    try:
        return str(run.admin.identity.get(f"/users/{user_id}")["user"]["name"])
    except CloudError:
        return user_id
