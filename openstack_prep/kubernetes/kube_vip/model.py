"""The declaration of kube-vip as a load balancer: pools for its cloud provider, which assigns the addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base.fields import Name
from openstack_prep.kubernetes.balancing.pools import ServicePool
from openstack_prep.kubernetes.model import STRICT

ANNOTATION = "kube-vip.io/loadbalancerIPs"
"""The annotation of a Service with its addresses."""
EVERYWHERE = "global"
"""The pool of all namespaces that have none of their own."""


@dataclass(frozen=True, kw_only=True)
class KubeVipPool(ServicePool):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    name: Name | None = None
    """Name of the pool in messages; kube-vip has no names of pools. Default: the name of the address pool."""
    namespace: Name = EVERYWHERE
    """Namespace that the addresses are for; default: all namespaces that have no pool of their own."""


@dataclass(frozen=True, kw_only=True)
class KubeVip:
    """kube-vip and its cloud provider in place of MetalLB; install both by their own manifests."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    pools: tuple[KubeVipPool, ...]
    """Addresses for Services."""
