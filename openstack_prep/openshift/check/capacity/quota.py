"""Quotas: enough of each is free.

Source: Compute, Networking and Block Storage API, quota details: limit, in use and reserved.  A limit of -1
means unlimited; the limits of a server group's members and of a volume's size apply per group and volume.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.errors import CloudError, NotAllowed, NotFound
from openstack_prep.openshift.check.capacity.need import Need, needs
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.resources.compute import quota_stores
from openstack_prep.resources.compute.quota_stores import STORES, Store, unit

SKIPPED = (
    "the installer fails half-way; its own check counts a machine set as one instance, omits the "
    "bootstrap machine, and checks neither floating IPs nor volumes"
)


def quota(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the quotas of which less is free than needed."""
    wanted = needs(context)
    for store in STORES:
        mine = {name: need for name, need in wanted.items() if quota_stores.store_of(name) is store}
        if mine:
            yield from _in_store(context, store, mine)


def _in_store(context: CheckContext, store: Store, wanted: Mapping[str, Need]) -> Iterator[Diagnostic]:
    try:
        answer = quota_stores.read(context.cloud, store, context.cloud.project_id)
    except CloudError as error:
        names = ", ".join(f"{need.number}{unit(name)} {name}" for name, need in wanted.items())
        hidden = isinstance(error, NotAllowed | NotFound)
        yield Diagnostic(
            code="quota.unreadable",
            where="quota",
            what=f"could not be read: {error}",
            why=f"the cluster needs {names}; the installer's own check "
            + ("is skipped, too" if hidden else "fails, too"),
            fix=f"openstack quota show --usage {context.cloud.project_id}  # as an administrator",
            status=Status.UNKNOWN if hidden else Status.ERROR,
        )
        return
    for name, need in wanted.items():
        current = quota_stores.quota_usage(name, answer)
        if current is not None and not current.allows(need.number):
            yield _short(context, name, need, current)


def _short(context: CheckContext, name: str, need: Need, current: quota_stores.QuotaUsage) -> Diagnostic:
    suffix = unit(name)
    words = quota_stores.set_command(name, current.used + need.number, context.cloud.project_id)
    return Diagnostic(
        code="quota.short",
        where=f"quota.{name}",
        what=f"{need.number}{suffix} are needed ({need.parts}), {current.left} of {current.limit}{suffix} are free",
        why=SKIPPED,
        fix=f"{shlex.join(words)}  # as an administrator; or set quota in the spec, which otherwise resets it",
    )
