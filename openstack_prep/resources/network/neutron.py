"""Common behaviour of all network resources: one list per project, ownership tag in the description, If-Match.

Source: Networking API v2.0; "Revisions" for ``If-Match: revision_number=N``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, NotFound
from openstack_prep.base.invalid import rare_character
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, in_project, only_one
from openstack_prep.core.model import Adoptable, Change, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.run import query
from openstack_prep.core.twin import choose, settle
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists.neutron_records import NeutronRecord, PortRecord
from openstack_prep.resources.lists.queries import forwardings_to
from openstack_prep.resources.network.uses import Use

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

R = TypeVar("R", bound=NeutronRecord)

LONGEST = 255
"""Characters of a description (neutron-lib, db/constants.py, DESCRIPTION_FIELD_SIZE)."""


def added(resource: Resource, field: str, changes: Sequence[Change] | None) -> int:
    """Return how many elements of a set a new resource has, or these changes add."""
    pairs = [(None, resource.desired().get(field))] if changes is None else []
    pairs += [(change.before, change.after) for change in changes or () if change.field == field]
    return sum(len({*(after or ())} - {*(before or ())}) for before, after in pairs)


def is_new_value(field: str, changes: Sequence[Change] | None) -> bool:
    """Return whether a field has another value afterwards: in a new resource, or by these changes."""
    return changes is None or any(change.field == field for change in changes)


@dataclass(frozen=True, kw_only=True)
class NetworkResource(ByProjectUser, Adoptable[CloudRun], Generic[R]):
    """Base of the kinds that Neutron stores; each kind names its API resource and its fields."""

    collection: ClassVar[str]
    """The plural in paths."""
    member: ClassVar[str]
    """The singular in bodies; its plural is the same with an s."""
    defaults: ClassVar[Values] = {}
    """What Neutron sets unless a request says otherwise; an export leaves it out.

    Source: Networking API v2.0, and neutron.conf's l3_ha, router_distributed and enable_snat_by_default, whose fields
    only administrators may send: a cloud that is configured otherwise shows them.
    """

    description: str | None = None
    """Free text; an ownership tag is appended."""

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        name = "floating_ips" if self.member == "floatingip" else self.collection.replace("-", "_")
        return {name: 1} if changes is None else {}

    def list_long_texts(self, spec: str) -> Iterable[Mistake]:
        if rare := rare_character([self.name]):
            yield self.mistake(f"{rare} is not taken by Neutron in names", "remove it", Code.SPEC_INVALID_VALUE, "name")
        text = self.description or ""
        text = text if self.adopt is True else OwnershipTag(spec).describe(self.name, text)
        if len(text) > LONGEST:
            what = f"description has {len(text)} characters with the ownership tag, and Neutron stores {LONGEST}"
            yield self.mistake(what, f"shorten it, or the name, by {len(text) - LONGEST}", Code.SPEC_INVALID_VALUE)

    # --- what a kind may override ------ ---------------------------------------------------

    @classmethod
    def read(cls, raw: Raw) -> R:
        """Return the record of one API object."""
        raise NotImplementedError(cls.kind)

    def body(self, run: CloudRun, values: Raw) -> Values:
        """Return fields in terms of the API: names become ids."""
        return dict(values)

    def values(self, run: CloudRun, record: R) -> Values:
        """Return a record in terms of the spec: ids become names."""
        return {name: getattr(record, name, None) for name in self.desired()}

    def outputs(self, record: R) -> dict[str, str]:
        return {}

    @classmethod
    def listing(cls, run: CloudRun, project_id: str) -> Sequence[R]:
        """Return all resources of the kind in a project."""
        return _in_project(run, cls, project_id)

    def named(self, run: CloudRun, listed: Iterable[R]) -> list[R]:
        """Return the resources that may match."""
        return [record for record in listed if record.name == self.name]

    def is_ours(self, run: CloudRun, record: R) -> bool:
        """Whether it has the ownership tag of the spec, with its own name: a copy has another name."""
        return run.ownership.manages(record.name, record.description)

    def use(self, run: CloudRun, record: R) -> Use:
        """Return what uses one of several twins."""
        return Use()

    @property
    def can_have_twins(self) -> bool:
        return True

    def choose(self, run: CloudRun, listed: Iterable[R]) -> Observed | None:
        """Return the matching resource: of several, the twin that is kept, else NotUnique is raised."""
        named = self.named(run, listed)
        tagged = [record for record in named if self.is_ours(run, record)]
        if len(tagged) < 2:
            record = tagged[0] if tagged else only_one(named, str(self.key))
            return self.observe(run, record) if record is not None else None
        return choose(self._twin(run, record) for record in tagged)

    def _twin(self, run: CloudRun, record: R) -> Observed:
        use, observed = self.use(run, record), self.observe(run, record)
        return replace(observed, used_by=use.others, contained_ids=use.contained_ids, created_at=record.created_at)

    # --- the verbs ------------------------------------------------------------------------

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for owner, mine in cls.by_project(wanted).items():
            project_id = run.find_project_id(owner)
            listed = cls.listing(run, project_id) if project_id else []
            for each in mine:
                observed = each.choose(run, listed)
                if observed is not None:
                    found[each.key] = observed
        return found

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        project_id = run.find_project_id(owner)
        for record in cls.listing(run, project_id) if project_id else ():
            declared = cls.declared(run, owner, record)
            yield declared, declared.observe(run, record)

    @classmethod
    def declared(cls, run: CloudRun, owner: Resource | None, record: R) -> Self:
        """Return the resource that a spec would declare for a record."""
        read = {field.name: getattr(record, field.name, None) for field in fields(cls)}
        same = {name: value for name, value in read.items() if value not in (None, cls.defaults.get(name))}
        text = run.ownership.strip(record.description) or None
        return cls(**same | cls.in_words(run, record) | {"description": text} | cls.placing(owner))

    @classmethod
    def in_words(cls, run: CloudRun, record: R) -> Values:
        """Return the fields of a record that differ in a spec: ids become names."""
        return {}

    def observe(self, run: CloudRun, record: R) -> Observed:
        return Observed(
            id=record.id,
            ours=self.is_ours(run, record),
            managed_by=run.ownership.another_in(record.description),
            values=self.values(run, record) | {"description": run.ownership.strip(record.description)},
            outputs=self.outputs(record),
            record=record,
        )

    def create(self, run: CloudRun) -> Observed:
        cloud, owner = self.maker(run)
        named = {} if self.member == "floatingip" else {"name": self.name}
        description = run.ownership.describe(self.name, self.description)
        body = {**named, **owner, **self.body(run, self.desired()), "description": description}
        project_id = str(run.find_project_id(self.owner))

        def post() -> R:
            return self.read(cloud.network.post(f"/{self.collection}", {self.member: body})[self.member])

        def look() -> Sequence[R]:
            return self.listing(run.fresh(), project_id)

        if not self.can_have_twins:
            return self.observe(run, post())
        made, listed = run.wave.write((self.collection, project_id), post, look)
        others = {record.id for record in self.named(run, listed) if self.is_ours(run, record)} - {made.id}
        if others:
            self._keep_one_twin(run, made.id, project_id)
        return self.observe(run, made)

    def _keep_one_twin(self, run: CloudRun, made: str, project_id: str) -> None:
        """Return when the created resource is the only one with our tag; raises Overtaken if another one is kept."""

        def look() -> Observed | None:
            now = run.fresh()
            return self.choose(now, self.listing(now, project_id))

        settle(self.key, made, look, lambda mine: self.delete(run, mine))

    def maker(self, run: CloudRun) -> tuple[Cloud, dict[str, str]]:
        """Return the connection that creates, changes and deletes it, and the owner fields for a new one's body."""
        return run.creator_of(self.owner)

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        body = self.body(run, {change.field: change.after for change in changes})
        if "description" in body and observed.ours:
            body["description"] = run.ownership.describe(self.name, self.description)
        return self.observe(run, self.put(run, observed, body))

    def put(self, run: CloudRun, observed: Observed, body: Raw) -> R:
        """Update it unless it was changed since it was read: after a 412 the executor reads it again."""
        cloud, _ = self.maker(run)
        headers = unchanged(observed.record_as(NeutronRecord))
        answer = cloud.network.put(f"/{self.collection}/{observed.id}", {self.member: body}, headers=headers)
        return self.read(answer[self.member])

    def again(self, cloud: Cloud, observed: Observed) -> R | None:
        """Return it as it is now; None if it no longer exists."""
        try:
            return self.read(cloud.network.get(f"/{self.collection}/{observed.id}")[self.member])
        except NotFound:
            return None

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it unless it was changed since it was read: what came in would go with it."""
        cloud, _ = self.maker(run)
        headers = unchanged(observed.record_as(NeutronRecord))
        cloud.network.delete(f"/{self.collection}/{observed.id}", headers=headers)


def unchanged(record: NeutronRecord) -> dict[str, str]:
    """Return the condition of a request that a resource was not changed since it was read; else Neutron answers 412."""
    return {"If-Match": f"revision_number={record.revision_number}"}


def changed(path: str) -> CloudError:
    """Return the error of a resource that was changed since it was judged: the executor judges it again."""
    return CloudError(f"{path} was modified concurrently", status=412, retryable=True)


def without_forwardings(run: CloudRun, cloud: Cloud, port: PortRecord, judged: PortRecord) -> PortRecord:
    """Delete the port forwardings to a port that this run has judged, and return the port as it is then.

    Neutron deletes them with the port, but after its revision has changed. Raises CloudError (412) if others came in
    since the port was ``judged``: these change its revision, too (Neutron 29.0.0, db/models/port_forwarding.py,
    revises_on_change).
    """
    if forwarded := list(forwardings_to(run, port)):
        for floating_ip, each in forwarded:
            run.admin.network.delete(f"/floatingips/{floating_ip.id}/port_forwardings/{each['id']}")
        port = PortRecord.read(cloud.network.get(f"/ports/{port.id}")["port"])
    if port.revision_number != judged.revision_number and any(forwardings_to(run.fresh(), port)):
        raise changed(f"port {port.id}")
    return port


@query
def _in_project(run: CloudRun, kind: type[NetworkResource[R]], project_id: str) -> Sequence[R]:
    return [kind.read(raw) for raw in in_project(run, kind.collection, kind.member, project_id)]
