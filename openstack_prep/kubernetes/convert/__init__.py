"""RKE's cluster.yml as files of RKE2: what carries over, what does not and why, and how workloads move."""

from openstack_prep.kubernetes.convert.conversion import Conversion, convert

__all__ = ["Conversion", "convert"]
