"""What is known about an existing stack: Heat's status, its missing resources, and the effect of an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from openstack_prep.resources.heat.heat import HeatResource, HeatStack
from openstack_prep.resources.heat.heat_groups import Effect


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    stack: HeatStack
    status: str
    """Heat's status, such as CREATE_COMPLETE."""
    tags: frozenset[str] = frozenset()
    """All tags of the stack, including those of others."""
    missing: Mapping[str, HeatResource] = field(default_factory=dict)
    """By place: servers and ports that an update has to create again, including servers without a port."""
    cut_off: frozenset[str] = frozenset()
    """Places of the servers that have lost their last port."""
    outdated: Mapping[str, HeatResource] = field(default_factory=dict)
    """By place: volumes that an update has to create again, because the secrets on them have changed."""
    preview: tuple[Effect, ...] = ()
    """What an update would do; empty if Heat was not ``asked``, or has ``refused``."""
    asked: bool = False
    refused: str = ""
    """Why Heat refuses the update."""

    @property
    def in_progress(self) -> bool:
        return self.status.endswith("_IN_PROGRESS")

    @property
    def deleting(self) -> bool:
        return self.status.startswith("DELETE")
