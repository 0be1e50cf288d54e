"""Ports of clusters as the OpenShift installer leaves them: made by this test, not by the installer.

Names, tags, descriptions and pairs are those of a real run of 4.21; workers' as machine-api makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from openstack.connection import Connection

VIPS = ("10.0.0.5", "10.0.0.7")


@dataclass(frozen=True)
class Cluster:
    """The network things of one infraID, in the project that the connection is scoped to."""

    neutron: Any
    infra_id: str
    network: Any

    @property
    def tag(self) -> str:
        return f"openshiftClusterID={self.infra_id}"

    def port(self, name: str, *, address: str | None = None, pairs: Sequence[str] = (), tagged: bool = True) -> Any:
        """Make a port; its tag comes by a second request, as the installer's does."""
        fixed = {"fixed_ips": [{"ip_address": address}]} if address else {}
        made = self.neutron.create_port(
            name=f"{self.infra_id}-{name}",
            network_id=self.network.id,
            description="Created By OpenShift Installer",
            allowed_address_pairs=[{"ip_address": each} for each in pairs],
            **fixed,
        )
        if tagged:
            self.neutron.set_tags(made, [self.tag])
        return made

    def pairs(self, name: str) -> set[str]:
        port = self.neutron.find_port(f"{self.infra_id}-{name}", ignore_missing=False)
        return {each["ip_address"] for each in port.allowed_address_pairs}


def make_cluster(connection: Connection, infra_id: str, *, ports: Sequence[str]) -> Cluster:
    """Make network, subnet, router and ports."""
    neutron: Any = connection.network
    guests = f"k8s-clusterapi-cluster-openshift-cluster-api-guests-{infra_id}"
    network = neutron.create_network(name=guests)
    subnet = neutron.create_subnet(name=guests, network_id=network.id, cidr="10.0.0.0/16", ip_version=4)
    external = neutron.find_network("external", ignore_missing=False)
    router = neutron.create_router(name=guests, external_gateway_info={"network_id": external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    cluster = Cluster(neutron, infra_id, network)
    addresses = dict(zip(("api-port", "ingress-port"), VIPS, strict=True))
    for name in ports:
        cluster.port(name, address=addresses.get(name), pairs=VIPS if "-master-" in f"-{name}" else ())
    return cluster
