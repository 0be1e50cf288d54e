"""``exposures show``: what OpenStack, the resolver and the files show of the paths to a spec's exposures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from openstack_prep.base.errors import Mistake, NotFound, SpecError
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.service import Service
from openstack_prep.core.model import Resource
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.machine_pairs import MachinePairs
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.paths.hops import View, hops, name_to_resolve
from openstack_prep.exposures.paths.recordsets import VisibleRecordset
from openstack_prep.exposures.paths.report import Path, Report
from openstack_prep.exposures.paths.running import Running
from openstack_prep.exposures.virtualization import VisibleNodes
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.openshift.verify.chain import Chain
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.dns.recordsets import RecordsetRecord
from openstack_prep.resources.lists.by_id import list_by_id


def look(
    run: CloudRun,
    resources: Sequence[Resource],
    *,
    spec: str,
    path: str,
    hosts: FilePath | None,
    running: Running | None = None,
) -> Report:
    """Return the exposures of a spec, hop by hop; only reads.

    ``resources`` are resolved. ``path`` is the spec's file, for commands; ``hosts`` a hosts file to read before the
    resolver; ``running`` is what was read of one of the clusters. Raises SpecError if the spec has no exposed cluster,
    or not the one that runs, and CloudError.
    """
    clusters = [each for each in resources if isinstance(each, ExposedCluster)]
    if not clusters:
        raise SpecError([Mistake(path, "the spec has no exposed_clusters", "declare exposed_clusters and exposures")])
    runs = _running_one(clusters, running, path) if running else None
    placed = {each.key: _placed(run, each) for each in clusters}
    names = {name_to_resolve(one, name) for each in placed.values() for one in each for name in one.exposure.names}
    answers = resolve(names, hosts=hosts) if names else {}
    seen = _recordsets(
        run, resources, {name for each in placed.values() for one in each for name in one.exposure.names}
    )
    paths = [
        _path(one, view)
        for cluster in clusters
        for view in (
            replace(
                _view(run, cluster, path, answers, _paired(run, cluster, resources)),
                recordsets=seen,
                placed=placed[cluster.key],
                running=running if cluster is runs else None,
            ),
        )
        for one in placed[cluster.key]
    ]
    return Report(spec=spec, paths=tuple(paths))


def _running_one(clusters: Sequence[ExposedCluster], running: Running, path: str) -> ExposedCluster:
    """Return the cluster of the spec that was read; raises SpecError if the name does not tell which one."""
    named = [each for each in clusters if running.cluster in (None, each.name)]
    if len(named) == 1:
        return named[0]
    names = ", ".join(each.name for each in clusters)
    what = f"the spec has several exposed_clusters ({names})" if named else f"the spec has no cluster {running.cluster}"
    raise SpecError([Mistake(path, what, f"name the one of --kubeconfig with --cluster: {names}")])


def _placed(run: CloudRun, cluster: ExposedCluster) -> list[Placed]:
    return [each.placed(run.look(each), cluster.public_address(run, each)) for each in cluster.exposures]


def _path(placed: Placed, view: View) -> Path:
    exposure = placed.exposure
    return Path(
        placed=placed, chain=Chain(name=exposure.name, target=str(exposure.target), links=tuple(hops(placed, view)))
    )


def _paired(run: CloudRun, cluster: ExposedCluster, resources: Sequence[Resource]) -> list[str]:
    """Return the exposures of a cluster's virtual machines for which the spec declares address pairs itself."""
    pairs = cluster.of_project(each for each in resources if isinstance(each, MachinePairs))
    return [name for each in pairs if each.cluster == cluster.name for name in each.declared(run)]


def _view(
    run: CloudRun, cluster: ExposedCluster, path: str, answers: Mapping[str, Any], paired: Collection[str]
) -> View:
    observed = run.look(cluster)
    drift = tuple(sorted(observed.values["drift"])) if observed else None
    ports, floating_ips = _of_project(run, cluster, "ports"), _of_project(run, cluster, "floatingips")
    nodes = _nodes(run, cluster, ports)
    groups = {group for node in nodes or () for group in node["security_groups"]}
    return View(
        spec=path,
        cluster=cluster,
        nodes=nodes,
        groups=list_by_id(run.admin.network, "security-groups", groups),
        around_nodes=_around(run, cluster, nodes, paired),
        floating_ips=floating_ips,
        answers=answers,
        file_drift=drift,
    )


def _recordsets(run: CloudRun, resources: Sequence[Resource], names: Collection[str]) -> list[VisibleRecordset]:
    """Return the recordsets of the spec with some names."""
    declared = [each for each in resources if isinstance(each, Recordset) and each.name in names]
    found = [(each, run.look(each)) for each in declared]
    return [VisibleRecordset(each, one.record_as(RecordsetRecord) if one else None) for each, one in found]


def _of_project(run: CloudRun, cluster: ExposedCluster, collection: str) -> Sequence[Raw]:
    """Return all ports or floating IPs of the cluster's project; none if it does not exist yet."""
    project_id = run.find_project_id(cluster.owner)

    def read() -> Sequence[Raw]:
        return list(run.admin.network.list(f"/{collection}", collection, project_id=project_id))

    return run.read_once((look, collection, project_id), read) if project_id else ()


def _nodes(run: CloudRun, cluster: ExposedCluster, ports: Sequence[Raw]) -> Sequence[Raw] | None:
    """Return the ports of the nodes; None if they are no servers of this cloud."""
    if cluster.nodes is None:
        return None
    pairs: AddressPairs = cluster.sibling(AddressPairs, cluster.name, **cluster.nodes.choice)
    chosen = {each.id for each in pairs.chosen(run) or ()}
    return [each for each in ports if each["id"] in chosen]


def trunks(neutron: Service) -> Sequence[Raw] | None:
    """Return all visible trunks; None if Neutron has no trunks (extension trunk)."""
    try:
        return list(neutron.list("/trunks", "trunks"))
    except NotFound:
        return None


def _around(
    run: CloudRun, cluster: ExposedCluster, nodes: Sequence[Raw] | None, paired: Collection[str]
) -> VisibleNodes | None:
    """Return the networks that virtual machines on bridges are attached to by way of the nodes."""
    settings = cluster.virtualization
    if settings is None or not nodes:
        return None
    neutron = run.admin.network
    wanted = [each.openstack_network for each in settings.networks if each.openstack_network]
    by: list[Values] = [{field: wanted} for field in ("name", "id")] if wanted else []
    networks = {each["id"]: each for query in by for each in neutron.list("/networks", "networks", **query)}
    here: Values = {"network_id": sorted(networks)}
    tagged = any(each.vlan for each in settings.networks) or any(each.vlan for each in settings.bridges)
    return VisibleNodes(
        cloud=run.admin.name,
        declared=paired,
        servers={each["device_id"]: each["name"] or each["device_id"] for each in nodes if each["device_id"]},
        networks=list(networks.values()),
        subnets=list(neutron.list("/subnets", "subnets", **here)) if networks else [],
        ports=[*nodes, *(neutron.list("/ports", "ports", **here) if networks else ())],
        trunks=trunks(neutron) if tagged else [],
    )
