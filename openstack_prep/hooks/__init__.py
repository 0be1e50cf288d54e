"""What to call before, around and after other tools' work.

from openstack_prep import connect, hooks

ready = hooks.pre_ipi(connect("admin"), "ocp4.yaml")
ready.raise_for_problems()
outcome = hooks.ipi(["openshift-install", "create", "cluster"], ready=ready)
outcome.raise_for_problems()
"""

from openstack_prep.hooks.address_pairs import Sync
from openstack_prep.hooks.cleanup import cleanup
from openstack_prep.hooks.installation import InstallOptions, Outcome, Wishes
from openstack_prep.hooks.ipi import ipi
from openstack_prep.hooks.post_ipi import post_ipi
from openstack_prep.hooks.pre_ipi import NotReady, Ready, pre_ipi
from openstack_prep.hooks.reinstallation import start_over
from openstack_prep.hooks.wait_for import ClusterPort, wait_for
from openstack_prep.openshift.cluster import Metadata
from openstack_prep.openshift.verify import ClusterOptions, Verification, verify

__all__ = [
    "ClusterOptions",
    "ClusterPort",
    "InstallOptions",
    "Metadata",
    "NotReady",
    "Outcome",
    "Ready",
    "Sync",
    "Verification",
    "Wishes",
    "cleanup",
    "ipi",
    "post_ipi",
    "pre_ipi",
    "start_over",
    "verify",
    "wait_for",
]
