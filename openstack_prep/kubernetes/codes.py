"""Codes of mistakes in clusters of RKE2 and RKE; codes.yaml explains each of them."""

from __future__ import annotations

from enum import StrEnum


class ClusterCode(StrEnum):
    """What is wrong, by a name that does not change, for ``openstack-prep explain``."""

    BALANCERS = "cluster.load-balancers"
    CILIUM = "cluster.cilium"
    CONFIG = "cluster.config"
    KUBE_VIP = "cluster.kube-vip"
    METALLB = "cluster.metallb"
    NETWORKS = "cluster.networks"
    SHARED = "cluster.shared"
    STACK = "cluster.stack"
    VERSION = "cluster.version"
