"""What to call before and after other tools' work."""

from openstack_prep.hooks.post_ipi import post_ipi

__all__ = ["post_ipi"]
