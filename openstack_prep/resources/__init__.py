"""One file per kind; KINDS is the explicit table of them."""

from openstack_prep.model import Resource
from openstack_prep.resources.access_rule import AccessRule
from openstack_prep.resources.address_pairs import AddressPairs
from openstack_prep.resources.address_pool import AddressPool
from openstack_prep.resources.application_credential import ApplicationCredential
from openstack_prep.resources.clouds_entry import CloudsEntry
from openstack_prep.resources.env_file import EnvFile
from openstack_prep.resources.flavor import Flavor
from openstack_prep.resources.floating_ip import FloatingIP
from openstack_prep.resources.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.image import Image
from openstack_prep.resources.install_config import InstallConfig
from openstack_prep.resources.keypair import Keypair
from openstack_prep.resources.network import ExternalNetwork, Network
from openstack_prep.resources.object_store import ObjectStore
from openstack_prep.resources.project import Domain, Project
from openstack_prep.resources.quota import Quota, VolumeTypeQuota
from openstack_prep.resources.rhcos_source import Rhcos
from openstack_prep.resources.rke_cluster import RkeCluster
from openstack_prep.resources.role_assignment import RoleAssignment
from openstack_prep.resources.router import Router
from openstack_prep.resources.security_group import SecurityGroup
from openstack_prep.resources.security_group_rule import SecurityGroupRule
from openstack_prep.resources.server_group import ServerGroup
from openstack_prep.resources.stack import Stack
from openstack_prep.resources.subnet import Subnet
from openstack_prep.resources.user import User

KINDS: dict[str, type[Resource]] = {
    kind.kind: kind
    for kind in (
        Project,
        User,
        RoleAssignment,
        Quota,
        Flavor,
        Image,
        Keypair,
        Network,
        Subnet,
        Router,
        SecurityGroup,
        ServerGroup,
        FloatingIP,
        FloatingIPAttachment,
        AddressPool,
        AddressPairs,
        ObjectStore,
        Stack,
        RkeCluster,
        ApplicationCredential,
        CloudsEntry,
        EnvFile,
        InstallConfig,
    )
}

__all__ = [
    "KINDS",
    "AccessRule",
    "AddressPairs",
    "AddressPool",
    "ApplicationCredential",
    "CloudsEntry",
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
