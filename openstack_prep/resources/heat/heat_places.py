"""The places of events in the tree of stacks, such as nodes.0.server; pure functions.

Source: Orchestration API v1, "Events" (nested_depth since Newton).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw
from openstack_prep.resources.heat.heat_list import DEPTH

if TYPE_CHECKING:
    from openstack_prep.cloud.service import Service

ResourceName = tuple[str, str]
"""Path of the stack, and name of the resource in it."""


def stack_path(record: Raw) -> str:
    """Return name and id of the stack of a resource or an event, as in a URL."""
    return next(str(link["href"]) for link in record["links"] if link["rel"] == "stack").partition("/stacks/")[2]


def resource_name(record: Raw) -> ResourceName:
    """Return what identifies the resource of a record of it, or of an event."""
    return stack_path(record), str(record["resource_name"])


def stack_words(event: Raw) -> tuple[str, str]:
    """Return id and name of the event's stack; a resource that is a stack has either of them as its id."""
    href = next(str(link["href"]) for link in event["links"] if link["rel"] == "stack")
    return href.rpartition("/")[2], href.rpartition("/")[0].rpartition("/")[2]


def is_of_a_stack(event: Raw) -> bool:
    """Whether the event describes a stack as a whole instead of a resource in it."""
    return str(event["physical_resource_id"]) == stack_words(event)[0]


def containers(events: Sequence[Raw]) -> Mapping[str, Raw]:
    """Return the events of resources, by what they have created."""
    return {each["physical_resource_id"]: each for each in events if not is_of_a_stack(each)}


def place(event: Raw, above: Mapping[str, Raw]) -> str:
    """Return the place of the event in the tree; ``above`` has its containers."""
    parent = next((above[word] for word in stack_words(event) if word in above), None)
    prefix = f"{place(parent, above)}." if parent is not None else ""
    return prefix + str(event["resource_name"])


# --- The types of a stack's resources, which events do not name ------------------------------------------
# Source: Orchestration API v1, "List resources" (nested_depth).


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
        answer = self.heat.ask("GET", f"{self.path}/resources", params={"nested_depth": DEPTH})
        listed = answer["resources"]
        self._types = {resource_name(each): str(each["resource_type"]) for each in listed}
        self._stacks = frozenset(map(stack_path, events))

    def of(self, types: Collection[str]) -> list[ResourceName]:
        """Return the resources of some types, sorted."""
        return sorted(name for name, kind in self._types.items() if kind in types)
