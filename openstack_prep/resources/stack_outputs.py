"""The outputs of a stack, whoever made it, for those who build on what it made.

Source: Orchestration API v1, "Show stack details".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from openstack_prep.cloud import Cloud
from openstack_prep.model import Resource
from openstack_prep.resources.heat import HeatStack
from openstack_prep.site import Site, only_one


@dataclass(frozen=True)
class Outputs:
    """What a stack tells: its outputs and the values of its parameters, hidden ones as stars.

    ``settled`` is whether Heat has done with it and well; until then outputs may be those of before.
    """

    stack: str
    settled: bool
    values: Mapping[str, Any]
    parameters: Mapping[str, Any]


def find(site: Site, project: Resource | None, name: str) -> tuple[Cloud, Mapping[str, Any]] | None:
    """Return a stack of a project, by name or id, and who may see it; None when there is no such stack yet.

    An administrator is shown those of all projects: one of another's is taken when there is none nearer.
    Raises NotUnique, and NotAllowed when nobody may look: what we cannot see, we must not take for absent.
    """
    cloud = site.find_tenant(project)
    if cloud is None:
        if site.acting_user(project) is not None or site.find_project_id(project) is None:
            return None  # who would have made it is not there yet
        cloud = site.tenant(project)
    listed = site.once(("stacks", project), partial(cloud.orchestration.list, "/stacks", "stacks"))
    named = [each for each in listed if name in (each["stack_name"], each["id"])]
    found = only_one([each for each in named if each.get("project") == cloud.project_id] or named, f"stack/{name}")
    return (cloud, found) if found else None


def read(site: Site, project: Resource | None, name: str) -> Outputs | None:
    """Return the outputs of a stack, by name or id; None when there is no such stack yet.  Raises as ``find``."""
    found = find(site, project, name)
    if found is None:
        return None
    cloud, stack = found
    raw = site.once(("outputs", stack["id"]), HeatStack(cloud, stack["stack_name"], stack["id"]).show)
    return Outputs(
        stack=name,
        settled=raw["stack_status"].endswith("_COMPLETE") and not raw["stack_status"].startswith("DELETE"),
        values={each["output_key"]: each.get("output_value") for each in raw.get("outputs") or ()},
        parameters=raw.get("parameters") or {},
    )
