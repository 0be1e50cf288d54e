"""Plans kept in a file, to be looked at and applied later; a stale one is refused.

A file holds no secret and no spec: it names the spec and its sum, and what was to be done.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from openstack_prep.errors import Mistake, PlanRefused, SpecError
from openstack_prep.plan import Plan, differences
from openstack_prep.version import __version__

FORMAT = 1
AGAIN = "make it again with `openstack-prep plan -o`"


def save(path: Path, plan: Plan, spec: Path) -> None:
    """Write a plan and the sum of the spec it was made from."""
    content = {
        "format": FORMAT,
        "made_by": f"openstack-prep {__version__}",
        "spec": str(spec.resolve()),
        "sha256": _sum(spec),
        "allow_replace": any(step.action == "replace" for step in plan) and not plan.refusals,
        "steps": plan.data(),
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


class SavedPlan:
    """A plan read back from its file; raises SpecError when it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._content: dict[str, Any] = json.loads(path.read_text())
            known = self._content["format"] == FORMAT
        except OSError as error:
            raise SpecError([Mistake(str(path), f"cannot be read: {error}", AGAIN)]) from None
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise SpecError([Mistake(str(path), "is not a saved plan of this version", AGAIN)])
        self.spec = Path(self._content["spec"])
        self.allow_replace = bool(self._content["allow_replace"])

    def check_spec(self) -> None:
        """Raise PlanRefused when the spec is not the one the plan was made from."""
        if not self.spec.exists() or _sum(self.spec) != self._content["sha256"]:
            raise PlanRefused([Mistake(str(self.path), f"{self.spec} has changed since", AGAIN)])

    def check(self, now: Plan) -> None:
        """Raise PlanRefused, naming what differs, when the cloud would be changed otherwise today."""
        moved = differences(self._content["steps"], now.data())
        if moved:
            raise PlanRefused([Mistake(f"{self.path}: {key}", "has changed since", AGAIN) for key in moved])


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
