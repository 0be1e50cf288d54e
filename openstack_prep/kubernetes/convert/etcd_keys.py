"""The keys below ``services.etcd``: snapshots, S3, an external etcd.

Sources: RKE 1.7 (services/etcd.go: intervals are hours, ``creation`` and ``retention`` are durations that only count
without backup_config; types/backup_types.go); RKE2 v1.35.7+rke2r1 (pkg/cli/cmds/server.go).
"""

from __future__ import annotations

import re
from typing import Any

from openstack_prep.base.fields import words
from openstack_prep.kubernetes.convert.model import FOLDER, Draft, Handler, lost
from openstack_prep.kubernetes.keys.schema import value_at

BACKUP = "services.etcd.backup_config"
CA_FILE = "etcd-s3-ca.pem"
OLD_ETCD = "the new cluster has an etcd of its own; two clusters must never share one"
OWNER = "RKE2 runs etcd as root, or as user etcd with profile: cis or etcd"


def _schedule(hours: int) -> tuple[str, str]:
    """Return the cron expression for an interval, and a remark when it differs from the interval."""
    if hours < 24:
        return f"0 */{hours} * * *" if hours > 1 else "0 * * * *", "" if 24 % hours == 0 else "and at midnight"
    days = min(hours // 24, 28)
    return f"0 0 */{days} * *" if days > 1 else "0 0 * * *", "" if hours == 24 * days else f"every {days} days"


def _interval(draft: Draft, key: str, value: Any) -> None:
    if isinstance(value, int) and value > 0:
        text, note = _schedule(value)
        draft.set(key, "etcd-snapshot-schedule-cron", text, note)
    else:
        draft.note(key, None, "the default, 12 hours, is also RKE2's")


def _kept(draft: Draft, key: str, value: Any) -> None:
    if value:
        draft.set(key, "etcd-snapshot-retention", value)
    else:
        draft.note(key, None, "RKE keeps 6 by default, RKE2 5")


def _enabled(draft: Draft, key: str, value: object) -> None:
    if value is False:
        draft.set(key, "etcd-disable-snapshots", True)
    else:
        draft.note(key, None, "RKE2 takes snapshots by default")


def _snapshot(draft: Draft, key: str, value: object) -> None:
    backup = value_at(draft.data, BACKUP)
    if value is False and not (isinstance(backup, dict) and backup.get("enabled", True)):
        draft.set(key, "etcd-disable-snapshots", True)
    else:
        draft.note(key, None, "RKE2 takes snapshots by default")


def _hours(text: object) -> float:
    """Return the hours of a Go duration such as 6h or 5m0s; 0 for other texts."""
    units = {"h": 1.0, "m": 1 / 60, "s": 1 / 3600}
    found = re.findall(r"(\d+(?:\.\d+)?)(h|m|s)", str(text))
    return sum(float(number) * units[unit] for number, unit in found)


def _creation(draft: Draft, key: str, value: object) -> None:
    if value_at(draft.data, BACKUP) or value_at(draft.data, "services.etcd.snapshot") is False:
        draft.note(key, None, "RKE ignores it with backup_config or without snapshots")
        return
    hours = _hours(value)
    if not hours:
        draft.note(key, None, "is not a duration")
        return
    text, note = _schedule(max(1, round(hours)))
    draft.set(key, "etcd-snapshot-schedule-cron", text, note or ("hourly at most" if hours < 1 else ""))


def _retention(draft: Draft, key: str, value: object) -> None:
    if value_at(draft.data, BACKUP) or value_at(draft.data, "services.etcd.snapshot") is False:
        draft.note(key, None, "RKE ignores it with backup_config or without snapshots")
        return
    hours, interval = _hours(value), max(1, round(_hours(value_at(draft.data, "services.etcd.creation")) or 12))
    if hours:
        note = f"as many as RKE keeps for {value}"
        draft.set(key, "etcd-snapshot-retention", max(1, round(hours / interval)), note)
    else:
        draft.note(key, None, "is not a duration")


def _s3(name: str, note: str = "") -> Handler:
    def convert(draft: Draft, key: str, value: object) -> None:
        draft.config["etcd-s3"] = True
        draft.set(key, name, value, note)

    return convert


def _ca(draft: Draft, key: str, given: str) -> None:
    value = str(words(given))  # RKE reads true and numbers as texts
    draft.file(key, CA_FILE, value if value.endswith("\n") else f"{value}\n")
    draft.set(key, "etcd-s3-endpoint-ca", f"{FOLDER}/{CA_FILE}")


NOT_SHARED = "use a folder of the new cluster's own, so that each cluster prunes only its own snapshots"
HANDLERS: dict[str, Handler] = {
    "services.etcd.external_urls": lost(OLD_ETCD),
    "services.etcd.ca_cert": lost(OLD_ETCD),
    "services.etcd.cert": lost(OLD_ETCD),
    "services.etcd.key": lost(OLD_ETCD),
    "services.etcd.path": lost(OLD_ETCD),
    "services.etcd.uid": lost(OWNER),
    "services.etcd.gid": lost(OWNER),
    "services.etcd.snapshot": _snapshot,
    "services.etcd.creation": _creation,
    "services.etcd.retention": _retention,
    f"{BACKUP}.enabled": _enabled,
    f"{BACKUP}.interval_hours": _interval,
    f"{BACKUP}.retention": _kept,
    f"{BACKUP}.timeout": lost("RKE2 has a timeout for S3 only: etcd-s3-timeout"),
    f"{BACKUP}.safe_timestamp": lost("RKE2 names its snapshots itself"),
    f"{BACKUP}.s3backupconfig.access_key": _s3("etcd-s3-access-key"),
    f"{BACKUP}.s3backupconfig.secret_key": _s3("etcd-s3-secret-key"),
    f"{BACKUP}.s3backupconfig.bucket_name": _s3("etcd-s3-bucket"),
    f"{BACKUP}.s3backupconfig.region": _s3("etcd-s3-region"),
    f"{BACKUP}.s3backupconfig.endpoint": _s3("etcd-s3-endpoint"),
    f"{BACKUP}.s3backupconfig.folder": _s3("etcd-s3-folder", NOT_SHARED),
    f"{BACKUP}.s3backupconfig.custom_ca": _ca,
}
