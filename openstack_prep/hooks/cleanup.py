"""After ``openshift-install destroy cluster``, or instead of it: find and delete what is left of a cluster.

Of a cluster that the OpenShift installer did not create, this is what its Services and claims have created.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from openstack_prep.base.errors import Mistake, NotAllowed, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.clusters import cloud_provider_names as provider
from openstack_prep.core import executor, planner
from openstack_prep.core.model import Action, Key, OwnershipTag, Step
from openstack_prep.core.plan import Plan, Report
from openstack_prep.openshift import cluster as openshift
from openstack_prep.openshift.folder import Folder
from openstack_prep.openshift.leftover import LISTED, ClusterRecord, Leftover, Owned, infra_ids, listed, of_kind
from openstack_prep.resources.lists.load_balancers import LoadBalancerRecord
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, NetworkRecord
from openstack_prep.resources.lists.ownership import name_of
from openstack_prep.resources.lists.volumes import VolumeRecord
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, exclusion
from openstack_prep.verbs.opening import LivePlan

OPTIONAL = ("container", "load_balancer", "volume", "volume_snapshot")
"""Services that a project's user may have no permission to list; then the cluster has no resources there."""

_log = logging.getLogger(__name__)

LeftRecord = tuple[Leftover, ClusterRecord]
Lists = Mapping[str, Sequence[ClusterRecord]]


def cleanup(
    cloud: Cloud,
    *,
    metadata: str | Path | None = None,
    infra_id: str | None = None,
    cluster: str | None = None,
    release: str | None = None,
    allow_loss: Collection[str] = (),
    jobs: int = executor.JOBS,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Delete what is left of a cluster in the project that the connection ``cloud`` is scoped to.

    ``metadata`` is the path of its metadata.json, or its folder; ``infra_id`` identifies it without one. ``jobs`` is
    how many requests are sent at a time. ``cluster`` is the name that Kubernetes knows a cluster by, beside neither
    ``metadata`` nor ``infra_id``: only what its Services and claims have created is deleted. Floating IPs of the user
    are detached from the cluster's ports and kept; those that the spec ``release`` manages, and that nothing else uses,
    are released. ``allow_loss`` names what the deletions may take from others, as the refusal does. Raises SpecError,
    CloudError, ConfigError if ``ipi`` is at work in the folder of ``metadata``, and PlanRefused if resources of others
    depend on the cluster's, or its machines still run. A warning is logged for resources that may not be listed.
    ``lock_timeout``: seconds to wait for another run for the same cluster, then LeaseHeld is raised.
    """
    if cluster is not None and (metadata or infra_id):
        fix = "give the cluster's name, its metadata.json or its infraID"
        raise SpecError([Mistake("cluster", "is given beside metadata or infra_id", fix)])
    with Folder(openshift.find_metadata(metadata).parent).locked() if metadata else nullcontext():
        name = openshift.cluster(metadata, infra_id).infra_id if cluster is None else cluster
        found, warnings = plan_cleanup(
            cloud, name, installer=cluster is None, release=release, allow_loss=allow_loss, jobs=jobs
        )
        for warning in warnings:
            _log.warning("%s", warning)
        return api.apply(cloud, found, jobs=jobs, agreed=False, lock_timeout=lock_timeout)


def plan_cleanup(
    cloud: Cloud,
    name: str,
    *,
    installer: bool = True,
    release: str | None = None,
    allow_loss: Collection[str] = (),
    jobs: int = executor.JOBS,
) -> tuple[LivePlan, list[str]]:
    """Return the plan that deletes what is left of a cluster, and notes on what could not be listed or found.

    ``name`` is an infraID, or without ``installer`` the name that Kubernetes knows the cluster by. Under the lease the
    plan is created again if another run may have been at work.
    """
    if not installer:
        _check_options(name, release)
    cloud.allow_parallel(jobs).authenticate()
    run, warnings = CloudRun(cloud, OwnershipTag(name)), list[str]()
    seen = exclusion.look(run, name, ())

    def make() -> Plan:
        lists, unread = _read(run, name, jobs, LISTED if installer else provider.THINGS)
        warnings.extend(unread)
        if release and not any(
            _is_of(release, floating_ip) for floating_ip in of_kind(FloatingIPRecord, lists["floating_ip"])
        ):
            warnings.append(f"no floating IP in project {cloud.project_name} has the ownership tag of spec {release}")
        if installer:
            leftovers = _named(list(_leftovers(lists, name, release)))
        else:
            leftovers = _named(list(_of_kubernetes(lists, name)))
            warnings.extend(_doubts(lists, name))
        warnings.extend(_restored(lists, name))
        observed = {each.key: each.observe(record) for each, record in leftovers}
        made = planner.plan_destroy(name, [each for each, _ in leftovers], observed)
        made = api.with_losses(run, made, allow_loss, jobs=jobs)
        warnings.extend(made.warnings)
        notes = {each.key: _note(each, record) for each, record in leftovers}
        return replace(made, steps=tuple(_explained(step, notes) for step in made.steps), warnings=())

    def remake() -> LivePlan:
        return plan_cleanup(cloud, name, installer=installer, release=release, allow_loss=allow_loss, jobs=jobs)[0]

    made = exclusion.attempt(run, seen, "destroy", make)
    nothing = Spec(name, (), checked=True)  # no spec declares the remaining resources of a cluster
    return LivePlan.of(made, wanted=nothing, run=run, lease=seen, remake=remake), warnings


def _check_options(cluster: str, release: str | None) -> None:
    if not cluster:
        raise SpecError([Mistake("cluster", "is empty", "give the cluster's name, as in kube_service_NAME_...")])
    if release is not None:
        raise SpecError(
            [Mistake("release", "applies to an infraID only", "leave it out; destroy deletes what a spec created")]
        )


def remaining(cloud: Cloud, infra_id: str, *, jobs: int = executor.JOBS) -> tuple[Leftover, ...]:
    """Return what exists of a cluster in the project that the connection is scoped to; raises CloudError.

    Of resources that may not be listed there is nothing, as for ``cleanup``.
    """
    cloud.allow_parallel(jobs).authenticate()
    lists, _ = _read(CloudRun(cloud, OwnershipTag(infra_id)), infra_id, jobs, LISTED)
    return tuple(each for each, _ in _leftovers(lists, infra_id, None))


def _read(run: CloudRun, name: str, jobs: int, things: Sequence[str]) -> tuple[Lists, list[str]]:
    """Read the lists of these kinds in parallel."""
    unread: list[str] = []

    def read(thing: str) -> Sequence[ClusterRecord]:
        try:
            return listed(run, thing, name)
        except NotAllowed as error:
            if thing not in OPTIONAL:
                raise
            unread.append(f"cannot list the {thing.replace('_', ' ')} resources, which may remain: {error}")
            return []

    with run.admin.reading(), ThreadPoolExecutor(jobs) as pool:
        return dict(zip(things, pool.map(read, things), strict=True)), unread


def _leftovers(lists: Lists, infra_id: str, release: str | None) -> Iterator[LeftRecord]:
    """Yield resources that belong to the cluster; of the user's own resources only the cluster's changes to them."""
    known = frozenset(infra_ids(record for records in lists.values() for record in records))
    others = frozenset(each for each in known if each.startswith(f"{infra_id}-"))
    owned = Owned(infra_id, others)
    mine = {thing: [each for each in records if owned.owns(thing, each)] for thing, records in lists.items()}
    for thing, records in mine.items():
        for record in records:
            yield replace(_leftover(thing, record, infra_id), belongs=partial(owned.owns, thing)), record
    created = list(_created_addresses(lists, mine["load_balancer"], infra_id))
    yield from created
    known_addresses = [*mine["floating_ip"], *(record for _, record in created)]
    ports = {port.id for port in mine["port"]}
    for address in of_kind(FloatingIPRecord, lists["floating_ip"]):
        if address in known_addresses:
            continue
        is_free = address.port_id is None or address.port_id in ports
        if release is not None and is_free and _is_of(release, address):
            yield replace(_released(address, infra_id), belongs=partial(_is_of, release)), address
        elif address.port_id in ports:
            yield replace(_leftover("floating_ip_attachment", address, infra_id), detail=address.port_id), address
    tag = f"{infra_id}-primaryClusterNetwork"
    for network in of_kind(NetworkRecord, lists["network"]):
        if tag in network.tags and network not in mine["network"]:
            touched = _leftover("tag", network, infra_id)
            yield replace(touched, label=f"{tag} on {touched.label}", detail=tag), network


def _of_kubernetes(lists: Lists, cluster: str) -> Iterator[LeftRecord]:
    """Yield what the cloud provider and the CSI driver of a cluster have created."""

    def belongs(record: ClusterRecord) -> bool:
        return provider.cluster_of(record) == cluster

    things = [thing for thing in lists if thing != "floating_ip"]
    mine = {thing: list(filter(belongs, lists[thing])) for thing in things}
    for thing, records in mine.items():
        for record in records:
            yield replace(_leftover(thing, record, cluster), belongs=belongs), record
    yield from _created_addresses(lists, mine["load_balancer"], cluster)


def _created_addresses(lists: Lists, balancers: Sequence[ClusterRecord], cluster: str) -> Iterator[LeftRecord]:
    """Yield floating IPs that the cloud provider has created, unless they serve anything but these load balancers."""
    served = {balancer.vip_port_id for balancer in of_kind(LoadBalancerRecord, balancers)}
    for address in of_kind(FloatingIPRecord, lists["floating_ip"]):
        creator = provider.cluster_of(address)
        if creator and (address.port_id in served or (address.port_id is None and creator == cluster)):
            left = replace(_released(address, cluster), belongs=lambda record: provider.cluster_of(record) is not None)
            yield left, address


def _released(floating_ip: FloatingIPRecord, cluster: str) -> Leftover:
    return replace(_leftover("floating_ip", floating_ip, cluster), detail=floating_ip.port_id or "", released=True)


def _doubts(lists: Lists, cluster: str) -> Iterator[str]:
    """Yield why the name of a cluster may mean too much or too little."""
    if cluster == provider.DEFAULT:
        yield f"{cluster} is the name of every cluster that was given none; this deletes resources of all of them"
    nameless = [
        volume.name or volume.id
        for volume in of_kind(VolumeRecord, lists["volume"])
        if volume.metadata.get(provider.CSI) == ""
    ]
    if nameless:
        yield f"these volumes are kept, because their CSI driver was given no --cluster: {', '.join(sorted(nameless))}"


def _restored(lists: Lists, cluster: str) -> Iterator[str]:
    """Yield that volumes with the cluster's name in their metadata are kept, because they are copies of its volumes.

    The CSI driver restores claims from backups in the same way, so nothing tells these from what a person has rescued.
    """
    volumes = [volume for volume in of_kind(VolumeRecord, lists.get("volume", ())) if volume.is_restored]
    names = sorted(volume.name or volume.id for volume in volumes if cluster in volume.metadata.values())
    if names:
        yield f"these volumes are kept, because they were restored from a backup: {', '.join(names)}"


def _is_of(spec: str, floating_ip: FloatingIPRecord) -> bool:
    """Whether a floating IP has the ownership tag of a spec."""
    return name_of(OwnershipTag(spec), floating_ip) is not None


def _leftover(thing: str, record: ClusterRecord, infra_id: str) -> Leftover:
    label = record.address if isinstance(record, FloatingIPRecord) else record.name or record.id
    return Leftover(thing=thing, id=record.id, label=label, infra_id=infra_id)


def _named(
    leftovers: list[LeftRecord],
) -> list[LeftRecord]:
    """Return the same resources, with ids in the labels of those that share a name."""
    counts = Counter(each.key for each, _ in leftovers)
    return [
        (replace(each, label=f"{each.label} {each.id}") if counts[each.key] > 1 else each, record)
        for each, record in leftovers
    ]


def _note(left: Leftover, record: ClusterRecord) -> str:
    kept = {"floating_ip_attachment": "the floating IP itself is kept", "tag": "the network itself is kept"}
    claim = provider.claim_of(record) if isinstance(record, VolumeRecord) else ""
    return f"claim {claim}" if claim else kept.get(left.thing, "")


def _explained(step: Step, notes: Mapping[Key, str]) -> Step:
    return replace(step, reason=notes[step.key]) if step.action is Action.DELETE else step
