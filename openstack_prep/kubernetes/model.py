"""What a user declares of an RKE or RKE2 cluster, and the machines that it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Len

from openstack_prep.base.fields import Address, Cidr, File, Name, Reads, Text
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.config import ClusterConfig, NodeConfig

STRICT = {"extra": "forbid", "strict": True}

Role = Literal["controlplane", "etcd", "worker"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine: ``address`` is where RKE reaches it, ``internal_address`` what the others know it by."""

    name: str
    address: str
    internal_address: str
    roles: tuple[Role, ...]
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    config: Raw = field(default_factory=dict)


def indexes(value: object) -> object:
    """Read indexes of nodes: one, from-to, or from- to the last one."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        found = re.fullmatch(r"(\d{1,4})(-(\d{1,4})?)?", value)
        if not found or (found[3] and int(found[3]) < int(found[1])):
            raise InvalidValue("are no indexes", "write one such as 0, or several such as 0-2 or 3-")
    return value


def version(value: object) -> object:
    """Read a version of Kubernetes; YAML takes one of two numbers for a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise InvalidValue(
            "is a number to YAML", "write the whole version, such as v1.31.1-rancher1-1 or v1.35.7+rke2r1"
        )
    return value


Indexes = Annotated[str, Reads(indexes, {"type": ["string", "integer"], "pattern": r"^\d+(-\d*)?$"})]


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Some nodes of a cluster, by their indexes in the stack."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    nodes: Indexes
    """Indexes of the nodes: 0, 0-2, or 3- for all from the fourth on."""
    roles: Annotated[tuple[Role, ...], Len(1)]
    """What they do."""
    labels: Mapping[Name, Text] | None = None
    """Kubernetes labels."""
    taints: tuple[Name, ...] = ()
    """Kubernetes taints, each as key=value:effect or key:effect."""
    config: NodeConfig | None = None
    """Any other keys of a node in cluster.yml (RKE), or of these nodes' config.yaml (RKE2)."""

    @property
    def last(self) -> int | None:
        """The last index; None when it is that of the last node."""
        first, hyphen, last = self.nodes.partition("-")
        return None if hyphen and not last else int(last or first)

    def has(self, index: int) -> bool:
        """Whether the node of that index is one of them."""
        return int(self.nodes.partition("-")[0]) <= index <= (index if self.last is None else self.last)


def host(value: object) -> object:
    """Read where a registry is, as images are called by it."""
    if isinstance(value, str) and ("://" in value or value.endswith("/")):
        raise InvalidValue("is no host and port", "leave out the scheme, and the slash at the end")
    return value


@dataclass(frozen=True, kw_only=True)
class Registry:
    """A registry of container images that asks for a login."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    url: Annotated[Name, Reads(host)]
    """Its host and port, without a scheme."""
    user: Name | None = None
    """Who logs in."""
    password: Secret | None = None
    """The password."""
    is_default: bool | None = None
    """Whether the cluster's own images come from there."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What an RKE or RKE2 cluster is to be like; the same words for both where they mean the same."""

    distribution: Literal["rke", "rke2"] = "rke"
    """Which of them."""
    kubernetes_version: Annotated[Name, Reads(version)] | None = None
    """Version, such as v1.31.1-rancher1-1 or v1.35.7+rke2r1; default: that of the program."""
    roles: tuple[NodeGroup, ...] = ()
    """RKE: what each node does; default: the first three (one, of less than three) are controlplane and etcd, and all
    are workers."""
    user: Name | None = None
    """User to log in as; default: the stack's output login_user, else ubuntu."""
    ssh_key_path: File | None = None
    """Private key to log in with; default: RKE's own, ~/.ssh/id_rsa."""
    cluster_cidr: Cidr | None = None
    """Addresses of pods; default: drawn from cluster_networks."""
    service_cidr: Cidr | None = None
    """Addresses of Services; default: drawn from cluster_networks."""
    cluster_dns: Address | None = None
    """Address of the cluster's DNS, within service_cidr; default: its tenth."""
    network_plugin: Name | None = None
    """RKE's network plugin or RKE2's cni; default: none with cilium, else canal."""
    external_cloud_provider: bool = False
    """Whether OpenStack's cloud controller manager will be deployed: nodes wait for it."""
    private_registries: tuple[Registry, ...] = ()
    """Registries of container images."""
    config: ClusterConfig | None = None
    """Any other keys of cluster.yml (RKE) or of config.yaml (RKE2), as those programs call them; secrets among them may
    be given by their source, {env: NAME} and the like."""
