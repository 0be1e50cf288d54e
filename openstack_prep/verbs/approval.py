"""A person's approval of a saved plan: a private file that ``approve`` writes at a terminal, and one apply uses up.

It keeps apart who proposes a plan, such as an AI assistant or a pipeline, and who allows it. It is no protection from
programs that can write any file of the same user: docs/security.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from openstack_prep.base import shell, state_folder
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, Mistake, PlanRefused
from openstack_prep.base.private_file import make_private_folder, write_private_here
from openstack_prep.verbs.plan_file import SavedPlan

VALID = timedelta(hours=1)
"""How long an approval counts."""
MOST_BYTES = 4096


def folder() -> Path:
    """Return the folder of the approvals of this user; raises ConfigError if there is no home."""
    try:
        return state_folder.folder() / "approvals"
    except RuntimeError:
        raise ConfigError("approvals: this user has no home; set XDG_STATE_HOME to a folder") from None


def grant(saved: SavedPlan) -> datetime:
    """Approve a plan for one apply by this user, and return when the approval expires; raises PrepError."""
    expires = datetime.now(UTC) + VALID
    path = _path(saved)
    make_private_folder(path.parent)
    _remove_expired(path.parent)
    content = {"plan": saved.digest, "uid": os.geteuid(), "expires": expires.isoformat()}
    write_private_here(path, json.dumps(content) + "\n")
    return expires


def take(saved: SavedPlan) -> None:
    """Use up the approval of a plan; raises PlanRefused if there is none for this user and this content."""
    path = _path(saved)
    reason = _find_fault(path, saved)
    if not reason:
        try:
            os.unlink(path)  # of several runs only one succeeds
            return
        except FileNotFoundError:
            reason = "was used by another run"
    fix = f"have a person run {shell.join(['openstack-prep', 'approve', str(saved.path)])} at a terminal"
    what = f"the approval of plan {saved.id} {reason}"
    raise PlanRefused([Mistake(str(saved.path), what, fix, code=Code.PLAN_UNAPPROVED)])


def _path(saved: SavedPlan) -> Path:
    return folder() / f"{saved.digest}.json"


def _find_fault(path: Path, saved: SavedPlan) -> str:
    """Return why a file is no approval of a plan that counts now; empty if it is one."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                return "is not a private file of this user"
            content = json.loads(file.read(MOST_BYTES))
            subject = (content["plan"], content["uid"])
            left = datetime.fromisoformat(content["expires"]) - datetime.now(UTC)
    except FileNotFoundError:
        return "does not exist, or was used"
    except (OSError, ValueError, KeyError, TypeError):
        return "cannot be read"
    if subject != (saved.digest, os.geteuid()):
        return "is for another plan or user"
    return "" if timedelta(0) < left <= VALID else "has expired"


def _remove_expired(folder: Path) -> None:
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another run has removed it
            if datetime.now(UTC) - datetime.fromtimestamp(path.stat().st_mtime, UTC) > VALID:
                path.unlink()
