"""One file per kind, imported when the kind is first used: a spec has few of them, and all together take a while."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openstack_prep.core.model import Resource as Resource
    from openstack_prep.exposures.exposed_cluster import ExposedCluster as ExposedCluster
    from openstack_prep.exposures.exposure import Exposure as Exposure
    from openstack_prep.exposures.pool_file import PoolFile as PoolFile
    from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster as RkeCluster
    from openstack_prep.kubernetes.networks import ClusterNetworks as ClusterNetworks
    from openstack_prep.openshift.install_config_file import InstallConfig as InstallConfig
    from openstack_prep.resources.addresses.address_pairs import AddressPairs as AddressPairs
    from openstack_prep.resources.addresses.address_pool import AddressPool as AddressPool
    from openstack_prep.resources.addresses.floating_ip import FloatingIP as FloatingIP
    from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment as FloatingIPAttachment
    from openstack_prep.resources.compute.flavor import Flavor as Flavor
    from openstack_prep.resources.compute.keypair import Keypair as Keypair
    from openstack_prep.resources.compute.quota import Quota as Quota
    from openstack_prep.resources.compute.quota import VolumeTypeQuota as VolumeTypeQuota
    from openstack_prep.resources.compute.server_group import ServerGroup as ServerGroup
    from openstack_prep.resources.credentials.access_rule import AccessRule as AccessRule
    from openstack_prep.resources.credentials.application_credential import (
        ApplicationCredential as ApplicationCredential,
    )
    from openstack_prep.resources.dns.recordset import Recordset as Recordset
    from openstack_prep.resources.files.clouds_entry import CloudsEntry as CloudsEntry
    from openstack_prep.resources.files.env_file import EnvFile as EnvFile
    from openstack_prep.resources.identity.project import Domain as Domain
    from openstack_prep.resources.identity.project import Project as Project
    from openstack_prep.resources.identity.role_assignment import RoleAssignment as RoleAssignment
    from openstack_prep.resources.identity.user import User as User
    from openstack_prep.resources.image.image import Image as Image
    from openstack_prep.resources.image.rhcos_source import Rhcos as Rhcos
    from openstack_prep.resources.network.declared_port import Port as Port
    from openstack_prep.resources.network.network import ExternalNetwork as ExternalNetwork
    from openstack_prep.resources.network.network import Network as Network
    from openstack_prep.resources.network.router import Router as Router
    from openstack_prep.resources.network.security_group import SecurityGroup as SecurityGroup
    from openstack_prep.resources.network.security_group_rule import SecurityGroupRule as SecurityGroupRule
    from openstack_prep.resources.network.subnet import Subnet as Subnet
    from openstack_prep.resources.orchestration.stack import Stack as Stack
    from openstack_prep.resources.storage.object_store import ObjectStore as ObjectStore

    KINDS: dict[str, type[Resource]]
    """All kinds that a spec declares, by ``Resource.kind``."""
    SCANNED: dict[str, type[Resource]]
    """Those of them that a scan finds."""
    IN_FILES: dict[str, type[Resource]]
    """Those of them that are files of this machine."""

_IN_CLOUD = {
    "Project": "resources.identity.project",
    "User": "resources.identity.user",
    "RoleAssignment": "resources.identity.role_assignment",
    "Quota": "resources.compute.quota",
    "Flavor": "resources.compute.flavor",
    "Image": "resources.image.image",
    "Keypair": "resources.compute.keypair",
    "Network": "resources.network.network",
    "Subnet": "resources.network.subnet",
    "Router": "resources.network.router",
    "SecurityGroup": "resources.network.security_group",
    "Port": "resources.network.declared_port",
    "ServerGroup": "resources.compute.server_group",
    "FloatingIP": "resources.addresses.floating_ip",
    "FloatingIPAttachment": "resources.addresses.floating_ip_attachment",
    "AddressPool": "resources.addresses.address_pool",
    "AddressPairs": "resources.addresses.address_pairs",
    "Recordset": "resources.dns.recordset",
    "ObjectStore": "resources.storage.object_store",
    "Stack": "resources.orchestration.stack",
    "ApplicationCredential": "resources.credentials.application_credential",
}
"""The kinds that a spec declares and a scan finds, in the order of a plan, with the modules that they stand in."""
_IN_FILES = {
    "PoolFile": "exposures.pool_file",
    "Exposure": "exposures.exposure",
    "ExposedCluster": "exposures.exposed_cluster",
    "RkeCluster": "kubernetes.cluster.rke_cluster",
    "CloudsEntry": "resources.files.clouds_entry",
    "EnvFile": "resources.files.env_file",
    "InstallConfig": "openshift.install_config_file",
}
"""Those that a spec declares and no scan finds: they lie in no project, or only a spec describes them."""
_OTHERS = {
    "AccessRule": "resources.credentials.access_rule",
    "ClusterNetworks": "kubernetes.networks",
    "Domain": "resources.identity.project",
    "ExternalNetwork": "resources.network.network",
    "Rhcos": "resources.image.rhcos_source",
    "SecurityGroupRule": "resources.network.security_group_rule",
    "VolumeTypeQuota": "resources.compute.quota",
}
"""What only parts of a spec are, or what others refer to."""
_MODULES = _IN_CLOUD | _IN_FILES | _OTHERS

__all__ = ["IN_FILES", "KINDS", "SCANNED", *_MODULES]


def __getattr__(name: str) -> object:
    found: object
    if name == "KINDS":
        found = _by_kind(*_IN_CLOUD, *_IN_FILES)
    elif name == "SCANNED":
        found = _by_kind(*_IN_CLOUD)
    elif name == "IN_FILES":
        found = _by_kind(*_IN_FILES)
    elif name in _MODULES:
        found = _load(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _load(name: str) -> Any:
    return getattr(importlib.import_module(f"openstack_prep.{_MODULES[name]}"), name)


def _by_kind(*names: str) -> dict[str, type[Resource]]:
    return {kind.kind: kind for kind in map(_load, names)}
