"""From externalIPs to a load balancer: Services and old pools become MetalLB's, Cilium's or kube-vip's; no I/O."""

from openstack_prep.exposures.convert.conversion import Conversion, convert
from openstack_prep.exposures.convert.model import Old, Peer, Wanted
from openstack_prep.exposures.convert.reading import newer_than_known, read, wanted

__all__ = ["Conversion", "Old", "Peer", "Wanted", "convert", "newer_than_known", "read", "wanted"]
