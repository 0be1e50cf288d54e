"""What is known of a stack that stands: Heat's own words, what is gone of it, and what an update would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from openstack_prep.resources.heat.heat import HeatResource, HeatStack
from openstack_prep.resources.heat.heat_groups import Foreseen


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    stack: HeatStack
    status: str
    """As Heat says it, such as CREATE_COMPLETE."""
    tags: frozenset[str] = frozenset()
    """All of them, those of others also."""
    missing: Mapping[str, HeatResource] = field(default_factory=dict)
    """By place: servers and ports that an update has to create again, those without a port included."""
    cut_off: frozenset[str] = frozenset()
    """Places of the servers that have lost their last port."""
    preview: tuple[Foreseen, ...] = ()
    """What an update would do; empty while Heat was not ``asked``, or has ``refused``."""
    asked: bool = False
    refused: str = ""
    """Why Heat refuses the update."""

    @property
    def in_progress(self) -> bool:
        return self.status.endswith("_IN_PROGRESS")

    @property
    def deleting(self) -> bool:
        return self.status.startswith("DELETE")
