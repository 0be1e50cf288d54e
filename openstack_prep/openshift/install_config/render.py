"""Render a cluster as an install-config."""

from __future__ import annotations

from openstack_prep.base.errors import SpecError
from openstack_prep.base.raw import Values
from openstack_prep.openshift.install_config.document import document
from openstack_prep.openshift.install_config.model import FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.rules import mistakes


def render(cluster: InstallConfigFields, contents: FileContents) -> Values:
    """Return the install-config; raises SpecError with all mistakes."""
    found = mistakes(cluster, contents)
    if found:
        raise SpecError(found)
    return document(cluster, contents)
