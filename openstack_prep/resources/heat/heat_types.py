"""The types of a stack's resources, which events do not name.

Source: Orchestration API v1, "List resources" (nested_depth).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.service import Service
from openstack_prep.resources.heat.heat_list import DEPTH
from openstack_prep.resources.heat.heat_places import ResourceName, resource_name, stack_path


class ResourceTypes:
    """The types of a stack's resources, those of nested stacks included; each reading sends one request."""

    def __init__(self, heat: Service, path: str) -> None:
        self.heat, self.path = heat, path
        self._stacks: frozenset[str] = frozenset()
        self._types: dict[ResourceName, str] = {}

    def cover(self, events: Sequence[Raw]) -> bool:
        """Whether the types of all stacks of these events were read; Heat creates nested stacks as it works."""
        return self._stacks.issuperset(map(stack_path, events))

    def read(self, events: Sequence[Raw]) -> None:
        """Read the types again; ``events`` are those known before."""
        answer = self.heat.ask("GET", f"{self.path}/resources", params={"nested_depth": DEPTH}, log=False)
        listed = answer["resources"]
        self._types = {resource_name(each): str(each["resource_type"]) for each in listed}
        self._stacks = frozenset(map(stack_path, events))

    def of(self, types: Collection[str]) -> list[ResourceName]:
        """Return the resources of some types, sorted."""
        return sorted(name for name, kind in self._types.items() if kind in types)
