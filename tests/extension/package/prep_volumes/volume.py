"""Volumes.

Source: Block Storage API v3, "Volumes" and "Volume actions"; extending one that is in use since microversion 3.42.

The ownership tag is in the metadata: the name of the spec, and the volume's own id. Cinder copies the metadata of a
volume into another one when a backup is restored (29.0.0, backup/driver.py, _restore_vol_meta), so a tag with another
id is that of a copy. Cinder chooses the id, so a second request adds it. A run that is killed before that leaves a
volume with a tag that names no id: it counts, unless a backup was restored into the volume, which Cinder notes there
(backup/manager.py, restore_backup).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from annotated_types import Gt, Le

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, ResourceFailed, WaitTimeout
from openstack_prep.base.fields import Name, Size
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Adoptable, Change, Observed, Resource
from openstack_prep.core.run import query
from openstack_prep.core.twin import choose, settle
from openstack_prep.resources.identity.in_project import ByProjectUser
from openstack_prep.resources.lists import queries

SPEC, ID = "openstack_prep", "openstack_prep_id"
"""Metadata that is the ownership tag: the name of the spec, and the id of the volume."""
RESTORED = "src_backup_id"
"""Metadata by which Cinder says that a backup of another volume was restored into this one."""
BUSY = (
    "attaching", "backing-up", "creating", "detaching", "downloading", "extending", "maintenance", "managing",
    "restoring-backup", "retyping", "uploading",
)  # fmt: skip
FAILED = ("error", "error_backing-up", "error_extending", "error_managing", "error_restoring")
DELETING = "deleting"
"""States of volumes (Cinder 29.0.0, objects/fields.py, VolumeStatus)."""
DEADLINE = 600.0  # seconds
PAUSE = 0.5  # seconds between two looks


@dataclass(frozen=True, kw_only=True)
class VolumeRecord:
    """A volume as Cinder reports it."""

    id: str
    name: str
    status: str
    size: int
    volume_type: str | None
    description: str
    created_at: str
    metadata: Mapping[str, str]
    users: tuple[str, ...]
    """The ids of servers, or the names of hosts without one."""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        return cls(
            id=raw["id"],
            name=raw["name"] or "",
            status=raw["status"],
            size=raw["size"],
            volume_type=raw["volume_type"],
            description=raw["description"] or "",
            created_at=raw["created_at"],
            metadata=raw["metadata"],
            users=tuple(each["server_id"] or each["host_name"] for each in raw["attachments"]),
        )

    @property
    def spec(self) -> str:
        """The name of the spec that manages it, or an empty string."""
        is_copy = self.metadata[ID] != self.id if ID in self.metadata else RESTORED in self.metadata
        return "" if is_copy else self.metadata.get(SPEC, "")


@dataclass(frozen=True, kw_only=True)
class Volume(ByProjectUser, Adoptable[CloudRun]):
    """A volume of the project. It can grow; a smaller one, or one of another type, is a replacement."""

    kind: ClassVar[str] = "volume"
    needs_login: ClassVar[bool] = True
    immutable: ClassVar[frozenset[str]] = frozenset({"volume_type"})
    implied: ClassVar[frozenset[str]] = frozenset({"status"})

    name: Name
    """Name of the volume, unique in its project."""
    size: Annotated[int, Gt(0), Le(2**22), Size("GiB")]
    """Size, GiB."""
    volume_type: Name | None = None
    """Name of the volume type; default: that of the cloud."""
    description: str | None = None
    """Free text."""

    @property
    def can_have_twins(self) -> bool:
        return True

    def desired(self) -> dict[str, Any]:
        return super().desired() | {"status": "complete"}

    def is_replaced_by(self, change: Change) -> bool:
        return change.field == "size" and change.after < change.before

    # --- reading --------------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        project_id = run.find_project_id(self.owner)
        return self._choose(run, volumes(run, project_id)) if project_id else None

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the volumes that have a name: the others are the boot volumes of servers, which no spec can declare."""
        project_id = run.find_project_id(owner)
        for record in volumes(run, project_id) if project_id else ():
            if record.name:
                declared = cls(
                    name=record.name,
                    size=record.size,
                    volume_type=record.volume_type,
                    description=record.description or None,
                    **cls.placing(owner),
                )
                yield declared, declared._observed(run, record)

    def _choose(self, run: CloudRun, listed: Iterable[VolumeRecord]) -> Observed | None:
        """Return the volume with this name: of several that this spec has created, the twin that is kept."""
        named = [record for record in listed if record.name == self.name]
        own = self._own(run, named)
        if len(own) > 1:
            return choose(replace(self._observed(run, each), used_by=tuple(_users(run, each))) for each in own)
        record = own[0] if own else only_one(named, str(self.key))
        return self._observed(run, record) if record else None

    def _own(self, run: CloudRun, listed: Iterable[VolumeRecord]) -> list[VolumeRecord]:
        return [record for record in listed if (record.name, record.spec) == (self.name, run.ownership.spec)]

    def _observed(self, run: CloudRun, record: VolumeRecord) -> Observed:
        ours = record.spec == run.ownership.spec
        return Observed(
            id=record.id,
            ours=ours,
            managed_by="" if ours else record.spec,
            created_at=record.created_at,
            values={
                "size": record.size,
                "volume_type": record.volume_type,
                "description": record.description,
                "status": "incomplete" if ours and ID not in record.metadata else "complete",
            },
            record=record,
        )

    # --- checks ---------------------------------------------------------------------------

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if observed is None:
            if self.volume_type and self.volume_type not in queries.volume_types(run):
                yield self.mistake(f"volume type {self.volume_type} does not exist", "correct it", field="volume_type")
        elif (status := observed.record_as(VolumeRecord).status) in FAILED:
            yield self.mistake(f"exists, but volume {observed.id} is {status}", "reset its state, or delete it")

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield what makes Cinder refuse the deletion (29.0.0, volume/api.py, delete): servers and snapshots."""
        for user, user_id in _users(run, observed.record_as(VolumeRecord)).items():
            if user_id not in going:
                yield self.mistake(f"{user} uses it", "detach or delete that first", Code.STILL_USED)

    def settle(self, run: CloudRun, observed: Observed) -> bool:
        if observed.record_as(VolumeRecord).status not in BUSY:
            return False
        _ready(self._cloud(run), observed.id)
        return True

    # --- changing -------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        cloud, project_id = run.tenant(self.owner), str(run.find_project_id(self.owner))
        body = {name: value for name, value in self.desired().items() if name not in self.implied}
        body |= {"name": self.name, "metadata": {SPEC: run.ownership.spec}}

        def post() -> VolumeRecord:
            made = cloud.volume.post("/volumes", {"volume": body})["volume"]
            _tag(run, cloud, made["id"])
            return _ready(cloud, made["id"])

        def look() -> list[VolumeRecord]:
            return volumes(run.fresh(), project_id)

        made, listed = run.wave.write((self.kind, project_id), post, look)
        if [record.id for record in self._own(run, listed)] != [made.id]:  # another run has created a twin
            settle(self.key, made.id, lambda: self._choose(run, look()), lambda mine: self.delete(run, mine))
        return self._observed(run, made)

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        cloud, path = self._cloud(run), f"/volumes/{observed.id}"
        fields = {change.field for change in changes}
        if "status" in fields:
            _tag(run, cloud, observed.id)
        if "description" in fields:
            cloud.volume.put(path, {"volume": {"description": self.description}})
        record = _ready(cloud, observed.id)
        if record.size < self.size:
            cloud.volume.post(f"{path}/action", {"os-extend": {"new_size": self.size}}, microversion="3.42")
            record = _ready(cloud, observed.id)
        return self._observed(run, record)

    def take_over(self, run: CloudRun, observed: Observed) -> Observed:
        _tag(run, self._cloud(run), observed.id)
        return self._observed(run, _ready(self._cloud(run), observed.id))

    def delete(self, run: CloudRun, observed: Observed) -> None:
        cloud = self._cloud(run)
        if _wait(cloud, observed.id, (*BUSY, DELETING)):
            cloud.volume.delete(f"/volumes/{observed.id}")
        if left := _wait(cloud, observed.id, (DELETING,)):
            raise ResourceFailed(f"{self.key} {left.id} is {left.status}; see the log of cinder-volume")

    def _cloud(self, run: CloudRun) -> Cloud:
        return run.find_tenant(self.owner) or run.admin


def _tag(run: CloudRun, cloud: Cloud, volume_id: str) -> None:
    """Set the ownership tag; other metadata stays."""
    cloud.volume.post(f"/volumes/{volume_id}/metadata", {"metadata": {SPEC: run.ownership.spec, ID: volume_id}})


def _ready(cloud: Cloud, volume_id: str) -> VolumeRecord:
    """Return a volume when no operation is in progress any more; raises ResourceFailed if one has failed."""
    record = _wait(cloud, volume_id, BUSY)
    if record is None or record.status in FAILED:
        raise ResourceFailed(f"volume {volume_id} is {record.status if record else 'gone'}; see its messages in Cinder")
    return record


def _wait(cloud: Cloud, volume_id: str, states: Collection[str]) -> VolumeRecord | None:
    """Return a volume when it has left some states; None if it does not exist."""
    until = time.monotonic() + DEADLINE
    while True:
        try:
            record = VolumeRecord.read(cloud.volume.get(f"/volumes/{volume_id}")["volume"])
        except NotFound as error:
            if error.of_resource:
                return None
            raise
        if record.status not in states:
            return record
        if time.monotonic() > until:
            raise WaitTimeout(f"volume {volume_id} is still {record.status} after {DEADLINE:.0f} s")
        time.sleep(PAUSE)


def _users(run: CloudRun, record: VolumeRecord) -> dict[str, str]:
    """Return the ids of what uses a volume, by what it is."""
    listed = run.admin.volume.list("/snapshots", "snapshots", volume_id=record.id, all_tenants=True)
    return {f"server {user}": user for user in record.users} | {
        f"snapshot {each['name'] or ''} {each['id']}": each["id"] for each in listed
    }


@query
def volumes(run: CloudRun, project_id: str) -> list[VolumeRecord]:
    """Return the volumes of a project, with one request per run, without those that Cinder is about to delete."""
    of_another = project_id != run.admin.project_id
    which: dict[str, Any] = {"all_tenants": True, "project_id": project_id} if of_another else {}
    listed = map(VolumeRecord.read, run.admin.volume.list("/volumes/detail", "volumes", **which))
    return [record for record in listed if record.status != DELETING]
