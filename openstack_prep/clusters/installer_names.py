"""The names that the OpenShift installer gives to the resources of a cluster, in every release; pure functions.

Source: OpenShift installer docs/source, "What gets created, names and tags".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from openstack_prep.resources.lists.cluster_naming import ClusterNaming
from openstack_prep.resources.lists.neutron_records import PortRecord

Role = Literal["master", "worker", "bootstrap"]

TAG = "openshiftClusterID"
LONGEST_STEM = 21
_INFRA_ID = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?-[a-z0-9]{5}")
GUESTS = "k8s-clusterapi-cluster-openshift-cluster-api-guests-"
"""Before the infraID in the names of networks, subnets and routers, since 4.17."""
IMAGE = r"-(rhcos|ignition)"
"""After the infraID in the names of images, a pattern."""
_ROLE = re.compile(r"(?:^|-)(master|worker|bootstrap)(?:-|$)")


def is_infra_id(text: str) -> bool:
    """Whether a text is like an infraID: the cluster's name, cut to 21 letters, a hyphen and five random letters."""
    return len(text) <= 27 and _INFRA_ID.fullmatch(text) is not None


def stem(cluster_name: str) -> str:
    """Return the part of an infraID before the random letters, for a cluster with this name."""
    plain = re.sub("-{2,}", "-", re.sub("[^A-Za-z0-9-]", "-", cluster_name))
    return plain[:LONGEST_STEM].rstrip("-")


def tag(infra_id: str) -> str:
    """Return the tag of nearly all resources of a cluster; it is set a second or two after the resource is created."""
    return f"{TAG}={infra_id}"


def api_port(infra_id: str) -> str:
    return f"{infra_id}-api-port"


def ingress_port(infra_id: str) -> str:
    return f"{infra_id}-ingress-port"


def is_virtual(name: str, tags: Collection[str], infra_id: str) -> bool:
    """Whether a port only reserves a virtual address; for dual-stack clusters users create it, with a tag."""
    named = name in (api_port(infra_id), ingress_port(infra_id))
    return named or f"{infra_id}-dual-stack-vips-port" in tags


def role(name: str, infra_id: str = "") -> Role | None:
    """Return the role in a port's name.

    Ports of masters are called ``ID-master-port-N`` (4.2), ``ID-master-N`` (to 4.16) and ``ID-master-N-0`` (since 4.17,
    where the bootstrap's is ``ID-bootstrap-0``); machine-api names a worker's port like its machine,
    ``ID-creator_of-M-xxxxx``, later with the suffix ``-0``.
    """
    found = _ROLE.search(name.removeprefix(f"{infra_id}-") if infra_id else name)
    return found[1] if found else None  # type: ignore[return-value]  # the pattern knows no other


def infra_id_of(name: str) -> str | None:
    """Return the infraID in the name of a machine, its group, an image, a network or a router; None for other names."""
    found = _ROLE.search(name) or re.search(f"{IMAGE}$", name)
    start = name[: found.start()] if found else name.removeprefix(GUESTS) if name.startswith(GUESTS) else ""
    return start if is_infra_id(start) else None


def is_node(name: str, tags: Collection[str], device_owner: str, infra_id: str) -> bool:
    """Whether a port belongs to a master, a worker or the bootstrap machine.

    The tag decides; machine sets with other names are recognised by the server that their port serves.
    """
    if tag(infra_id) not in tags or is_virtual(name, tags, infra_id):
        return False
    return role(name, infra_id) is not None or device_owner.startswith("compute:")


def infra_ids(tags: Iterable[str]) -> Iterator[str]:
    """Yield the infraIDs of the clusters that tags assign a resource to."""
    return (each.partition("=")[2] for each in tags if each.startswith(f"{TAG}="))


class InstallerNaming(ClusterNaming):
    def cluster_of(self, record: object) -> str:
        tags = [each for each in getattr(record, "tags", None) or () if each.partition("=")[0] == TAG]
        return f"an OpenShift cluster ({tags[0]})" if tags else ""

    def removal_of(self, name: str) -> str:
        infra_id = infra_id_of(name)
        return f"openshift-install destroy cluster or openstack-prep cleanup --infra-id {infra_id}" if infra_id else ""

    def tag_of(self, cluster_id: str) -> str:
        return tag(cluster_id)

    def nodes_of(self, ports: Sequence[PortRecord], cluster_id: str) -> list[PortRecord]:
        """Return the ports of a cluster's nodes; those on additional networks have no virtual address."""
        networks = {port.network_id for port in ports if is_virtual(port.name, port.tags, cluster_id)}
        nodes = [port for port in ports if is_node(port.name, port.tags, port.device_owner, cluster_id)]
        return [port for port in nodes if not networks or port.network_id in networks]

    def role_of(self, port: PortRecord, cluster_id: str) -> str:
        return role(port.name, cluster_id) or ""
