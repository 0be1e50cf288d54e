"""Clusters that are to be one mesh: what must get through between them, and whether OpenStack lets it."""

from openstack_prep.kubernetes.mesh.examination import Examination, Nodes, examine
from openstack_prep.kubernetes.mesh.looking import look
from openstack_prep.kubernetes.mesh.reading import read
from openstack_prep.kubernetes.mesh.scene import Scene, Side

__all__ = ["Examination", "Nodes", "Scene", "Side", "examine", "look", "read"]
