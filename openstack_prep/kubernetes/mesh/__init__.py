"""Clusters of one mesh: the traffic that must pass between them, and whether OpenStack lets it through."""

from openstack_prep.kubernetes.mesh.examination import Examination, MeshNodes, examine
from openstack_prep.kubernetes.mesh.from_spec import look
from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks, read

__all__ = ["Examination", "MeshCluster", "MeshNodes", "VisibleNetworks", "examine", "look", "read"]
