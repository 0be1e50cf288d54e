"""Flavors: sizes of servers, their extra specs, and which projects may use them.

Source: Compute API, "Flavors", "Flavors extra-specs", "Flavors access".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self, cast

from annotated_types import Gt, Le

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, ResourceFailed
from openstack_prep.base.fields import GiB, Memory, MiB, Name, Text, Vcpus
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.deletion_loss import Deletion, Finding
from openstack_prep.core.model import Adoptable, Change, Context, Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Unguarded
from openstack_prep.resources.cascades import row as cascades
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.nova_records import FLAVOR_FIELDS, FlavorRecord, name_fault

SPEC_NAMES = re.compile(r"[a-zA-Z0-9_:. -]{1,255}")
LONGEST = 65535
"""Names of extra specs, and the longest description (Nova 34.0.0, api/openstack/compute/schemas/flavors.py)."""


@dataclass(frozen=True, kw_only=True)
class Flavor(Adoptable[CloudRun], Unguarded):
    """A size of servers. With only a name, the flavor must already exist.

    Nova cannot change sizes and is_public, so a different value means a replacement, which needs --allow-replace.
    """

    kind: ClassVar[str] = "flavor"
    identity: ClassVar[frozenset[str]] = frozenset({"name", "access_domain"})
    immutable: ClassVar[frozenset[str]] = frozenset(FLAVOR_FIELDS)

    name: Name
    """Name of the flavor, unique in the cloud."""
    vcpus: Vcpus | None = None
    """Virtual CPUs; required to create the flavor."""
    ram: Memory | None = None
    """Memory, MiB; required to create the flavor."""
    disk: GiB | None = None
    """Root disk, GiB; 0 means the size of the image and is the default."""
    ephemeral: GiB | None = None
    """Ephemeral disk, GiB."""
    swap: MiB | None = None
    """Swap disk, MiB."""
    rxtx_factor: Annotated[float, Gt(0), Le(1e6)] | None = None
    """Factor for the network bandwidth; most hypervisors ignore it."""
    is_public: bool | None = None
    """Whether every project may use it; created as true by default."""
    description: str | None = None
    """Free text; an ownership tag is appended."""
    extra_specs: Mapping[Name, Text] | None = None
    """Extra specs to set, such as hw:cpu_policy; other extra specs are left alone."""
    access: tuple[Name, ...] | None = None
    """Names of projects that may use a flavor that is not public; other projects keep their access."""
    access_domain: Name = DEFAULT_DOMAIN
    """Name of the domain of these projects."""

    def references(self) -> Iterable[Resource]:
        return self.projects()

    def outlives(self) -> Iterable[Key]:
        return [project.key for project in self.projects()]

    def projects(self) -> tuple[Project, ...]:
        """Return the declared projects that may use it."""
        return tuple(Project(name=name, domain=self.access_domain) for name in self.access or ())

    def desired(self) -> Values:
        values = super().desired()
        if self.access is not None:
            values["access"] = frozenset(self.access)
        return values

    def find_one(self, run: CloudRun) -> Observed | None:
        record = only_one((flavor for flavor in queries.flavors(run) if flavor.name == self.name), str(self.key))
        return None if record is None else self._observed(run, record, self._granted(run, record.id))

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the flavors of the cloud; the list does not tell which projects may use a flavor that is not public."""
        yield from cls._declared(run, queries.flavors(run))

    @classmethod
    def scan_tagged(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield those flavors that may have the ownership tag of this spec: a cloud may have thousands of others."""
        start = f"[{run.ownership.tag}"
        yield from cls._declared(run, (each for each in queries.flavors(run) if start in (each.description or "")))

    @classmethod
    def _declared(cls, run: CloudRun, flavors: Iterable[FlavorRecord]) -> Iterator[tuple[Self, Observed]]:
        for flavor in flavors:
            sizes: Values = {name: getattr(flavor, name) for name in FLAVOR_FIELDS} | {"swap": flavor.swap or None}
            text = run.ownership.strip(flavor.description) or None
            declared = cls(name=flavor.name, description=text, extra_specs=flavor.extra_specs or None, **sizes)
            yield declared, declared._observed(run, flavor, frozenset())

    def _observed(self, run: CloudRun, flavor: FlavorRecord, access: frozenset[str]) -> Observed:
        specs = flavor.extra_specs
        named = OwnershipTag.home_in(flavor.description)
        return Observed(
            id=flavor.id,
            ours=run.ownership.manages(flavor.name, flavor.description) and home.is_ours(run, named),
            home=named,
            managed_by=home.another(run, flavor.description),
            values={name: getattr(flavor, name) for name in FLAVOR_FIELDS}
            | {
                "description": run.ownership.strip(flavor.description),
                "extra_specs": {key: specs[key] for key in self.extra_specs or () if key in specs},
                "access": access,
            },
        )

    def _granted(self, run: CloudRun, flavor_id: str) -> frozenset[str]:
        """Return the declared projects that may use the flavor."""
        if not self.access:
            return frozenset()
        ids = self.granted(run, flavor_id)
        return frozenset(project.name for project in self.projects() if run.find_id(project) in ids)

    def granted(self, run: CloudRun, flavor_id: str) -> frozenset[str]:
        """Return the ids of all projects that may use the flavor with this id; empty if every project may."""
        restricted = (flavor.id for flavor in queries.flavors(run) if not flavor.is_public)
        if flavor_id not in restricted:
            return frozenset()
        return frozenset(queries.flavor_access(run, flavor_id))

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        yield from self._check_access() if self.is_public else ()
        for name, value in (self.extra_specs or {}).items():
            if not SPEC_NAMES.fullmatch(name) or len(value) > 255:
                what = f"extra spec {name}: Nova takes names of letters, digits, spaces, -, _, : and ."
                fix = "correct the name; a name and a value have at most 255 characters"
                yield Mistake.about(self.key, what, fix, code=Code.SPEC_INVALID_VALUE, field="extra_specs")

    def list_long_texts(self, spec: str) -> Iterable[Mistake]:
        over = len(OwnershipTag(spec).describe(self.name, self.description)) - LONGEST
        if over > 0:
            what = f"description is longer with the ownership tag than the {LONGEST} characters that Nova stores"
            fix = f"shorten it by {over}"
            yield Mistake.about(self.key, what, fix, code=Code.SPEC_INVALID_VALUE, field="description")

    def _check_access(self) -> Iterable[Mistake]:
        """Yield that nobody needs access to a public flavor; without ``is_public`` a new one is public."""
        if self.access:
            what = "access does not apply to a public flavor, which every project may use"
            fix = "set is_public: false, or remove access"
            yield Mistake.about(self.key, what, fix, code=Code.SPEC_CONTRADICTION, field="access")

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if self.is_public is None and (observed is None or observed.values["is_public"]):
            yield from self._check_access()
        if observed is None and (found := name_fault(self.name)):
            yield Mistake.about(self.key, *found, code=Code.SPEC_INVALID_VALUE, field="name")
        if observed is None and (self.vcpus is None or self.ram is None):
            yield Mistake.about(self.key, "does not exist, and cannot be created without vcpus and ram", "set both")

    def create(self, run: CloudRun) -> Observed:
        wanted = self.desired()
        body = {theirs: wanted[name] for name, theirs in FLAVOR_FIELDS.items() if name in wanted}
        text = home.ownership(run).describe(self.name, self.description)
        body = {"disk": 0, **body, "name": self.name, "description": text}
        made = FlavorRecord.read(run.admin.compute.post("/flavors", {"flavor": body})["flavor"])
        specs, access = wanted.get("extra_specs", {}), wanted.get("access", frozenset())
        self._extend(run, made.id, specs, access)
        return self._observed(run, replace(made, extra_specs=specs), access)

    def _extend(self, run: CloudRun, flavor_id: str, extra_specs: Mapping[str, str], access: Iterable[str]) -> None:
        if extra_specs:
            run.admin.compute.post(f"/flavors/{flavor_id}/os-extra_specs", {"extra_specs": dict(extra_specs)})
        for name in sorted(access):
            project_id = run.id(Project(name=name, domain=self.access_domain))
            run.admin.compute.post(f"/flavors/{flavor_id}/action", {"addTenantAccess": {"tenant": project_id}})

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        after = {change.field: change.after for change in changes}
        if "description" in after:
            text = after["description"]
            body = {"description": home.ownership(run).describe(self.name, text) if observed.ours else text}
            run.admin.compute.put(f"/flavors/{observed.id}", {"flavor": body})
        access = after.get("access", frozenset()) - observed.values["access"]
        self._extend(run, observed.id, after.get("extra_specs", {}), access)
        return replace(observed, values={**observed.values, **after})

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        """Yield what others lose, without the projects that the spec itself declares."""
        own = (run.find_id(project) for deletion in deletions for project in cast(Flavor, deletion.resource).projects())
        return cascades.find_losses(run, deletions, going.union(filter(None, own)))

    def delete(self, run: CloudRun, observed: Observed) -> None:
        run.admin.compute.delete(f"/flavors/{observed.id}")

    def recreate(self, run: CloudRun, observed: Observed) -> Observed:
        """Replace it, with what the spec leaves alone: a description and extra specs, as they are right before."""
        now = run.admin.compute.get(f"/flavors/{observed.id}/os-extra_specs")["extra_specs"]
        others = {name: value for name, value in now.items() if name not in (self.extra_specs or {})}
        text = observed.values["description"] if self.description is None else self.description
        whole = replace(self, extra_specs={**others, **(self.extra_specs or {})}, description=text or None)
        self.delete(run, observed)
        try:
            made = whole.create(run)
        except CloudError as error:
            if not others:
                raise
            lost = ", ".join(f"{name}={value}" for name, value in sorted(others.items()))
            fix = f"run apply again, then set the extra specs that it had besides those of the spec: {lost}"
            raise ResourceFailed(f"{error}; the former flavor was deleted: {fix}") from error
        return replace(made, values={**made.values, **self.desired()})
