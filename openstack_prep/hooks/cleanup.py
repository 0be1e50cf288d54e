"""After ``openshift-install destroy cluster``, or instead of it: find and delete what is left of a cluster."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.core import executor, observing, planner
from openstack_prep.core.model import Action, OwnershipTag, Step
from openstack_prep.core.plan import Plan, Report
from openstack_prep.openshift import cluster as openshift
from openstack_prep.openshift.installer.leftovers import Owned, infra_ids
from openstack_prep.openshift.leftover import LISTED, Leftover, listed
from openstack_prep.resources.addresses.floating_ip import name_of
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, exclusive
from openstack_prep.verbs.live_plan import LivePlan

OPTIONAL = ("container", "load_balancer", "volume", "volume_snapshot")
"""Services that a project's user may have no permission to list; then the cluster has no resources there."""

_log = logging.getLogger(__name__)

Lists = Mapping[str, Sequence[Raw]]


def cleanup(
    cloud: Cloud,
    *,
    metadata: str | Path | None = None,
    infra_id: str | None = None,
    release: str | None = None,
    jobs: int = executor.JOBS,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Delete what is left of a cluster in the project that the connection is scoped to.

    Floating IPs of the user are detached from the cluster's ports and kept; those that the spec ``release`` manages,
    and that nothing else uses, are released. Raises SpecError, CloudError, and PlanRefused if resources of others
    depend on the cluster's. A warning is logged for resources that may not be listed. ``lock_timeout``: seconds to wait
    for another run for the same cluster, then LeaseHeld is raised.
    """
    found, warnings = plan_cleanup(cloud, openshift.cluster(metadata, infra_id).infra_id, release=release, jobs=jobs)
    for each in warnings:
        _log.warning("%s", each)
    return api.apply(cloud, found, jobs=jobs, agreed=False, lock_timeout=lock_timeout)


def plan_cleanup(
    cloud: Cloud, infra_id: str, *, release: str | None = None, jobs: int = executor.JOBS
) -> tuple[LivePlan, list[str]]:
    """Return the plan that deletes what is left of a cluster, and notes on what could not be listed or found.

    Under the lease it is created again if another run may have been at work.
    """
    cloud.allow_parallel(jobs).authenticate()
    run, warnings = CloudRun(cloud, OwnershipTag(infra_id)), list[str]()
    seen = exclusive.look(run, infra_id, ())

    def make() -> Plan:
        lists, unread = _read(run, infra_id, jobs)
        warnings.extend(unread)
        if release and not any(_is_of(release, raw) for raw in lists["floating_ip"]):
            warnings.append(f"no floating IP in project {cloud.project_name} has the ownership tag of spec {release}")
        leftovers = _named(list(_leftovers(lists, infra_id, release)))
        observed = {each.key: each.observe(raw) for each, raw in leftovers}
        made = planner.plan_destroy(infra_id, [each for each, _ in leftovers], observed)
        refusals = tuple(observing.examine_deletes(run, made, jobs=jobs))
        return replace(made, steps=tuple(map(_explained, made.steps)), refusals=refusals)

    def remake() -> LivePlan:
        return plan_cleanup(cloud, infra_id, release=release, jobs=jobs)[0]

    made = exclusive.attempt(run, seen, "destroy", make)
    nothing = Spec(infra_id, (), checked=True)  # no spec declares the remaining resources of a cluster
    return LivePlan.of(made, wanted=nothing, run=run, lease=seen, remake=remake), warnings


def remaining(cloud: Cloud, infra_id: str, *, jobs: int = executor.JOBS) -> tuple[Leftover, ...]:
    """Return what exists of a cluster in the project that the connection is scoped to; raises CloudError.

    Of resources that may not be listed there is nothing, as for ``cleanup``.
    """
    cloud.allow_parallel(jobs).authenticate()
    lists, _ = _read(CloudRun(cloud, OwnershipTag(infra_id)), infra_id, jobs)
    return tuple(each for each, _ in _leftovers(lists, infra_id, None))


def _read(run: CloudRun, infra_id: str, jobs: int) -> tuple[Lists, list[str]]:
    """Read the lists of all kinds in parallel."""
    unread: list[str] = []

    def read(thing: str) -> list[Values]:
        try:
            return listed(run, thing, infra_id)
        except NotAllowed as error:
            if thing not in OPTIONAL:
                raise
            unread.append(f"cannot list the {thing.replace('_', ' ')} resources, which may remain: {error}")
            return []

    with run.admin.reading(), ThreadPoolExecutor(jobs) as pool:
        return dict(zip(LISTED, pool.map(read, LISTED), strict=True)), unread


def _leftovers(lists: Lists, infra_id: str, release: str | None) -> Iterator[tuple[Leftover, Raw]]:
    """Yield resources that belong to the cluster; of the user's own resources only the cluster's changes to them."""
    known = frozenset(infra_ids(raw for raws in lists.values() for raw in raws))
    others = frozenset(each for each in known if each.startswith(f"{infra_id}-"))
    owned = Owned(infra_id, others)
    mine = {thing: [raw for raw in raws if owned.owns(thing, raw)] for thing, raws in lists.items()}
    for thing, raws in mine.items():
        for raw in raws:
            yield _leftover(thing, raw, infra_id), raw
    ports = {raw["id"] for raw in mine["port"]}
    for raw in lists["floating_ip"]:
        marked = release is not None and _is_of(release, raw)
        if raw in mine["floating_ip"]:
            continue
        if marked and (raw["port_id"] is None or raw["port_id"] in ports):
            yield replace(_leftover("floating_ip", raw, infra_id), detail=raw["port_id"] or "", released=True), raw
        elif raw["port_id"] in ports:
            yield replace(_leftover("floating_ip_attachment", raw, infra_id), detail=raw["port_id"]), raw
    tag = f"{infra_id}-primaryClusterNetwork"
    for raw in lists["network"]:
        if tag in raw["tags"] and raw not in mine["network"]:
            touched = _leftover("tag", raw, infra_id)
            yield replace(touched, label=f"{tag} on {touched.label}", detail=tag), raw


def _is_of(spec: str, floating_ip: Raw) -> bool:
    """Whether a floating IP has the ownership tag of a spec."""
    return name_of(OwnershipTag(spec), FloatingIPRecord.read(floating_ip)) is not None


def _leftover(thing: str, raw: Raw, infra_id: str) -> Leftover:
    label = raw.get("floating_ip_address") or raw.get("name") or raw["id"]
    return Leftover(thing=thing, id=raw["id"], label=label, infra_id=infra_id)


def _named(
    leftovers: list[tuple[Leftover, Raw]],
) -> list[tuple[Leftover, Raw]]:
    """Return the same resources, with ids in the labels of those that share a name."""
    counts = Counter(each.key for each, _ in leftovers)
    return [
        (replace(each, label=f"{each.label} {each.id}") if counts[each.key] > 1 else each, raw)
        for each, raw in leftovers
    ]


def _explained(step: Step) -> Step:
    kept = {"floating_ip_attachment": "the floating IP itself is kept", "tag": "the network itself is kept"}
    return replace(step, reason=kept.get(step.key.kind, "")) if step.action is Action.DELETE else step
