"""Download, verify and unpack ``openshift-install``, ``oc`` and ``kubectl``; what is up to date is left alone."""

from openstack_prep.openshift.tools.fetching import Tool, fetch_tools
from openstack_prep.openshift.tools.layout import MIRROR, NAMES, ToolRequest

__all__ = ["MIRROR", "NAMES", "Tool", "ToolRequest", "fetch_tools"]
