"""Clusters that are to be one mesh: what must get through between them, and whether OpenStack lets it."""

from openstack_prep.mesh.examination import Examination, Nodes, examine
from openstack_prep.mesh.looking import look
from openstack_prep.mesh.reading import read
from openstack_prep.mesh.scene import Scene, Side

__all__ = ["Examination", "Nodes", "Scene", "Side", "examine", "look", "read"]
