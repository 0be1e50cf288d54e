"""Records of steps that services have refused, in files: the next plan warns about them.

One private file per step, ``refused-DIGEST.json`` beside the log of requests (``reports/last_run.py``), written when
the step fails, so that a killed run leaves it as well, and deleted when a run has found the step done. The name is a
digest of the cloud, of who acts with which roles, and of the resource; of two runs at once the last one writes it.
The others stay until they are old: many targets of a fleet may be refused, and say nothing about other specs.

A record stands while the step would send the same again: while the spec declares the same fields of the resource and of
what it needs, and one of the fields that were sent is still to be sent. What each plan compares itself is not recorded:
quotas that it reads, and resources that were not found.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openstack_prep.base import state_folder
from openstack_prep.base.errors import (
    CloudError,
    LoginBlocked,
    NotFound,
    Overtaken,
    PrepError,
    QuotaExceeded,
    is_transient,
)
from openstack_prep.base.private_file import make_private_folder, write_private
from openstack_prep.base.secret import digest
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Action, Key, Resource, Result, Status, Step
from openstack_prep.core.resource import NeedsQuota, supports
from openstack_prep.core.text import plain
from openstack_prep.core.twin import Twin

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.core.plan import Plan

PATTERN = "refused-*.json"
MOST_AGE = timedelta(days=90)
"""Older records are deleted."""
_log = logging.getLogger(__name__)


class RefusedSteps:
    """The records of what a connection was refused; the folder is listed once."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = own = cloud.own
        self._names: set[str] = set()
        self._identity: list[object] = []
        if not isinstance(own, NoCloud):
            who = [own.user_id, own.project_id, own.application_credential_id, sorted(own.roles)]
            self._identity = [own.auth_url, own.region, *who]
            with contextlib.suppress(OSError, RuntimeError):  # nothing is kept where no folder can be
                self._names = {each.name for each in state_folder.folder().glob(PATTERN)}

    def standing(self, plan: Plan) -> Iterator[str]:
        """Yield what a plan would send again, unless it refuses the step itself."""
        refused = {key for refusal in plan.refusals for key in refusal.keys}
        steps = {each.key: each for each in plan} if self._names else {}
        for step in plan.pending if self._names else ():
            if step.key not in refused and _is_recorded(step) and (found := self._read(step.key)):
                same = found["declared"] == _declared(step, steps, bytes.fromhex(found["salt"]))
                if same and not set(found["fields"]).isdisjoint(_fields(step)):
                    yield _sentence(step.key, found, self._path(step.key))

    def note(self, result: Result, plan: Plan) -> None:
        """Record that a step was refused, or delete the record of one that is done."""
        step = result.step
        try:
            path = self._path(step.key)
            if result.status is Status.DONE and path.name in self._names:
                path.unlink(missing_ok=True)
            elif _is_refusal(result) and not state_folder.is_off():
                self._write(path, result, plan)
        except (OSError, RuntimeError, PrepError) as error:
            _log.warning("%s was refused, which could not be recorded for the next plan: %s", step, error)

    def _write(self, path: Path, result: Result, plan: Plan) -> None:
        error, step = result.error, result.step
        salt = secrets.token_bytes(16)
        data = {
            "refused": datetime.now(UTC).isoformat(timespec="seconds"),
            "spec": plan.spec,
            "resource": step.key.qualified,
            "cloud": self._cloud.auth_url,
            "user": self._cloud.user[0],
            "status": getattr(error, "status", None),
            "reason": str(error),
            "fields": sorted(_fields(step)),
            "salt": salt.hex(),
            "declared": _declared(step, {each.key: each for each in plan}, salt),
        }
        make_private_folder(path.parent)
        write_private(path, json.dumps(data, indent=1))
        for record in path.parent.glob(PATTERN):
            with contextlib.suppress(FileNotFoundError):  # a run beside this one deletes them, too
                if record.stat().st_mtime < time.time() - MOST_AGE.total_seconds():
                    record.unlink()

    def _path(self, key: Key) -> Path:
        digest = _digest([*self._identity, key.kind, key.name, *key.scope])
        return state_folder.folder() / PATTERN.replace("*", digest[:32])

    def _read(self, key: Key) -> Mapping[str, Any] | None:
        path = self._path(key)
        if path.name not in self._names:
            return None
        try:
            found = json.loads(path.read_text())
            datetime.fromisoformat(found["refused"])
            bytes.fromhex(found["salt"])
            return {name: found[name] for name in ("refused", "status", "reason", "fields", "salt", "declared")}
        except FileNotFoundError:  # a run beside this one has done the step
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            _log.warning("%s cannot be read: %r; delete it", path, error)
            return None


def _is_recorded(step: Step) -> bool:
    return step.action is not Action.DELETE and not isinstance(step.resource, Twin)


def _is_refusal(result: Result) -> bool:
    """Whether a service has refused what the spec declares, for a reason that no plan reads from the cloud.

    Transient answers say nothing about what was sent, except conflicts: those that no retry has ended mostly last.
    """
    error = result.error
    if not isinstance(error, CloudError) or error.status is None or not _is_recorded(result.step):
        return False
    if isinstance(error, LoginBlocked | Overtaken) or (isinstance(error, NotFound) and error.of_resource):
        return False
    if isinstance(error, QuotaExceeded) and supports(result.step.resource, NeedsQuota):
        return False
    if error.status == HTTPStatus.UNAUTHORIZED or (is_transient(error) and error.status != HTTPStatus.CONFLICT):
        return False
    return error.status in range(400, 500)


def _fields(step: Step) -> frozenset[str]:
    """Return the fields that a step sends."""
    if step.action in (Action.CREATE, Action.REPLACE):
        return frozenset(("", *step.resource.desired()))  # "" for a resource without fields
    return frozenset(change.field for change in step.changes)


def _declared(step: Step, steps: Mapping[Key, Step], salt: bytes) -> str:
    """Return a digest of what the spec declares of a resource and of what it needs, without secrets.

    It is expensive to guess: logins in URLs count as well.
    """
    needed = [steps[key].resource for key in sorted(step.needs) if key in steps]
    declared = [[str(resource.key), plain(_values(resource), shown=str)] for resource in (step.resource, *needed)]
    return digest(json.dumps(declared, sort_keys=True, default=str).encode(), salt)


def _values(resource: Resource) -> Mapping[str, object]:
    return {} if isinstance(resource, Twin) else resource.desired()


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _sentence(key: Key, found: Mapping[str, Any], path: Path) -> str:
    when = datetime.fromisoformat(found["refused"]).astimezone()
    reason = found["reason"] + ("; the conflict may have ended since" if found["status"] == HTTPStatus.CONFLICT else "")
    return f"{key}: was refused on {when:%Y-%m-%d %H:%M}: {reason}; apply sends it again (recorded in {path})"
