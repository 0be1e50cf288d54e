"""One file per kind, imported when the kind is first used: a spec has few of them, and all together take a while."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openstack_prep.core.model import Resource
    from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
    from openstack_prep.kubernetes.networks import ClusterNetworks
    from openstack_prep.openshift.install_config_file import InstallConfig
    from openstack_prep.resources.addresses.address_pairs import AddressPairs
    from openstack_prep.resources.addresses.address_pool import AddressPool
    from openstack_prep.resources.addresses.floating_ip import FloatingIP
    from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
    from openstack_prep.resources.compute.flavor import Flavor
    from openstack_prep.resources.compute.keypair import Keypair
    from openstack_prep.resources.compute.quota import Quota, VolumeTypeQuota
    from openstack_prep.resources.compute.server_group import ServerGroup
    from openstack_prep.resources.credentials.access_rule import AccessRule
    from openstack_prep.resources.credentials.application_credential import ApplicationCredential
    from openstack_prep.resources.files.clouds_entry import CloudsEntry
    from openstack_prep.resources.files.env_file import EnvFile
    from openstack_prep.resources.identity.project import Domain, Project
    from openstack_prep.resources.identity.role_assignment import RoleAssignment
    from openstack_prep.resources.identity.user import User
    from openstack_prep.resources.image.image import Image
    from openstack_prep.resources.image.rhcos_source import Rhcos
    from openstack_prep.resources.network.network import ExternalNetwork, Network
    from openstack_prep.resources.network.router import Router
    from openstack_prep.resources.network.security_group import SecurityGroup
    from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
    from openstack_prep.resources.network.subnet import Subnet
    from openstack_prep.resources.orchestration.stack import Stack
    from openstack_prep.resources.storage.object_store import ObjectStore

    KINDS: dict[str, type[Resource]]
    """All kinds that a spec declares, by ``Resource.kind``."""
    SCANNED: dict[str, type[Resource]]
    """Those of them that a scan finds."""

__all__ = [
    "KINDS",
    "SCANNED",
    "AccessRule",
    "AddressPairs",
    "AddressPool",
    "ApplicationCredential",
    "CloudsEntry",
    "ClusterNetworks",
    "Domain",
    "EnvFile",
    "ExternalNetwork",
    "Flavor",
    "FloatingIP",
    "FloatingIPAttachment",
    "Image",
    "InstallConfig",
    "Keypair",
    "Network",
    "ObjectStore",
    "Project",
    "Quota",
    "Rhcos",
    "RkeCluster",
    "RoleAssignment",
    "Router",
    "SecurityGroup",
    "SecurityGroupRule",
    "ServerGroup",
    "Stack",
    "Subnet",
    "User",
    "VolumeTypeQuota",
]

_MODULES = {
    "AccessRule": "openstack_prep.resources.credentials.access_rule",
    "AddressPairs": "openstack_prep.resources.addresses.address_pairs",
    "AddressPool": "openstack_prep.resources.addresses.address_pool",
    "ApplicationCredential": "openstack_prep.resources.credentials.application_credential",
    "CloudsEntry": "openstack_prep.resources.files.clouds_entry",
    "ClusterNetworks": "openstack_prep.kubernetes.networks",
    "Domain": "openstack_prep.resources.identity.project",
    "EnvFile": "openstack_prep.resources.files.env_file",
    "ExternalNetwork": "openstack_prep.resources.network.network",
    "Flavor": "openstack_prep.resources.compute.flavor",
    "FloatingIP": "openstack_prep.resources.addresses.floating_ip",
    "FloatingIPAttachment": "openstack_prep.resources.addresses.floating_ip_attachment",
    "Image": "openstack_prep.resources.image.image",
    "InstallConfig": "openstack_prep.openshift.install_config_file",
    "Keypair": "openstack_prep.resources.compute.keypair",
    "Network": "openstack_prep.resources.network.network",
    "ObjectStore": "openstack_prep.resources.storage.object_store",
    "Project": "openstack_prep.resources.identity.project",
    "Quota": "openstack_prep.resources.compute.quota",
    "Rhcos": "openstack_prep.resources.image.rhcos_source",
    "RkeCluster": "openstack_prep.kubernetes.cluster.rke_cluster",
    "RoleAssignment": "openstack_prep.resources.identity.role_assignment",
    "Router": "openstack_prep.resources.network.router",
    "SecurityGroup": "openstack_prep.resources.network.security_group",
    "SecurityGroupRule": "openstack_prep.resources.network.security_group_rule",
    "ServerGroup": "openstack_prep.resources.compute.server_group",
    "Stack": "openstack_prep.resources.orchestration.stack",
    "Subnet": "openstack_prep.resources.network.subnet",
    "User": "openstack_prep.resources.identity.user",
    "VolumeTypeQuota": "openstack_prep.resources.compute.quota",
}
_IN_CLOUD = (
    "Project",
    "User",
    "RoleAssignment",
    "Quota",
    "Flavor",
    "Image",
    "Keypair",
    "Network",
    "Subnet",
    "Router",
    "SecurityGroup",
    "ServerGroup",
    "FloatingIP",
    "FloatingIPAttachment",
    "AddressPool",
    "AddressPairs",
    "ObjectStore",
    "Stack",
    "ApplicationCredential",
)
"""The kinds that a spec declares and a scan finds."""
_IN_FILES = ("RkeCluster", "CloudsEntry", "EnvFile", "InstallConfig")
"""Those that a spec declares and no scan finds, because they lie in no project."""


def __getattr__(name: str) -> object:
    found: object
    if name == "KINDS":
        found = _by_kind(*_IN_CLOUD, *_IN_FILES)
    elif name == "SCANNED":
        found = _by_kind(*_IN_CLOUD)
    elif name in _MODULES:
        found = _load(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load(name: str) -> Any:
    return getattr(importlib.import_module(_MODULES[name]), name)


def _by_kind(*names: str) -> dict[str, type[Resource]]:
    return {kind.kind: kind for kind in map(_load, names)}
