"""Download, verify and unpack ``openshift-install``, ``oc`` and ``kubectl``; what is up to date is left alone."""

from openstack_prep.openshift.tools.fetching import Tool, fetch_tools
from openstack_prep.openshift.tools.layout import MIRROR, NAMES, Wanted

__all__ = ["MIRROR", "NAMES", "Tool", "Wanted", "fetch_tools"]
