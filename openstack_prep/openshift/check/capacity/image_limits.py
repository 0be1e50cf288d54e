"""Glance's limits: the installer's uploads fit.

Source: Image API v2.14 "Quota usage" (Xena): limit and usage, sizes in MiB; older ones, and those without
limits in Keystone, report nothing.  OpenShift installer docs/source: an image of RHCOS for each cluster, unless
clusterOSImage names one; the bootstrap machine's Ignition config since 4.4.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

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
                fix=f"{shlex.join(['openstack', 'limit', *_raise(context, name, used + need)])}  # as an administrator",
            )


def _usage(context: CheckContext) -> Mapping[str, Mapping[str, int]]:
    try:
        usage: Mapping[str, Mapping[str, int]] = context.cloud.image.get("/info/usage")["usage"]
    except NotFound:  # an older Glance
        return {}
    return usage


def _raise(context: CheckContext, name: str, limit: int) -> Sequence[str]:
    """Return the words that raise a limit: that of the project if it has one, or else a new one beside the default.

    Every user sees the limits of the own project, and all defaults (keystone 30.0.0, common/policies/limit.py).
    """
    identity, project_id = context.cloud.identity, context.cloud.project_id
    limits = identity.list("/limits", "limits", resource_name=name)
    own = next((each["id"] for each in limits if each["project_id"] == project_id), None)
    if own is not None:
        return ["set", "--resource-limit", str(limit), own]
    default = identity.list("/registered_limits", "registered_limits", resource_name=name)[0]
    region = ["--region", default["region_id"]] if default["region_id"] else []
    of = ["--project", project_id, "--service", default["service_id"], *region]
    return ["create", *of, "--resource-limit", str(limit), name]
