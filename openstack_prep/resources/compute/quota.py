"""Quotas of a project in compute, network and block storage.

Source: Compute API and Block Storage API "os-quota-sets", Networking API "quotas". One request per service to read
(limits and usage together), and one to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, Overtaken
from openstack_prep.base.fields import Limit, LimitGiB, LimitMiB, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.suggestion import suggest
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Observed, Resource
from openstack_prep.core.observed import owner_text
from openstack_prep.core.resource import Unguarded, Untagged
from openstack_prep.resources.compute import quota_stores
from openstack_prep.resources.compute.quota_stores import BLOCK_STORAGE, COMPUTE, STORES, Store
from openstack_prep.resources.identity.in_project import CURRENT, InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.lists import queries

SINCE = {"router_routes": "2026.2"}
"""The releases of OpenStack that introduced a quota: neutron 29.0.0, extensions/extraroute.py."""


@dataclass(frozen=True, kw_only=True)
class VolumeTypeQuota:
    """Limits of one volume type, besides the limits for all types together."""

    volumes: Limit | None = None
    """Volumes."""
    snapshots: Limit | None = None
    """Volume snapshots."""
    gigabytes: LimitGiB | None = None
    """Volumes and snapshots together, GiB."""


@dataclass(frozen=True)
class Usage:
    """The current usage by quota name; 0 or empty if it was not read, because no limit differs."""

    used: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Quota(InProject, Untagged, Unguarded):
    """The quotas of a project; -1 means unlimited, and omitted quotas are not managed.

    Quotas are deleted with their project; destroy --target restores their defaults if this spec manages it. In other
    projects a plan shows whose project it is and the former values, which destroy does not restore.
    """

    kind: ClassVar[str] = "quota"

    cores: Limit | None = None
    """vCPUs of all instances."""
    instances: Limit | None = None
    """Servers."""
    ram: LimitMiB | None = None
    """Memory of all instances, MiB."""
    key_pairs: Limit | None = None
    """Key pairs per user."""
    metadata_items: Limit | None = None
    """Metadata items per instance."""
    server_groups: Limit | None = None
    """Server groups."""
    server_group_members: Limit | None = None
    """Servers in a server group."""
    floating_ips: Limit | None = None
    """Floating IPs."""
    networks: Limit | None = None
    """Networks."""
    ports: Limit | None = None
    """Ports."""
    rbac_policies: Limit | None = None
    """RBAC policies."""
    routers: Limit | None = None
    """Routers."""
    router_routes: Limit | None = None
    """Static routes per router, in clouds of OpenStack 2026.2 and later."""
    security_groups: Limit | None = None
    """Security groups, including the group "default"."""
    security_group_rules: Limit | None = None
    """Rules of all security groups."""
    subnets: Limit | None = None
    """Subnets."""
    subnet_pools: Limit | None = None
    """Subnet pools."""
    trunks: Limit | None = None
    """Trunks."""
    volumes: Limit | None = None
    """Volumes."""
    snapshots: Limit | None = None
    """Volume snapshots."""
    gigabytes: LimitGiB | None = None
    """Volumes and snapshots together, GiB."""
    per_volume_gigabytes: LimitGiB | None = None
    """The largest volume, GiB."""
    backups: Limit | None = None
    """Volume backups."""
    backup_gigabytes: LimitGiB | None = None
    """Volume backups together, GiB."""
    groups: Limit | None = None
    """Volume groups."""
    volume_types: Mapping[Name, VolumeTypeQuota] | None = None
    """Limits per volume type."""

    @property
    def name(self) -> str:
        return self.project or CURRENT

    def desired(self) -> Values:
        values = super().desired()
        for volume_type, limits in values.pop("volume_types", {}).items():
            for what, limit in vars(limits).items():
                if limit is not None:
                    values[f"{what}_{volume_type}"] = limit
        return values

    def _split(self, values: Raw) -> Iterable[tuple[Store, Values]]:
        """Yield each affected service and its keys, in the service's own names."""
        known = {name for store in STORES for name in store.names}
        for store in STORES:
            mine = {store.names[name]: value for name, value in values.items() if name in store.names}
            if store is BLOCK_STORAGE:  # which has quotas per volume type
                mine |= {name: value for name, value in values.items() if name not in known}
            if mine:
                yield store, mine

    def find_one(self, run: CloudRun) -> Observed | None:
        project_id = run.find_project_id(self.owner)
        return None if project_id is None else self._read(run, project_id)

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield a project's quotas as far as they differ from those of a new project."""
        project_id = run.find_project_id(owner)
        if project_id is None:
            return
        limits: Values = {}
        for store in quota_stores.stores_in(run.admin):
            default = store.service(run.admin).get(store.defaults.format(project_id))[store.envelope]
            answer = quota_stores.read(run.admin, store, project_id)
            for name, theirs in store.names.items():
                limit = answer[theirs]["limit"] if isinstance(answer.get(theirs), dict) else None
                if limit is not None and limit != default.get(theirs):
                    limits[name] = limit
        if limits:
            declared = cls(**limits, **cls.placing(owner))
            yield declared, declared._observed(run, project_id, limits, {})

    def _read(self, run: CloudRun, project_id: str) -> Observed:
        values, used = {}, {}
        for store, mine in self._split(self.desired()):
            answer = quota_stores.read(run.admin, store, project_id, mine)
            ours = {theirs: name for name, theirs in store.names.items()}
            for theirs in mine:
                item = answer.get(theirs)
                if isinstance(item, dict):
                    values[ours.get(theirs, theirs)] = item["limit"]
                    used[ours.get(theirs, theirs)] = item.get("in_use", item.get("used", 0)) + item.get("reserved", 0)
        return self._observed(run, project_id, values, used)

    def _observed(self, run: CloudRun, project_id: str, values: Mapping[str, int], used: Mapping[str, int]) -> Observed:
        project = run.look(self.owner) if self.owner else None
        ours = bool(project and project.ours)
        differs = any(values.get(name) != limit for name, limit in self.desired().items())
        owner = owner_text(project.managed_by if project else "")
        doubt = "" if ours or not differs else f"its project is {owner}: destroy does not restore the former values"
        return Observed(id=project_id, values=values, ours=ours, record=Usage(used), doubt=doubt)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        missing = self._missing(run, observed)
        yield from dict.fromkeys(self._no_quota(run, name) for name in missing)
        if observed is None:
            return
        for name, used in observed.record_as(Usage).used.items():
            limit = self.desired()[name]
            if limit != -1 and limit < used and observed.values.get(name) != limit:
                what = f"{name}: {limit} is below the current usage of {used}"
                yield self.mistake(what, "free some of it, or raise the value", Code.QUOTA_SHORT)

    def _missing(self, run: CloudRun, observed: Observed | None) -> list[str]:
        """Return the declared quotas that no service of the cloud has.

        Those of Neutron depend on its release and plugins: it refuses a request that names another one, and sets none
        of them (neutron 29.0.0, extensions/quotasv2.py, update). Those of volume types are the types' own: Cinder keeps
        others without a word (cinder 29.0.0, api/contrib/quotas.py, update). A new project is compared with defaults.
        """
        if observed:
            return [name for name in self.desired() if name not in observed.record_as(Usage).used]
        optional = self.desired().keys() - COMPUTE.names.keys() - BLOCK_STORAGE.names.keys()
        return [name for name in self.desired() if name in optional and not quota_stores.has_quota(run, name)]

    def _no_quota(self, run: CloudRun, name: str) -> Mistake:
        if hasattr(self, name):
            since = f"; it requires OpenStack {SINCE[name]} or later" if name in SINCE else ""
            return self.mistake(f"no service of this cloud has a quota {name}", f"remove it{since}")
        volume_type = name.partition("_")[2]
        fix = suggest(volume_type, queries.volume_types(run), "have it created, or correct the name")
        return self.mistake(f"volume type {volume_type} does not exist", fix)

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset()  # the id is that of the project, which stays

    def create(self, run: CloudRun) -> Observed:
        """Write them, unless somebody else has created the project since the plan."""
        if (project := run.look(self.owner) if self.owner else None) and not project.ours:
            raise Overtaken(f"{self.key}: somebody else has created its project", retryable=True)
        return self._write(run, run.id(self.owner) if self.owner else run.admin.project_id, self.desired())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        written = self._write(run, observed.id, {change.field: change.after for change in changes})
        return self._observed(run, observed.id, {**observed.values, **written.values}, observed.record_as(Usage).used)

    def _write(self, run: CloudRun, project_id: str, values: Raw) -> Observed:
        for store, mine in self._split(values):
            store.service(run.admin).put(store.path.format(project_id), {store.envelope: mine})
        return self._observed(run, project_id, values, {})

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Restore the defaults: of all quotas if the project goes, else of those that still have the spec's value."""
        goes = (Project.kind, observed.id) in run.companions
        same = {name: value for name, value in self.desired().items() if observed.values.get(name) == value}
        for store, mine in self._split(self.desired() if goes else same):
            service, path = store.service(run.admin), store.path.format(observed.id)
            if goes:
                service.delete(path)
            else:
                default = service.get(store.defaults.format(observed.id))[store.envelope]
                service.put(path, {store.envelope: {name: default[name] for name in mine}})
