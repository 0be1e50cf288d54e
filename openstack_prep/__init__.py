"""Take an OpenStack project from nothing to ready for a cluster: plan, apply, destroy.

import openstack_prep as prep

cloud = prep.connect("admin")
report = prep.apply(cloud, prep.load_spec("ocp4.yaml"))
report.raise_for_failures()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from openstack_prep.plan import Plan, Report
from openstack_prep.version import __version__

if TYPE_CHECKING:
    from openstack_prep import hooks as hooks
    from openstack_prep.api import (
        apply,
        destroy,
        plan,
        plan_destroy,
        plan_rotation,
        render_clusters,
        show,
    )
    from openstack_prep.cloud import Cloud, connect
    from openstack_prep.errors import (
        ApplyFailed,
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
    )
    from openstack_prep.executor import Event
    from openstack_prep.hooks.address_pairs import sync_address_pairs
    from openstack_prep.model import (
        Action,
        Change,
        Key,
        Observed,
        Resource,
        Result,
        Status,
        Step,
    )
    from openstack_prep.resources import (
        AddressPairs,
        AddressPool,
        ApplicationCredential,
        CloudsEntry,
        Domain,
        EnvFile,
        ExternalNetwork,
        Flavor,
        FloatingIP,
        FloatingIPAttachment,
        Image,
        InstallConfig,
        Keypair,
        Network,
        ObjectStore,
        Project,
        Quota,
        Rhcos,
        RkeCluster,
        RoleAssignment,
        Router,
        SecurityGroup,
        SecurityGroupRule,
        ServerGroup,
        Stack,
        Subnet,
        User,
        VolumeTypeQuota,
    )
    from openstack_prep.secret import Secret
    from openstack_prep.spec import Spec, load_spec

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
    "Domain",
    "DownloadError",
    "EnvFile",
    "Event",
    "ExternalNetwork",
    "Flavor",
    "FloatingIP",
    "FloatingIPAttachment",
    "Image",
    "InstallConfig",
    "Key",
    "Keypair",
    "LeaseHeld",
    "LeaseLost",
    "Mistake",
    "Network",
    "NotAllowed",
    "NotFound",
    "NotUnique",
    "ObjectStore",
    "Observed",
    "Plan",
    "PlanRefused",
    "PrepError",
    "Project",
    "Quota",
    "QuotaExceeded",
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
    "__version__",
    "apply",
    "connect",
    "destroy",
    "load_spec",
    "plan",
    "plan_destroy",
    "plan_rotation",
    "render_clusters",
    "show",
    "sync_address_pairs",
]

_MODULES = {
    "Action": "model",
    "AddressPairs": "resources",
    "AddressPool": "resources",
    "ApplicationCredential": "resources",
    "ApplyFailed": "errors",
    "Change": "model",
    "Cloud": "cloud",
    "CloudError": "errors",
    "CloudsEntry": "resources",
    "ConfigError": "errors",
    "Domain": "resources",
    "DownloadError": "errors",
    "EnvFile": "resources",
    "Event": "executor",
    "ExternalNetwork": "resources",
    "Flavor": "resources",
    "FloatingIP": "resources",
    "FloatingIPAttachment": "resources",
    "Image": "resources",
    "InstallConfig": "resources",
    "Key": "model",
    "Keypair": "resources",
    "LeaseHeld": "errors",
    "LeaseLost": "errors",
    "Mistake": "errors",
    "Network": "resources",
    "NotAllowed": "errors",
    "NotFound": "errors",
    "NotUnique": "errors",
    "ObjectStore": "resources",
    "Observed": "model",
    "PlanRefused": "errors",
    "PrepError": "errors",
    "Project": "resources",
    "Quota": "resources",
    "QuotaExceeded": "errors",
    "Resource": "model",
    "ResourceFailed": "errors",
    "Result": "model",
    "Rhcos": "resources",
    "RkeCluster": "resources",
    "RoleAssignment": "resources",
    "Router": "resources",
    "Secret": "secret",
    "SecurityGroup": "resources",
    "SecurityGroupRule": "resources",
    "ServerGroup": "resources",
    "Spec": "spec",
    "SpecError": "errors",
    "Stack": "resources",
    "Status": "model",
    "Step": "model",
    "Subnet": "resources",
    "User": "resources",
    "VolumeTypeQuota": "resources",
    "apply": "api",
    "connect": "cloud",
    "destroy": "api",
    "load_spec": "spec",
    "plan": "api",
    "plan_destroy": "api",
    "plan_rotation": "api",
    "render_clusters": "api",
    "show": "api",
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


# Python makes a submodule an attribute of its package when it is first imported.  The module ``plan`` would replace
# the function of that name at any later time; therefore it is imported above, and ``__getattr__`` returns the function.
del globals()["plan"]
