"""What to call before and after other tools' work."""

from openstack_prep.hooks.cleanup import cleanup
from openstack_prep.hooks.post_ipi import post_ipi
from openstack_prep.verify import verify

__all__ = ["cleanup", "post_ipi", "verify"]
