"""The outputs of a stack, whoever created it, for kinds that depend on them.

Source: Orchestration API v1, "Show stack details".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.heat.heat import HeatStack
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
