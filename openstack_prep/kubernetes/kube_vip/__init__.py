"""kube-vip as a load balancer of Services: pure functions."""

from openstack_prep.kubernetes.kube_vip.model import ANNOTATION, KubeVip, KubeVipPool
from openstack_prep.kubernetes.kube_vip.pools import LABEL, PROVIDER, document, mistakes

__all__ = ["ANNOTATION", "LABEL", "PROVIDER", "KubeVip", "KubeVipPool", "document", "mistakes"]
