"""Take an OpenStack project from nothing to ready for a cluster: plan, apply, destroy.

import openstack_prep as prep

cloud = prep.connect("admin")
report = prep.apply(cloud, prep.load_spec("ocp4.yaml"))
report.raise_for_failures()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from openstack_prep.version import __version__

if TYPE_CHECKING:
    from openstack_prep import hooks as hooks
    from openstack_prep.base.diagnostic import Diagnostic
    from openstack_prep.base.errors import (
        CloudError,
        ConfigError,
        DownloadError,
        LeaseHeld,
        LeaseLost,
        Mistake,
        NotAllowed,
        NotFound,
        NotUnique,
        PlanRefused,
        PrepError,
        QuotaExceeded,
        ResourceFailed,
        SpecError,
        WaitTimeout,
    )
    from openstack_prep.base.secret import Secret
    from openstack_prep.cloud.connection import Cloud, connect
    from openstack_prep.core.executor import Event
    from openstack_prep.core.model import Action, Change, Key, Observed, Resource, Result, Status, Step
    from openstack_prep.core.plan import ApplyFailed, Plan, Report
    from openstack_prep.exposures.exposed_cluster import ExposedCluster
    from openstack_prep.exposures.exposure import Exposure
    from openstack_prep.exposures.pool_file import PoolFile
    from openstack_prep.hooks.address_pairs import sync_address_pairs
    from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
    from openstack_prep.kubernetes.clusters import render_clusters
    from openstack_prep.openshift.install_config_file import InstallConfig
    from openstack_prep.resources.addresses.address_pairs import AddressPairs
    from openstack_prep.resources.addresses.address_pool import AddressPool
    from openstack_prep.resources.addresses.floating_ip import FloatingIP
    from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
    from openstack_prep.resources.compute.flavor import Flavor
    from openstack_prep.resources.compute.keypair import Keypair
    from openstack_prep.resources.compute.quota import Quota, VolumeTypeQuota
    from openstack_prep.resources.compute.server_group import ServerGroup
    from openstack_prep.resources.credentials.application_credential import ApplicationCredential
    from openstack_prep.resources.dns.recordset import Recordset
    from openstack_prep.resources.files.clouds_entry import CloudsEntry
    from openstack_prep.resources.files.env_file import EnvFile
    from openstack_prep.resources.identity.project import Project
    from openstack_prep.resources.identity.role_assignment import RoleAssignment
    from openstack_prep.resources.identity.user import User
    from openstack_prep.resources.image.image import Image
    from openstack_prep.resources.image.image_fields import Rhcos
    from openstack_prep.resources.network.declared_port import Port
    from openstack_prep.resources.network.network import Network
    from openstack_prep.resources.network.router import Router
    from openstack_prep.resources.network.security_group import SecurityGroup
    from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
    from openstack_prep.resources.network.subnet import Subnet
    from openstack_prep.resources.orchestration.stack import Stack
    from openstack_prep.resources.storage.object_store import ObjectStore
    from openstack_prep.spec import Spec, load_spec
    from openstack_prep.verbs.api import apply, destroy, plan, plan_destroy, show
    from openstack_prep.verbs.audit import Drift, audit
    from openstack_prep.verbs.export import Export, export
    from openstack_prep.verbs.opening import LivePlan
    from openstack_prep.verbs.rotation import plan_rotation

__all__ = [
    "Action",
    "AddressPairs",
    "AddressPool",
    "ApplicationCredential",
    "ApplyFailed",
    "Change",
    "Cloud",
    "CloudError",
    "CloudsEntry",
    "ConfigError",
    "Diagnostic",
    "DownloadError",
    "Drift",
    "EnvFile",
    "Event",
    "Export",
    "ExposedCluster",
    "Exposure",
    "Flavor",
    "FloatingIP",
    "FloatingIPAttachment",
    "Image",
    "InstallConfig",
    "Key",
    "Keypair",
    "LeaseHeld",
    "LeaseLost",
    "LivePlan",
    "Mistake",
    "Network",
    "NotAllowed",
    "NotFound",
    "NotUnique",
    "ObjectStore",
    "Observed",
    "Plan",
    "PlanRefused",
    "PoolFile",
    "Port",
    "PrepError",
    "Project",
    "Quota",
    "QuotaExceeded",
    "Recordset",
    "Report",
    "Resource",
    "ResourceFailed",
    "Result",
    "Rhcos",
    "RkeCluster",
    "RoleAssignment",
    "Router",
    "Secret",
    "SecurityGroup",
    "SecurityGroupRule",
    "ServerGroup",
    "Spec",
    "SpecError",
    "Stack",
    "Status",
    "Step",
    "Subnet",
    "User",
    "VolumeTypeQuota",
    "WaitTimeout",
    "__version__",
    "apply",
    "audit",
    "connect",
    "destroy",
    "export",
    "load_spec",
    "plan",
    "plan_destroy",
    "plan_rotation",
    "render_clusters",
    "show",
    "sync_address_pairs",
]

_MODULES = {
    "Action": "core.model",
    "AddressPairs": "resources.addresses.address_pairs",
    "AddressPool": "resources.addresses.address_pool",
    "ApplicationCredential": "resources.credentials.application_credential",
    "ApplyFailed": "core.plan",
    "Change": "core.model",
    "Cloud": "cloud.connection",
    "CloudError": "base.errors",
    "CloudsEntry": "resources.files.clouds_entry",
    "ConfigError": "base.errors",
    "Diagnostic": "base.diagnostic",
    "DownloadError": "base.errors",
    "Drift": "verbs.audit",
    "EnvFile": "resources.files.env_file",
    "Event": "core.executor",
    "Export": "verbs.export",
    "ExposedCluster": "exposures.exposed_cluster",
    "Exposure": "exposures.exposure",
    "Flavor": "resources.compute.flavor",
    "FloatingIP": "resources.addresses.floating_ip",
    "FloatingIPAttachment": "resources.addresses.floating_ip_attachment",
    "Image": "resources.image.image",
    "InstallConfig": "openshift.install_config_file",
    "Key": "core.model",
    "Keypair": "resources.compute.keypair",
    "LeaseHeld": "base.errors",
    "LeaseLost": "base.errors",
    "LivePlan": "verbs.opening",
    "Mistake": "base.errors",
    "Network": "resources.network.network",
    "NotAllowed": "base.errors",
    "NotFound": "base.errors",
    "NotUnique": "base.errors",
    "ObjectStore": "resources.storage.object_store",
    "Observed": "core.model",
    "Plan": "core.plan",
    "PlanRefused": "base.errors",
    "PoolFile": "exposures.pool_file",
    "Port": "resources.network.declared_port",
    "PrepError": "base.errors",
    "Project": "resources.identity.project",
    "Quota": "resources.compute.quota",
    "QuotaExceeded": "base.errors",
    "Recordset": "resources.dns.recordset",
    "Report": "core.plan",
    "Resource": "core.model",
    "ResourceFailed": "base.errors",
    "Result": "core.model",
    "Rhcos": "resources.image.image_fields",
    "RkeCluster": "kubernetes.cluster.rke_cluster",
    "RoleAssignment": "resources.identity.role_assignment",
    "Router": "resources.network.router",
    "Secret": "base.secret",
    "SecurityGroup": "resources.network.security_group",
    "SecurityGroupRule": "resources.network.security_group_rule",
    "ServerGroup": "resources.compute.server_group",
    "Spec": "spec",
    "SpecError": "base.errors",
    "Stack": "resources.orchestration.stack",
    "Status": "core.model",
    "Step": "core.model",
    "Subnet": "resources.network.subnet",
    "User": "resources.identity.user",
    "VolumeTypeQuota": "resources.compute.quota",
    "WaitTimeout": "base.errors",
    "apply": "verbs.api",
    "audit": "verbs.audit",
    "connect": "cloud.connection",
    "destroy": "verbs.api",
    "export": "verbs.export",
    "load_spec": "spec",
    "plan": "verbs.api",
    "plan_destroy": "verbs.api",
    "plan_rotation": "verbs.rotation",
    "render_clusters": "kubernetes.clusters",
    "show": "verbs.api",
    "sync_address_pairs": "hooks.address_pairs",
}
"""The module of each name, imported when the name is first used: all of them together take a while."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    submodule = f"{__name__}.{name}"  # such as openstack_prep.hooks
    try:
        return importlib.import_module(submodule)
    except ModuleNotFoundError as error:
        if error.name != submodule:
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
