"""Cinder's volumes and snapshots: one frozen record each, created where the API's answer arrives.

Source: Block Storage API v3, "List accessible volumes with details", "List snapshots and details".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw, record_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True, kw_only=True)
class VolumeRecord:
    id: str
    name: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    servers: tuple[str, ...] = ()
    """Ids of the servers that it is attached to."""

    @property
    def is_restored(self) -> bool:
        """Whether somebody restored it from a backup of another volume, whose name and metadata it then has.

        Source: cinder 29.0.0, backup/driver.py (BackupMetadataAPI.put), backup/manager.py (restore_backup).
        """
        return "src_backup_id" in self.metadata

    @classmethod
    def read(cls, raw: Raw) -> VolumeRecord:
        return record_of(
            cls, raw, servers=tuple(attachment["server_id"] for attachment in raw.get("attachments") or ())
        )


@dataclass(frozen=True, kw_only=True)
class SnapshotRecord:
    id: str
    name: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    volume_id: str
    """Id of the volume that it was created from."""

    @classmethod
    def read(cls, raw: Raw) -> SnapshotRecord:
        return record_of(cls, raw)


def list_volumes(cloud: Cloud) -> list[VolumeRecord]:
    """Return the volumes of the connection's project."""
    return [VolumeRecord.read(raw) for raw in cloud.volume.list("/volumes/detail", "volumes")]


def list_snapshots(cloud: Cloud) -> list[SnapshotRecord]:
    """Return the snapshots of the connection's project."""
    return [SnapshotRecord.read(raw) for raw in cloud.volume.list("/snapshots/detail", "snapshots")]
