"""A stack, whoever created it, as kinds that depend on it see it: its outputs, servers and ports.

Source: Orchestration API v1, "Show stack details".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.heat.heat import PORT, SERVER, HeatResource, HeatStack
from openstack_prep.resources.heat.heat_list import stack_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


@dataclass(frozen=True)
class Outputs:
    """The outputs of a stack and the values of its parameters, with hidden ones as stars.

    ``settled``: no operation is in progress and the last one succeeded; otherwise outputs may be outdated.
    """

    stack: str
    settled: bool
    values: Raw
    parameters: Raw


def read(run: CloudRun, project: Resource | None, name: str) -> Outputs | None:
    """Return the outputs of a stack, by name or id; None if the stack does not exist yet.

    An administrator may refer to a stack of any project. Raises NotUnique, NotAllowed.
    """
    found = stack_of(run, project, name, elsewhere=True)
    if found is None:
        return None
    cloud, stack = found
    raw = _shown(run, cloud, stack["stack_name"], stack["id"])
    return Outputs(
        stack=name,
        settled=raw["stack_status"].endswith("_COMPLETE") and not raw["stack_status"].startswith("DELETE"),
        values={each["output_key"]: each.get("output_value") for each in raw.get("outputs") or ()},
        parameters=raw.get("parameters") or {},
    )


@query
def _shown(run: CloudRun, cloud: Cloud, name: str, stack_id: str) -> Raw:
    """Return a stack with its outputs and parameters."""
    return HeatStack(cloud, name, stack_id).show()


# --- the servers and ports of a stack, including those of nested stacks ---
#
# Source: Orchestration API v1, "List resources" (nested_depth).


def servers_of(run: CloudRun, project: Resource | None, stack: str) -> frozenset[str] | None:
    """Return the ids of the servers of a project's stack; None if the stack does not exist yet.

    Raises NotAllowed if no connection may read it: a stack that is not visible must not be treated as missing.
    """
    return _ids_of(run, project, stack, SERVER)


def ports_in(run: CloudRun, project: Resource | None, stack: str) -> frozenset[str]:
    """Return the ids of the ports that are resources of a project's stack, whichever server has them."""
    return _ids_of(run, project, stack, PORT) or frozenset()


def _ids_of(run: CloudRun, project: Resource | None, stack: str, kind: str) -> frozenset[str] | None:
    seen = stack_of(run, project, stack)
    if seen is None:
        return None
    cloud, found = seen
    resources = _resources(run, cloud, found["stack_name"], found["id"])
    return frozenset(each.id for each in resources if each.type == kind and each.id)


@query
def _resources(run: CloudRun, cloud: Cloud, name: str, stack_id: str) -> Sequence[HeatResource]:
    """Return a stack's resources, including those of nested stacks."""
    return HeatStack(cloud, name, stack_id).resources
