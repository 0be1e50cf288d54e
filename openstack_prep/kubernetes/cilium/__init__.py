"""Cilium's Helm values for single clusters and for a mesh of clusters: pure functions."""

from openstack_prep.kubernetes.cilium.announcement import address_annotation, leaves_services
from openstack_prep.kubernetes.cilium.announcement import documents as load_balancer_documents
from openstack_prep.kubernetes.cilium.connections import Passage, hint, install, required
from openstack_prep.kubernetes.cilium.rules import mistakes, warnings
from openstack_prep.kubernetes.cilium.settings import (
    Cilium,
    CiliumBGP,
    CiliumLayer2,
    CiliumLoadBalancer,
    CiliumPeer,
    CiliumPool,
)
from openstack_prep.kubernetes.cilium.values import Member, document, helm_chart_config, manifests

__all__ = [
    "Cilium",
    "CiliumBGP",
    "CiliumLayer2",
    "CiliumLoadBalancer",
    "CiliumPeer",
    "CiliumPool",
    "Member",
    "Passage",
    "address_annotation",
    "document",
    "helm_chart_config",
    "hint",
    "install",
    "leaves_services",
    "load_balancer_documents",
    "manifests",
    "mistakes",
    "required",
    "warnings",
]
