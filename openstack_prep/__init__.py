"""Take an OpenStack project from nothing to ready for a cluster: plan, apply, destroy.

import openstack_prep as prep

cloud = prep.connect("admin")
report = prep.apply(cloud, prep.load_spec("ocp4.yaml"))
report.raise_for_failures()
"""

from openstack_prep.api import (
    apply,
    destroy,
    plan,
    plan_destroy,
    show,
)
from openstack_prep.cloud import Cloud, connect
from openstack_prep.errors import (
    ApplyFailed,
    CloudError,
    ConfigError,
    DownloadError,
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
from openstack_prep.plan import Plan, Report
from openstack_prep.resources import (
    ApplicationCredential,
    CloudsEntry,
    Domain,
    EnvFile,
    ExternalNetwork,
    Flavor,
    FloatingIP,
    Image,
    InstallConfig,
    Keypair,
    Network,
    ObjectStore,
    Project,
    Quota,
    RoleAssignment,
    Router,
    SecurityGroup,
    SecurityGroupRule,
    ServerGroup,
    Subnet,
    User,
    VolumeTypeQuota,
)
from openstack_prep.secret import Secret
from openstack_prep.spec import Spec, load_spec
from openstack_prep.version import __version__

__all__ = [
    "Action",
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
    "Image",
    "InstallConfig",
    "Key",
    "Keypair",
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
    "RoleAssignment",
    "Router",
    "Secret",
    "SecurityGroup",
    "SecurityGroupRule",
    "ServerGroup",
    "Spec",
    "SpecError",
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
    "show",
]
