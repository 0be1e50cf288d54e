"""MetalLB's configuration, as custom resources or as a ConfigMap: pure functions."""

from openstack_prep.kubernetes.balancing.pools import Addresses, LabelExpression, LabelSelector
from openstack_prep.kubernetes.metallb.manifests import document
from openstack_prep.kubernetes.metallb.model import (
    MetalLB,
    MetalLBBGP,
    MetalLBLayer2,
    MetalLBPeer,
    MetalLBPool,
)
from openstack_prep.kubernetes.metallb.rules import mistakes, warnings

__all__ = [
    "Addresses",
    "LabelExpression",
    "LabelSelector",
    "MetalLB",
    "MetalLBBGP",
    "MetalLBLayer2",
    "MetalLBPeer",
    "MetalLBPool",
    "document",
    "mistakes",
    "warnings",
]
