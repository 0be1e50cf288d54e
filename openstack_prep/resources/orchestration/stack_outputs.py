"""The outputs of a stack, whoever made it, for those who build on what it made.

Source: Orchestration API v1, "Show stack details".
"""

from __future__ import annotations

from dataclasses import dataclass

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.heat.heat import HeatStack
from openstack_prep.resources.heat.heat_list import stack_of


@dataclass(frozen=True)
class Outputs:
    """What a stack tells: its outputs and the values of its parameters, hidden ones as stars.

    ``settled`` is whether Heat has done with it and well; until then outputs may be those of before.
    """

    stack: str
    settled: bool
    values: Raw
    parameters: Raw


def read(site: Site, project: Resource | None, name: str) -> Outputs | None:
    """Return the outputs of a stack, by name or id; None when there is no such stack yet.

    An administrator may mean one of any project.  Raises NotUnique, NotAllowed.
    """
    found = stack_of(site, project, name, elsewhere=True)
    if found is None:
        return None
    cloud, stack = found
    raw = _shown(site, cloud, stack["stack_name"], stack["id"])
    return Outputs(
        stack=name,
        settled=raw["stack_status"].endswith("_COMPLETE") and not raw["stack_status"].startswith("DELETE"),
        values={each["output_key"]: each.get("output_value") for each in raw.get("outputs") or ()},
        parameters=raw.get("parameters") or {},
    )


@query
def _shown(site: Site, cloud: Cloud, name: str, stack_id: str) -> Raw:
    """Return a stack with its outputs and parameters."""
    return HeatStack(cloud, name, stack_id).show()
