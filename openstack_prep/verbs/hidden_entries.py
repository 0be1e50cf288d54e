"""Files of a plan that would hide the clouds.yaml in use from the next command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.cloud.connection import Cloud, hidden_by
from openstack_prep.core.plan import Plan
from openstack_prep.resources.files.clouds_entry import InCloudsYaml
from openstack_prep.spec import Spec


def list_warnings(cloud: Cloud, plan: Plan, spec: Spec) -> Iterator[str]:
    """Yield each file that apply would create where clients look before they find the entry in use."""
    for resource in (step.resource for step in plan.pending):
        if not isinstance(resource, InCloudsYaml) or not (hidden := hidden_by(resource.file, cloud.name)):
            continue
        place = f"{spec.places[resource.key]}: " if resource.key in spec.places else ""
        path = resource.file
        better = os.path.relpath(path.parent / spec.name / path.name, spec.folder or Path())
        yield (
            f"{place}{resource.key}: apply creates {path}, which hides {hidden}: openstack-prep, openstack and other "
            f"clients in {path.parent} then find no entry {cloud.name}; write {resource.file_field}: {better}, "
            f"or export OS_CLIENT_CONFIG_FILE={shlex.quote(hidden)}"
        )
