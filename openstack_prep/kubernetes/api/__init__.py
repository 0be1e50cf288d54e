"""A running cluster, read by way of its API server: a source of Services besides files and standard input."""

from openstack_prep.kubernetes.api.api_server import ApiServer, ClusterError, ObjectList, RunningCluster

__all__ = ["ApiServer", "ClusterError", "ObjectList", "RunningCluster"]
