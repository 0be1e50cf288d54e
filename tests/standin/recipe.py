"""What a stand-in cluster is made from, and what things are called in each era."""

from __future__ import annotations

import ipaddress
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CAPI = 17
"""The first minor release that makes things by Cluster API; those before use Terraform."""
STAGES = 10
"""The first minor release with a Terraform state per stage."""
ERAS = {"capi": 18, "terraform": 11}
"""A release of each era."""
LONGEST_NAME = 21
LETTERS = string.ascii_lowercase + string.digits


def new_infra_id(cluster_name: str) -> str:
    return f"{cluster_name[:LONGEST_NAME]}-{''.join(secrets.choice(LETTERS) for _ in range(5))}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One cluster, in the words of Neutron, Nova and Glance."""

    infra_id: str
    release: int = ERAS["capi"]
    """Minor number: 18 for 4.18."""
    external_network: str | None = "external"
    external_dns: tuple[str, ...] = ()
    machine_network: str = "10.0.0.0/16"
    api_vip: str = ""
    ingress_vip: str = ""
    """Empty: fifth and seventh address of the machine network."""
    own_subnet: str = ""
    """Name or id of the user's own subnet; empty: a network of the cluster's own is made."""
    api_floating_ip: str | None = None
    ingress_floating_ip: str | None = None
    flavor: str = "m1.small"
    worker_flavor: str = ""
    """Empty: the same."""
    image: str | None = None
    """Name of an image in Glance; None: an empty disk is uploaded as <infraID>-rhcos."""
    masters: int = 3
    workers: int = 2
    schedulable: bool = False
    """Whether the masters do the workers' work, too: none are declared."""
    names: tuple[str, ...] = field(default=())
    """Random ends of the workers' names, when they shall be known beforehand."""

    @property
    def capi(self) -> bool:
        return self.release >= CAPI

    @property
    def tag(self) -> str:
        return f"openshiftClusterID={self.infra_id}"

    @property
    def vips(self) -> dict[str, str]:
        """Addresses by the end of their port's name; the DNS one, up to 4.5, has no port."""
        network = ipaddress.ip_network(self.machine_network)
        found = {
            "api-port": self.api_vip or str(network[5]),
            "ingress-port": self.ingress_vip or str(network[7]),
        }
        return found | ({"dns": str(network[6])} if self.release <= 5 else {})

    @property
    def attached(self) -> dict[str, str | None]:
        """Floating IPs by the end of their port's name, as far as the release attaches them itself."""
        return {
            "api-port": self.api_floating_ip,
            "ingress-port": self.ingress_floating_ip if self.release >= 6 else None,
        }

    @property
    def guests(self) -> str:
        return f"k8s-clusterapi-cluster-openshift-cluster-api-guests-{self.infra_id}"

    @property
    def network(self) -> str:
        return self.guests if self.capi else f"{self.infra_id}-openshift"

    @property
    def subnet(self) -> str:
        return self.guests if self.capi else f"{self.infra_id}-nodes"

    @property
    def router(self) -> str:
        return self.guests if self.capi else f"{self.infra_id}-external-router"

    @property
    def server_groups(self) -> list[str]:
        return [] if self.release <= 4 else ["master"] if self.release <= 9 else ["master", "worker"]

    @property
    def bootstrap_port(self) -> str:
        return f"{self.infra_id}-bootstrap-{'0' if self.capi else 'port'}"

    def master_port(self, number: int) -> str:
        if self.capi:
            return f"{self.infra_id}-master-{number}-0"
        return f"{self.infra_id}-master-{number}" if self.release >= 11 else f"{self.infra_id}-master-port-{number}"

    def worker(self, number: int) -> str:
        """Return the name that machine-api gives a machine."""
        end = self.names[number] if number < len(self.names) else "".join(secrets.choice(LETTERS) for _ in range(5))
        return f"{self.infra_id}-worker-0-{end}"

    def worker_port(self, machine: str) -> str:
        return f"{machine}-0" if self.capi else machine


def from_install_config(document: Mapping[str, Any], infra_id: str, release: int) -> Recipe:
    """Return what an install-config.yaml asks for, in the spellings of any release."""
    platform = document["platform"]["openstack"]
    networking = document.get("networking", {})
    machines = networking.get("machineNetwork") or [{"cidr": networking.get("machineCIDR", "10.0.0.0/16")}]
    common = platform.get("defaultMachinePlatform", {}).get("type") or platform.get("computeFlavor")
    control, (worker, *_) = document.get("controlPlane", {}), document.get("compute") or [{}]
    return Recipe(
        infra_id=infra_id,
        release=release,
        external_network=platform.get("externalNetwork"),
        external_dns=tuple(platform.get("externalDNS", ())),
        machine_network=machines[0]["cidr"],
        api_vip=_first(platform, "apiVIPs", "apiVIP"),
        ingress_vip=_first(platform, "ingressVIPs", "ingressVIP"),
        own_subnet=_own_subnet(platform),
        api_floating_ip=platform.get("apiFloatingIP") or platform.get("lbFloatingIP"),
        ingress_floating_ip=platform.get("ingressFloatingIP"),
        flavor=_flavor(control) or common,
        worker_flavor=_flavor(worker) or common,
        image=platform.get("clusterOSImage"),
        masters=control.get("replicas", 3),
        workers=worker.get("replicas", 3),
        schedulable=worker.get("replicas", 3) == 0,
    )


def _own_subnet(platform: Mapping[str, Any]) -> str:
    fixed = (platform.get("controlPlanePort") or {}).get("fixedIPs") or [{}]
    subnet = fixed[0].get("subnet") or {}
    return str(subnet.get("id") or subnet.get("name") or platform.get("machinesSubnet") or "")


def _flavor(pool: Mapping[str, Any]) -> str | None:
    return ((pool.get("platform") or {}).get("openstack") or {}).get("type")


def _first(platform: Mapping[str, Any], plural: str, singular: str) -> str:
    return str((platform.get(plural) or [platform.get(singular) or ""])[0])
