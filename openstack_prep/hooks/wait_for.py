"""Wait for a port that the installer will create."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from openstack_prep.cloud.connection import Cloud
from openstack_prep.clusters import installer_names as naming
from openstack_prep.openshift.cluster import Metadata, wait_for_port

Which = Literal["ingress-port", "api-port"]
NAMES = {"ingress-port": naming.ingress_port, "api-port": naming.api_port}


@dataclass(frozen=True, kw_only=True)
class ClusterPort:
    """A virtual port of a cluster."""

    id: str
    """Its id in Neutron."""
    name: str
    """Its name, such as ``dev-x7k2p-ingress-port``."""
    addresses: tuple[str, ...]
    """Its fixed addresses."""


def wait_for(cloud: Cloud, which: Which, metadata: Metadata, *, seconds: float) -> ClusterPort:
    """Return a virtual port of a cluster as soon as it exists: after at most ``seconds``.

    It is identified by its exact name, in the project of the connection ``cloud``: ``which`` is "ingress-port" or
    "api-port", ``metadata`` the cluster. Raises WaitTimeout that names the missing port, PlanRefused if it has another
    cluster's tag, NotUnique if two ports have the name, CloudError.
    """
    infra_id = metadata.infra_id
    port = wait_for_port(cloud, NAMES[which](infra_id), tag=naming.tag(infra_id), seconds=seconds)
    addresses = tuple(fixed.ip_address for fixed in port.fixed_ips)
    return ClusterPort(id=port.id, name=port.name, addresses=addresses)
