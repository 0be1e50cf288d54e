"""Glance's limits: the installer's uploads fit.

Source: Image API v2.14 "Quota usage" (Xena): limit and usage, sizes in MiB; older ones, and those without
limits in Keystone, report nothing.  OpenShift installer docs/source: an image of RHCOS for each cluster, unless
clusterOSImage names one; the bootstrap machine's Ignition config since 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import NotFound
from openstack_prep.openshift.check.context import CheckContext

IGNITION_SINCE = 4
RHCOS = 2400  # MiB, about


def image_limits(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the limits that the installer's uploads exceed."""
    named = context.cluster.cluster_os_image
    uploads = named is None or "://" in named
    ignition = context.release >= IGNITION_SINCE
    needed = {"image_count_total": uploads + ignition, "image_size_total": RHCOS * uploads}
    usage = _usage(context)
    for name, need in needed.items():
        if name not in usage or usage[name]["limit"] == -1:
            continue
        limit, used = usage[name]["limit"], usage[name]["usage"]
        if limit - used < need:
            unit = " MiB" if name == "image_size_total" else ""
            yield Diagnostic(
                code="quota.short",
                where=f"quota.{name}",
                what=f"{need}{unit} are needed, {max(0, limit - used)} of {limit}{unit} are free",
                why="Glance refuses the installer's upload, and the installer stops",
                fix=f"openstack limit list --service glance --project {context.cloud.project_id}"
                f"  # as an administrator; then limit set --resource-limit {used + need} with its id",
            )


def _usage(context: CheckContext) -> Mapping[str, Mapping[str, int]]:
    try:
        usage: Mapping[str, Mapping[str, int]] = context.cloud.image.get("/info/usage")["usage"]
    except NotFound:  # an older Glance
        return {}
    return usage
