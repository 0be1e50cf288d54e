"""Quotas: what is free of each is enough.

Source: Compute, Networking and Block Storage API, quota details: limit, in use and reserved.  A limit of -1
is none; that of members in a server group, and of a volume's size, is for each one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.errors import CloudError, NotAllowed, NotFound
from openstack_prep.openshift.check.capacity.need import Need, needs
from openstack_prep.openshift.check.scene import Scene
from openstack_prep.resources.compute import quota_stores
from openstack_prep.resources.compute.quota_stores import STORES, Store, unit

SKIPPED = (
    "the installer fails half-way; its own check counts a machine set as one instance, leaves the bootstrap "
    "machine out, and looks at neither floating IPs nor volumes"
)


def quota(scene: Scene) -> Iterator[Diagnostic]:
    """Yield each quota of which less is free than needed."""
    wanted = needs(scene)
    for store in STORES:
        mine = {name: need for name, need in wanted.items() if quota_stores.store_of(name) is store}
        if mine:
            yield from _in_store(scene, store, mine)


def _in_store(scene: Scene, store: Store, wanted: Mapping[str, Need]) -> Iterator[Diagnostic]:
    try:
        answer = quota_stores.read(scene.cloud, store, scene.cloud.project_id)
    except CloudError as error:
        names = ", ".join(f"{need.number}{unit(name)} {name}" for name, need in wanted.items())
        hidden = isinstance(error, NotAllowed | NotFound)
        yield Diagnostic(
            code="quota.unreadable",
            where="quota",
            what=f"could not be read: {error}",
            why=f"needed are {names}; the installer's own check " + ("is skipped, too" if hidden else "fails, too"),
            fix=f"openstack quota show --usage {scene.cloud.project_id}  # as an administrator",
            status=Status.UNKNOWN if hidden else Status.ERROR,
        )
        return
    for name, need in wanted.items():
        there = quota_stores.quotum(name, answer)
        if there is not None and not there.allows(need.number):
            yield _lacking(scene, name, need, there)


def _lacking(scene: Scene, name: str, need: Need, there: quota_stores.Quotum) -> Diagnostic:
    of = unit(name)
    words = quota_stores.set_command(name, there.used + need.number, scene.cloud.project_id)
    return Diagnostic(
        code="quota.short",
        where=f"quota.{name}",
        what=f"{need.number}{of} are needed ({need.parts}), {there.left} of {there.limit}{of} are free",
        why=SKIPPED,
        fix=f"{shlex.join(words)}  # as an administrator; or quota: in the spec, which else sets it back",
    )
