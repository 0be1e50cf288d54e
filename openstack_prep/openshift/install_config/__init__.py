"""install-config.yaml of OpenShift on OpenStack, for every release from 4.2 to 5.1: pure, data in, text out."""

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.openshift.install_config.cluster_of import read
from openstack_prep.openshift.install_config.document import document
from openstack_prep.openshift.install_config.given import Given
from openstack_prep.openshift.install_config.model import (
    Capabilities,
    Cluster,
    Contents,
    Machines,
    Mirror,
    Pool,
    Proxy,
    Reference,
    RootVolume,
)
from openstack_prep.openshift.install_config.reading import findings
from openstack_prep.openshift.install_config.render import render
from openstack_prep.openshift.install_config.rules import mistakes

__all__ = [
    "Capabilities",
    "Cluster",
    "Contents",
    "Given",
    "Machines",
    "Mirror",
    "Pool",
    "Proxy",
    "Reference",
    "RootVolume",
    "document",
    "dump",
    "findings",
    "mistakes",
    "read",
    "render",
]
