"""What a check found: what, why it matters, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that stands in the way of an installation.

    An ``error`` makes it fail; a ``warning`` may, or could not be looked at.
    """

    where: str
    """What it is about: a field of install-config.yaml such as platform.openstack.apiFloatingIP, or quota.cores."""
    what: str
    """What is wrong, with the value."""
    why: str
    """What will happen because of it."""
    remedy: str
    """What mends it: a command where there is one."""
    level: Level = "error"

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.what}\n  why: {self.why}\n  mend: {self.remedy}"


def by_weight(found: Iterable[Finding]) -> list[Finding]:
    """Return errors first, and of what was found twice one."""
    return sorted(dict.fromkeys(found), key=lambda each: each.level != "error")
