"""Plans kept in a file, to be looked at and applied later; a stale one is refused.

A file holds no secret and no spec: it names the spec and its sum, and what was to be done.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from openstack_prep.errors import Mistake, PlanRefused, PrepError, SpecError
from openstack_prep.plan import Plan, differences
from openstack_prep.planner import to_consent
from openstack_prep.version import __version__

FORMAT = 1
AGAIN = "make it again with `openstack-prep plan -o`"


def save(path: Path, plan: Plan, spec: Path, cloud: str) -> None:
    """Write a plan, the cloud it is for, and the sum of the spec it was made from; raises PrepError."""
    content = {
        "format": FORMAT,
        "made_by": f"openstack-prep {__version__}",
        "spec": str(spec.resolve()),
        "sha256": _sum(spec),
        "cloud": cloud,
        "allow_replace": bool(to_consent(plan)) and not plan.refusals,
        "steps": plan.data(),
    }
    try:
        path.write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error}") from None


class SavedPlan:
    """A plan read back from its file; raises SpecError when it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            content = json.loads(path.read_text())
            if content["format"] != FORMAT:
                raise ValueError(content["format"])
            self.spec = Path(content["spec"])
            self.allow_replace = bool(content["allow_replace"])
            self._sum, self._cloud, self._steps = content["sha256"], content["cloud"], content["steps"]
            differences(self._steps, [])
        except OSError as error:
            raise SpecError([Mistake(str(path), f"cannot be read: {error}", AGAIN)]) from None
        except (ValueError, KeyError, TypeError):
            raise SpecError([Mistake(str(path), "is not a saved plan of this version", AGAIN)]) from None

    def check_spec(self) -> None:
        """Raise PlanRefused when the spec is not the one the plan was made from."""
        if not self.spec.is_file() or _sum(self.spec) != self._sum:
            raise PlanRefused([Mistake(str(self.path), f"{self.spec} has changed since", AGAIN)])

    def check(self, now: Plan, cloud: str) -> None:
        """Raise PlanRefused, naming what differs, when the cloud is another or would be changed otherwise today."""
        if cloud != self._cloud:
            what = f"was made for the cloud {self._cloud}, not for {cloud}"
            raise PlanRefused([Mistake(str(self.path), what, f"give --os-cloud {self._cloud}")])
        moved = differences(self._steps, now.data())
        if moved:
            raise PlanRefused([Mistake(f"{self.path}: {key}", "has changed since", AGAIN) for key in moved])


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
