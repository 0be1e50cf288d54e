"""install-config.yaml of OpenShift on OpenStack, for every release from 4.2 to 5.1: pure, data in, text out."""

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.openshift.install_config.cluster_of import read
from openstack_prep.openshift.install_config.document import document
from openstack_prep.openshift.install_config.given import InstallConfigValues
from openstack_prep.openshift.install_config.model import (
    Capabilities,
    FileContents,
    InstallConfigFields,
    MachinePool,
    Machines,
    Mirror,
    Proxy,
    ResourceReference,
    RootVolume,
)
from openstack_prep.openshift.install_config.reading import findings
from openstack_prep.openshift.install_config.render import render
from openstack_prep.openshift.install_config.rules import mistakes

__all__ = [
    "Capabilities",
    "FileContents",
    "InstallConfigFields",
    "InstallConfigValues",
    "MachinePool",
    "Machines",
    "Mirror",
    "Proxy",
    "ResourceReference",
    "RootVolume",
    "document",
    "dump",
    "findings",
    "mistakes",
    "read",
    "render",
]
