"""The requests of the last runs, each run in a private file of its own, for a support bundle.

The files are bounded in number and size. A log that cannot be written never stops a run.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openstack_prep.base.given_file import MIB, read_text
from openstack_prep.base.private_file import make_private_folder
from openstack_prep.base.state_folder import SWITCH, folder, is_off
from openstack_prep.cloud.request_log import NAME
from openstack_prep.version import __version__

KEPT = 10
"""Runs."""
MOST = 20_000
"""Requests per run."""
PATTERN = "requests-*.jsonl"
EXAMINING = ("plan", "audit", "check", "verify", "exposures show", "rke mesh")
"""Commands whose exit code says what they have found."""
RUNNING, KILLED = "without an end: it runs still, or was killed", "without an end: it was killed"
_ERROR = "error"
CodeOf = Callable[[Exception | KeyboardInterrupt], int]

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def recorded(command: str, code_of: CodeOf) -> Iterator[Callable[[int], None]]:
    """Keep the requests of the block, which is a run of a command.

    Call what this yields with the exit code; ``code_of`` returns that of an exception.
    """
    if is_off():
        yield lambda code: None
        return
    logger, file = logging.getLogger(NAME), _File(command)
    level = logger.level
    logger.addHandler(file)
    logger.setLevel(logging.INFO)
    try:
        yield file.exits
    except (Exception, KeyboardInterrupt) as error:
        file.exits(code_of(error), type(error).__name__)
        raise
    finally:
        logger.removeHandler(file)  # before the end: its number may be that of another file afterwards
        logger.setLevel(level)
        file.end()


class _File(logging.Handler):
    """One line of JSON per request; the file is created for the first one."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command, self._number = command, 0
        self._began = datetime.now(UTC)
        self._descriptor: int | None = None
        self._failed = self._ended = False
        self._exit: dict[str, Any] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a request; the caller holds the lock of the handler."""
        self._number += 1
        if self._number > MOST:
            return
        asked = vars(record.asked)  # type: ignore[attr-defined]
        started = _text(datetime.fromtimestamp(asked["started"], UTC))
        self._write(asked | {"started": started, "seconds": round(asked["seconds"], 3)})

    def exits(self, code: int, error: str | None = None) -> None:
        self._exit = {"exit_code": code, "error": error}

    def end(self) -> None:
        """Write the last line; a request that is still under way in a thread is not kept."""
        with self._locked():
            if self._descriptor is not None:
                self._write({"ended": _text(datetime.now(UTC)), **self._exit, "requests": self._number})
                os.close(self._descriptor)
            self._descriptor, self._ended = None, True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def _write(self, data: dict[str, Any]) -> None:
        if self._failed or self._ended:
            return
        try:
            if self._descriptor is None:
                self._descriptor = _create()
                head = {"command": self._command, "version": __version__, "process": os.getpid()}
                self._put({"began": _text(self._began), **head})
            self._put(data)
        except (OSError, RuntimeError) as error:
            self._failed = True
            fix = f"set {SWITCH}=off to keep none"
            _log.warning("the requests of this run are not kept for a support bundle: %s; %s", error, fix)

    def _put(self, data: dict[str, Any]) -> None:
        assert self._descriptor is not None
        os.write(self._descriptor, json.dumps(data).encode() + b"\n")


def _create() -> int:
    """Return the descriptor of a new file; delete the files of all but the last runs."""
    place = folder()
    make_private_folder(place)
    path = place / PATTERN.replace("*", f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    for old in sorted(place.glob(PATTERN))[:-KEPT]:
        with contextlib.suppress(FileNotFoundError):  # a run beside this one deletes them, too
            if not _is_at_work(old):
                old.unlink()
    return descriptor


def _is_at_work(path: Path) -> bool:
    """Whether a run may still write to its file: the file has no end, and the process of its name exists."""
    try:
        os.kill(int(path.stem.rpartition("-")[2]), 0)
    except PermissionError:
        pass  # it exists, and belongs to another user
    except (OSError, OverflowError, ValueError):
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1000))
        return b'\n{"ended":' not in file.read()


def _text(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read() -> dict[str, Any]:
    """Return the last run: how it began and ended, and its requests; a run that was killed has no end."""
    try:
        return next(_runs(), {"unknown": f"there is no log of a run in {folder()}"})
    except (OSError, RuntimeError) as error:
        return {"unknown": f"the log cannot be read: {error}"}


def read_failed() -> dict[str, Any] | None:
    """Return the last run that failed; None if it is the last of all, or there is none.

    A periodic ``plan`` would hide the ``apply`` that failed before it.
    """
    with contextlib.suppress(OSError, RuntimeError):  # ``read`` says it
        for number, run in enumerate(_runs()):
            if _has_failed(run):
                return run if number else None
    return None


def _has_failed(run: dict[str, Any]) -> bool:
    return run.get("ended") == KILLED or "error" in run or ("exit_code" in run and run.get("command") not in EXAMINING)


def _runs() -> Iterator[dict[str, Any]]:
    """Yield the runs, the last one first."""
    for path in sorted(folder().glob(PATTERN), reverse=True):
        with contextlib.suppress(FileNotFoundError):  # deleted by a run that began just now
            yield _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = [each for each in map(_parsed, read_text(path, 16 * MIB).splitlines()) if each]
    except UnicodeDecodeError as error:
        return {"unknown": f"{path} cannot be read: {error}"}
    began, ended = (next((each for each in found if name in each), {}) for name in ("began", "ended"))
    how = {name: ended[name] for name in ("exit_code", "error") if ended.get(name)}
    end = {"ended": ended.get("ended") or (RUNNING if _is_at_work(path) else KILLED)}
    return {**began, **end, **how, "requests": [_line(each) for each in found if "method" in each]}


def _line(asked: dict[str, Any]) -> str:
    """Return a request as a person reads it."""
    try:
        result = f"{asked['status'] or 'no answer'}{f' {asked[_ERROR]}' if asked[_ERROR] else ''}"
        where = f"{asked['started']} {asked['method']} {asked['service']}{asked['path']}"
        return f"{where}: {result}, {asked['seconds']} s, {asked['request_id'] or 'no request id'}"
    except KeyError as error:
        return f"a request without {error}"


def _parsed(line: str) -> dict[str, Any] | None:
    """Return a line; None for one that a killed run has not completed."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
