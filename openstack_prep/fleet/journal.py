"""What a run of a fleet has done so far: one line per target that ended, so that the next run goes on with the rest.

The file is private, beside the log of requests (``reports/last_run.py``), and can be deleted at any time. While a run
is at work it holds flock(2) on it, which the kernel releases with the process: a second run is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from openstack_prep.base.errors import LeaseHeld
from openstack_prep.base.given_file import MIB, read_text
from openstack_prep.base.private_file import make_private_folder
from openstack_prep.base.state_folder import folder
from openstack_prep.cloud import lease
from openstack_prep.fleet.file.fields import Fleet
from openstack_prep.fleet.order import Order, TargetOutcome, TargetStatus

FORMAT = 1
LATEST = timedelta(days=1)
"""An interrupted run is continued for so long; afterwards too much may have changed in the cloud."""
ENDED_WELL = (TargetStatus.DONE, TargetStatus.UNCHANGED)

_log = logging.getLogger(__name__)


@dataclass
class Journal:
    """The journal of a run; ``done`` are targets that an interrupted run has done, with when it began."""

    path: Path | None = None
    done: frozenset[str] = frozenset()
    began: str = ""
    _descriptor: int | None = None
    _keys: Mapping[str, str] = field(default_factory=dict)

    def note(self, outcome: TargetOutcome) -> None:
        """Write that a target has ended."""
        if outcome.status is not TargetStatus.NOT_BEGUN:
            key = self._keys.get(outcome.target)
            self._write({"target": outcome.target, "key": key, "status": outcome.status.value})

    def complete(self) -> None:
        """Write that each target was begun, so that the next run begins with all of them."""
        self._write({"complete": _now()})

    def _write(self, data: Mapping[str, object]) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, json.dumps(data).encode() + b"\n")
        except OSError as error:
            _log.warning("the journal %s cannot be written: %s", self.path, error.strerror)
            self._descriptor = None


def path_of(fleet: Fleet) -> Path:
    """Return the file of a fleet's journal; raises RuntimeError if there is no home."""
    return folder() / f"fleet-{hashlib.sha256(os.path.realpath(fleet.path).encode()).hexdigest()[:16]}.jsonl"


@contextlib.contextmanager
def opened(
    fleet: Fleet, verb: str, orders: Mapping[str, Order], files: Mapping[str, Sequence[str]], *, restart: bool
) -> Iterator[Journal]:
    """Yield the journal for a run of these orders, by target; raises LeaseHeld if another run is at work.

    ``files`` are those of the spec of each. ``restart``: a run that was interrupted is not continued.
    """
    try:
        path = path_of(fleet)
        make_private_folder(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except (OSError, RuntimeError) as error:
        _log.warning("there is no journal, so that an interrupted run cannot be continued: %s", error)
        yield Journal()
        return
    try:
        _lock(descriptor, path, fleet)
        keys = {name: _key(each, files[name]) for name, each in orders.items()}
        began, done = ("", frozenset[str]()) if restart else _left_by_last(path, verb, keys)
        os.ftruncate(descriptor, 0)  # it may end with half a line
        journal = Journal(path, done, began, descriptor, keys)
        journal._write({"format": FORMAT, "fleet": fleet.name, "verb": verb, "began": began or _now(), **_whose()})
        for name in sorted(done):
            journal.note(TargetOutcome(target=name, status=TargetStatus.DONE))
        yield journal
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, fleet: Fleet) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = next((each for each in _lines(path) if "began" in each), {})
        holder = f"{who.get('who', 'another run')} (process {who.get('process', 'unknown')})"
        since = f"{who.get('verb', 'run')} since {who.get('since', 'just now')}"
        what = f"{holder} is at work on the fleet {fleet.name}: {since}"
        raise LeaseHeld(f"{what}; wait until it ends, or end that process") from None
    except OSError as error:
        _log.warning("two runs of the fleet at once are not prevented: %s cannot be locked: %s", path, error.strerror)


def _left_by_last(path: Path, verb: str, keys: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Return when an interrupted run of the same verb began, and which targets it has done as they are now."""
    lines = _lines(path)
    heads = [each for each in lines if "began" in each]
    if not heads or any("complete" in each for each in lines):
        return "", frozenset()
    head = heads[0]
    try:
        is_late = datetime.now(UTC) - datetime.fromisoformat(head["began"]) > LATEST
    except (TypeError, ValueError):
        return "", frozenset()
    if head.get("format") != FORMAT or head.get("verb") != verb or is_late:
        return "", frozenset()
    ended = {each["target"]: each for each in lines if isinstance(each.get("target"), str)}
    good = [each.value for each in ENDED_WELL]
    done = {name for name, each in ended.items() if each.get("status") in good and each.get("key") == keys.get(name)}
    return head["began"], frozenset(done)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal; one that a killed run has not completed is left out."""
    found = []
    try:
        text = read_text(path, 64 * MIB)
    except (OSError, UnicodeDecodeError):
        return []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            parsed = json.loads(line)
            found += [parsed] if isinstance(parsed, dict) else []
    return found


def _key(order: Order, files: Sequence[str]) -> str:
    """Return a digest of what a target is made from: files by size and time, since they may have secrets.

    Secrets from other sources than files do not count.
    """
    options = order.options
    data = {
        "files": [_state(each) for each in (*files, *order.vars_files)],
        "variables": {name: order.variables[name] for name in sorted(order.variables)},
        "environment": order.environment,
        "cloud": [order.cloud, order.labels, order.address],
        "options": [options.allow_replace, options.adopt, options.prune],
        "saved": (order.saved or {}).get("digest"),
    }
    return hashlib.sha256(json.dumps(data, default=str).encode()).hexdigest()[:24]


def _state(path: str) -> list[object]:
    try:
        found = os.stat(path)
        return [path, found.st_size, found.st_mtime_ns]
    except (OSError, ValueError):  # a path with a null character
        return [path]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _whose() -> dict[str, object]:
    return {"since": _now(), "process": os.getpid(), "who": lease.owner()}
