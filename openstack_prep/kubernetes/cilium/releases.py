"""Releases of Cilium: which are known, and what depends on them.

Sources: the charts of Cilium 1.13 to 1.20 (values.yaml, templates); operator/pkg/lbipam, pkg/annotation,
pkg/k8s/apis/cilium.io/client/crds and Documentation/network/l2-announcements.rst of 1.13.18, 1.14.18, 1.15.12, 1.16.5,
1.17.1 and of the main branch before 1.18 and 1.19; charts/rke2-cilium of RKE2's charts (1.19.601 contains 1.19.6).
"""

from __future__ import annotations

Minor = tuple[int, int]

NEWEST_PATCH = {13: 18, 14: 19, 15: 19, 16: 19, 17: 18, 18: 12, 19: 6, 20: 0}
"""Releases 1.N that the values and manifests were checked against, with the newest patch level of each."""
OLDEST: Minor = (1, 13)
DEFAULT = {"rke": "1.17", "rke2": "1.19"}
"""Releases without a declared one; RKE2 v1.35 installs its own chart 1.19."""
RKE2_CHART = 100
"""RKE2's charts multiply the patch level: 1.19.601 is its second chart of Cilium 1.19.6."""

NEWEST_MANAGED_ETCD: Minor = (1, 15)
ROUTING_MODE_SINCE: Minor = (1, 14)
SHARED_CA_SINCE: Minor = (1, 14)
LAYER2_SINCE: Minor = (1, 14)
RATE_LIMIT_SINCE: Minor = (1, 14)
BLOCKS_SINCE: Minor = (1, 15)
"""Pools list blocks with start and stop, in place of cidrs."""
BGP_PEER_OPTIONS_SINCE: Minor = (1, 14)
BGP_PASSWORD_SINCE: Minor = (1, 15)
BGP_RESOURCES_SINCE: Minor = (1, 16)
"""CiliumBGPClusterConfig and the like as they remained, in place of CiliumBGPPeeringPolicy."""
LBIPAM_ANNOTATION_SINCE: Minor = (1, 16)
DEFAULT_IPAM_SINCE: Minor = (1, 17)
"""The value defaultLBServiceIPAM: none leaves Services without a class to other load balancers."""
V2_SINCE: Minor = (1, 18)
"""Pools and BGP resources are cilium.io/v2, before v2alpha1."""
IPV6_TUNNEL_SINCE: Minor = (1, 18)
IPV6_IPSEC_SINCE: Minor = (1, 18)
IPV6_WIREGUARD_SINCE: Minor = (1, 19)
IPV6_LAYER2_SINCE: Minor = (1, 19)


def minor(version: str) -> Minor:
    """Return a release without its patch level."""
    first, second, *_ = version.split(".")
    return int(first), int(second)


def is_known(version: str) -> bool:
    """Whether values and manifests were checked against this release."""
    major, number = minor(version)
    return major == 1 and number in NEWEST_PATCH


def full(version: str) -> str:
    """Return a release with its patch level, by default the newest known one."""
    if version.count(".") > 1 or not is_known(version):
        return version
    return f"{version}.{NEWEST_PATCH[minor(version)[1]]}"


def range_of_known() -> str:
    """Return the known releases as text."""
    return f"1.{min(NEWEST_PATCH)} to 1.{max(NEWEST_PATCH)}"


def is_of_rke2(version: str) -> bool:
    """Whether this is the version of RKE2's own chart, such as 1.19.601."""
    return version.count(".") == 2 and int(version.rpartition(".")[2]) >= RKE2_CHART


def released(version: str) -> str:
    """Return the release of Cilium in RKE2's own chart: 1.19.6 for 1.19.601."""
    first, _, patch = version.rpartition(".")
    return f"{first}.{int(patch) // RKE2_CHART}"
