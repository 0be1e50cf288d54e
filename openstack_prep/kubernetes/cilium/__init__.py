"""Cilium's Helm values for single clusters and for a mesh of clusters: pure functions."""

from openstack_prep.kubernetes.cilium.model import Cilium
from openstack_prep.kubernetes.cilium.required import Passage, hint, install, required
from openstack_prep.kubernetes.cilium.rules import mistakes, warnings
from openstack_prep.kubernetes.cilium.values import Member, document, helm_chart_config, manifests

__all__ = [
    "Cilium",
    "Member",
    "Passage",
    "document",
    "helm_chart_config",
    "hint",
    "install",
    "manifests",
    "mistakes",
    "required",
    "warnings",
]
