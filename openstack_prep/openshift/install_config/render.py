"""From what is declared to what is written."""

from __future__ import annotations

from openstack_prep.base.errors import SpecError
from openstack_prep.base.raw import Values
from openstack_prep.openshift.install_config.document import document
from openstack_prep.openshift.install_config.model import Cluster, Contents
from openstack_prep.openshift.install_config.rules import mistakes


def render(cluster: Cluster, contents: Contents) -> Values:
    """Return the install-config; raises SpecError with everything that the release refuses."""
    found = mistakes(cluster, contents)
    if found:
        raise SpecError(found)
    return document(cluster, contents)
