"""Waiting for a port of a cluster that the installer is to make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from openstack_prep import openshift_names
from openstack_prep.cloud import Cloud
from openstack_prep.openshift import Metadata
from openstack_prep.resources.port import wait_for_port

Which = Literal["ingress-port", "api-port"]
NAMES = {"ingress-port": openshift_names.ingress_port, "api-port": openshift_names.api_port}


def wait_for(cloud: Cloud, which: Which, metadata: Metadata, *, seconds: float) -> Mapping[str, Any]:
    """Return a virtual port of a cluster, as Neutron shows it, as soon as it is there: at most after ``seconds``.

    It is known by its exact name, in the connection's own project.  Raises WaitTimeout that says what is
    missing, PlanRefused when it carries another cluster's tag, NotUnique when two have the name.
    """
    infra_id = metadata.infra_id
    return wait_for_port(cloud, NAMES[which](infra_id), tag=openshift_names.tag(infra_id), seconds=seconds)
