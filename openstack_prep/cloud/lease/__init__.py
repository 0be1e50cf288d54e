"""One run at a time per spec: a lease in the description of the project's default security group.

Neutron changes the description only if ``If-Match: revision_number=N`` still matches, and answers 412 otherwise: a
compare-and-swap that every member of a project may do, on a group that every project has. Source: Neutron 29.0.0,
services/revisions/revision_plugin.py, db/securitygroups_db.py (``_ensure_default_security_group``: listing a project's
groups creates the default one), conf/policies/security_group.py.
"""

from openstack_prep.cloud.lease.carrier import Sight, Vanished, look, unlock
from openstack_prep.cloud.lease.lease import Lease
from openstack_prep.cloud.lease.waiting import LOCK_TIMEOUT, Held, held, is_outdated

__all__ = ["LOCK_TIMEOUT", "Held", "Lease", "Sight", "Vanished", "held", "is_outdated", "look", "unlock"]
