"""The release of RKE2 for a version of RKE: the newest of the same Kubernetes minor version.

The same minor version keeps the APIs, so that manifests move unchanged; upgrade the new cluster afterwards.  Source:
the tags of rancher/rke2 of August 2026; RKE 1.8.14 installs v1.32.13 by default.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NEWEST = {
    18: "v1.18.20+rke2r1",
    19: "v1.19.16+rke2r1",
    20: "v1.20.15+rke2r2",
    21: "v1.21.14+rke2r1",
    22: "v1.22.17+rke2r1",
    23: "v1.23.17+rke2r1",
    24: "v1.24.17+rke2r1",
    25: "v1.25.16+rke2r2",
    26: "v1.26.15+rke2r1",
    27: "v1.27.16+rke2r2",
    28: "v1.28.15+rke2r1",
    29: "v1.29.15+rke2r1",
    30: "v1.30.14+rke2r4",
    31: "v1.31.14+rke2r2",
    32: "v1.32.13+rke2r2",
    33: "v1.33.13+rke2r2",
    34: "v1.34.10+rke2r1",
    35: "v1.35.7+rke2r1",
    36: "v1.36.3+rke2r1",
}
DEFAULT_MINOR = 32
"""Of RKE 1.8.14, the last release."""
SINCE = {
    "service-node-port-range": 20,
    "etcd-arg": 20,
    "pod-security-admission-config-file": 25,
    **{f"{name}-extra-mount": 21 for name in ("kube-apiserver", "kube-scheduler", "kube-controller-manager")},
    **{f"{name}-extra-env": 21 for name in ("kube-apiserver", "kube-scheduler", "kube-controller-manager")},
    **{f"{name}-extra-{what}": 21 for name in ("kube-proxy", "etcd") for what in ("mount", "env")},
}
"""The first minor version of RKE2 that has a key of config.yaml (pkg/cli/cmds of its tags)."""


class Target(NamedTuple):
    """A release of RKE2, N of its Kubernetes 1.N, and why this one."""

    version: str
    minor: int
    note: str


def target(declared: object, chosen: str | None = None) -> Target:
    """Return the release for the kubernetes_version of a cluster.yml, or for a chosen release."""
    if chosen:
        return Target(chosen, minor_of(chosen) or DEFAULT_MINOR, "chosen by --kubernetes-version")
    minor = minor_of(declared)
    if minor is None:
        return Target(NEWEST[DEFAULT_MINOR], DEFAULT_MINOR, f"RKE 1.8.14 installs 1.{DEFAULT_MINOR} by default")
    nearest = min(NEWEST, key=lambda each: abs(each - minor))
    if nearest != minor:
        return Target(NEWEST[nearest], nearest, f"RKE2 has no 1.{minor}; 1.{nearest} is the nearest, and changes APIs")
    return Target(NEWEST[nearest], nearest, "the newest RKE2 of the same minor version")


def minor_of(version: object) -> int | None:
    """Return N of a version of Kubernetes 1.N."""
    found = re.match(r"v1\.(\d{1,3})\.", str(version))
    return int(found[1]) if found else None
