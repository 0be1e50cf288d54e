"""From externalIPs to a load balancer: Services and old pools become MetalLB's, Cilium's or kube-vip's; no I/O."""

from openstack_prep.exposures.convert.conversion import ExposureConversion, convert
from openstack_prep.exposures.convert.objects import BgpPeer, LoadBalancerOptions, Old
from openstack_prep.exposures.convert.sources import newer_than_known, read, wanted

__all__ = [
    "BgpPeer",
    "ExposureConversion",
    "LoadBalancerOptions",
    "Old",
    "convert",
    "newer_than_known",
    "read",
    "wanted",
]
