"""Wait for a port that the installer will create."""

from __future__ import annotations

from typing import Literal

from openstack_prep.base.raw import Raw
from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.cluster import Metadata
from openstack_prep.resources.lists import installer_names as naming
from openstack_prep.resources.network.port import wait_for_port

Which = Literal["ingress-port", "api-port"]
NAMES = {"ingress-port": naming.ingress_port, "api-port": naming.api_port}


def wait_for(cloud: Cloud, which: Which, metadata: Metadata, *, seconds: float) -> Raw:
    """Return a virtual port of a cluster, as Neutron returns it, as soon as it exists: after at most ``seconds``.

    It is identified by its exact name, in the connection's own project. Raises WaitTimeout that names the missing port,
    PlanRefused if it has another cluster's tag, NotUnique if two ports have the name.
    """
    infra_id = metadata.infra_id
    return wait_for_port(cloud, NAMES[which](infra_id), tag=naming.tag(infra_id), seconds=seconds)
