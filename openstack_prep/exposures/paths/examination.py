"""``exposures show``: from a spec to the state of the paths to its exposures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pathlib import Path as FilePath
from typing import Any

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import DiagnosticStatus, errors, summary
from openstack_prep.base.errors import Mistake, NotFound, SpecError
from openstack_prep.base.raw import Values
from openstack_prep.base.style import columns
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.service import Service
from openstack_prep.core.executor import JOBS
from openstack_prep.core.model import Resource
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.machine_pairs import MachinePairs
from openstack_prep.exposures.paths.hops import Running, View, VisibleRecordset, hops, name_to_resolve
from openstack_prep.exposures.virtualization import VisibleNodes
from openstack_prep.openshift.names.resolver import resolve
from openstack_prep.openshift.verify.chain import Chain, tree
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.dns.recordsets import RecordsetRecord
from openstack_prep.resources.lists.neutron_records import (
    INTERFACES,
    FloatingIPRecord,
    GroupRecord,
    NetworkRecord,
    PortRecord,
    R,
    RouterRecord,
    SubnetRecord,
    TrunkRecord,
    list_by_id,
    list_records,
)
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.spec import Spec
from openstack_prep.verbs.opening import open_run

# --- report -----------------------------------------------------------------------------------


HEADER = ("address", "names", "target", "how", "state")


@dataclass(frozen=True, kw_only=True)
class ExposurePath:
    """One exposure and its path."""

    placed: PlacedExposure
    chain: Chain

    @property
    def state(self) -> str:
        """ok, or how many errors, warnings and unknown results the path has."""
        return summary(self.chain.links).replace("no problems found", "ok")

    def row(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        exposure, placed = self.placed.exposure, self.placed
        address = " -> ".join(filter(None, (placed.public_address, placed.address))) or "-"
        ports = ", ".join(map(str, exposure.ports))
        names = ", ".join(exposure.names) or "-"
        return (address, names, f"{exposure.target} {ports}", exposure.how, self.state)

    def data(self) -> Values:
        """Return it as plain data."""
        exposure, placed = self.placed.exposure, self.placed
        return {
            "name": exposure.name,
            "cluster": exposure.cluster,
            "address": placed.address,
            "mac_address": placed.mac,
            "public_address": placed.public_address,
            "names": list(exposure.names),
            "target": str(exposure.target),
            "ports": list(map(str, exposure.ports)),
            "how": exposure.how,
            "hops": [link.data() for link in self.chain.links],
        }


@dataclass(frozen=True, kw_only=True)
class PathReport:
    """The exposures of a spec."""

    spec: str
    """Name of the spec."""
    paths: tuple[ExposurePath, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no errors; hops whose status is unknown may still be wrong."""
        return not any(errors(path.chain.links) for path in self.paths)

    def data(self) -> Values:
        """Return it as plain data."""
        return {"ok": self.ok, "exposures": [path.data() for path in self.paths]}

    def __str__(self) -> str:
        links = [link for path in self.paths for link in path.chain.links]
        wrong = [
            path for path in self.paths if any(link.status is not DiagnosticStatus.OK for link in path.chain.links)
        ]
        trees = [line for path in wrong for line in ("", *tree(path.chain))]
        rows = [HEADER, *(path.row() for path in self.paths)]
        return "\n".join([*columns(rows), *trees, "", f"{self.spec}: {summary(links)}"])


# --- examination ------------------------------------------------------------------------------


def examination_look(
    run: CloudRun,
    resources: Sequence[Resource],
    *,
    spec: str,
    path: str,
    words: str,
    hosts: FilePath | None,
    running: Running | None = None,
) -> PathReport:
    """Return the exposures of a spec, hop by hop; only reads.

    ``resources`` are resolved. ``path`` is the file of the spec; ``words`` have its options as well, for commands. With
    ``hosts`` a hosts file is read before the resolver; ``running`` is what was read of one of the clusters. Raises
    SpecError if the spec has no exposed cluster, or not the one that runs, and CloudError.
    """
    clusters = [resource for resource in resources if isinstance(resource, ExposedCluster)]
    if not clusters:
        raise SpecError([Mistake(path, "the spec has no exposed_clusters", "declare exposed_clusters and exposures")])
    runs = _running_one(clusters, running, path) if running else None
    placed = {cluster.key: _placed(run, cluster) for cluster in clusters}
    names = {name_to_resolve(one, name) for each in placed.values() for one in each for name in one.exposure.names}
    answers = resolve(names, hosts=hosts) if names else {}
    seen = _recordsets(
        run, resources, {name for each in placed.values() for one in each for name in one.exposure.names}
    )
    ports = [resource for resource in resources if isinstance(resource, Port)]
    paths = [
        _path(one, view)
        for cluster in clusters
        for view in (
            replace(
                _view(run, cluster, words, answers, _paired(run, cluster, resources)),
                declared_ports=[port.name for port in cluster.of_project(ports)],
                recordsets=seen,
                placed=placed[cluster.key],
                unclaimed=frozenset(
                    exposure.name for exposure in cluster.related.exposures if run.look(exposure) is None
                ),
                running=running if cluster is runs else None,
            ),
        )
        for one in placed[cluster.key]
    ]
    return PathReport(spec=spec, paths=tuple(paths))


def _running_one(clusters: Sequence[ExposedCluster], running: Running, path: str) -> ExposedCluster:
    """Return the cluster of the spec that was read; raises SpecError if the name does not tell which one."""
    named = [cluster for cluster in clusters if running.cluster in (None, cluster.name)]
    if len(named) == 1:
        return named[0]
    names = ", ".join(cluster.name for cluster in clusters)
    what = f"the spec has several exposed_clusters ({names})" if named else f"the spec has no cluster {running.cluster}"
    raise SpecError([Mistake(path, what, f"name the one of --kubeconfig with --cluster: {names}")])


def _placed(run: CloudRun, cluster: ExposedCluster) -> list[PlacedExposure]:
    return [
        exposure.placed(run.look(exposure), cluster.public_address(run, exposure))
        for exposure in cluster.related.exposures
    ]


def _path(placed: PlacedExposure, view: View) -> ExposurePath:
    exposure = placed.exposure
    return ExposurePath(
        placed=placed, chain=Chain(name=exposure.name, target=str(exposure.target), links=tuple(hops(placed, view)))
    )


def _paired(run: CloudRun, cluster: ExposedCluster, resources: Sequence[Resource]) -> list[str]:
    """Return the exposures of a cluster's virtual machines for which the spec declares address pairs itself."""
    pairs = cluster.of_project(resource for resource in resources if isinstance(resource, MachinePairs))
    return [name for pair in pairs if pair.cluster == cluster.name for name in pair.declared(run)]


def _view(
    run: CloudRun, cluster: ExposedCluster, words: str, answers: Mapping[str, Any], paired: Collection[str]
) -> View:
    observed = run.look(cluster)
    drift = tuple(sorted(observed.values["drift"])) if observed else None
    ports, floating_ips = _of_project(run, cluster, PortRecord), _of_project(run, cluster, FloatingIPRecord)
    nodes = _nodes(run, cluster, ports)
    groups = {group for node in nodes or () for group in node.security_groups}
    around = {node.network_id for node in nodes or ()}
    on_networks = [port for port in ports if port.network_id in around]
    routers = {floating_ip.router_id for floating_ip in floating_ips if floating_ip.router_id}
    routers |= {port.device_id for port in on_networks if port.device_owner in INTERFACES}
    return View(
        spec=words,
        cloud=run.admin.name,
        cluster=cluster,
        nodes=nodes,
        on_networks=on_networks,
        groups=list_by_id(run.admin.network, GroupRecord, groups),
        around_nodes=_around(run, cluster, nodes, paired),
        floating_ips=floating_ips,
        routers=list_by_id(run.admin.network, RouterRecord, routers),
        answers=answers,
        file_drift=drift,
    )


def _recordsets(run: CloudRun, resources: Sequence[Resource], names: Collection[str]) -> list[VisibleRecordset]:
    """Return the recordsets of the spec with some names."""
    declared = [resource for resource in resources if isinstance(resource, Recordset) and resource.name in names]
    found = [(recordset, run.look(recordset)) for recordset in declared]
    return [VisibleRecordset(each, one.record_as(RecordsetRecord) if one else None) for each, one in found]


def _of_project(run: CloudRun, cluster: ExposedCluster, kind: type[R]) -> Sequence[R]:
    """Return all ports or floating IPs of the cluster's project; none if it does not exist yet."""
    project_id = run.find_project_id(cluster.owner)

    def read() -> Sequence[R]:
        return list_records(run.admin.network, kind, project_id=project_id)

    return run.read_once((examination_look, kind, project_id), read) if project_id else ()


def _nodes(run: CloudRun, cluster: ExposedCluster, ports: Sequence[PortRecord]) -> Sequence[PortRecord] | None:
    """Return the ports of the nodes; None if they are no servers of this cloud."""
    if cluster.nodes is None:
        return None
    pairs: AddressPairs = cluster.sibling(AddressPairs, cluster.name, **cluster.nodes.choice)
    chosen = {port.id for port in pairs.chosen(run) or ()}
    return [port for port in ports if port.id in chosen]


def trunks(neutron: Service) -> Sequence[TrunkRecord] | None:
    """Return all visible trunks; None if Neutron has no trunks (extension trunk)."""
    try:
        return list_records(neutron, TrunkRecord)
    except NotFound:
        return None


def _around(
    run: CloudRun, cluster: ExposedCluster, nodes: Sequence[PortRecord] | None, paired: Collection[str]
) -> VisibleNodes | None:
    """Return the networks that virtual machines on bridges are attached to by way of the nodes."""
    settings = cluster.virtualization
    if settings is None or not nodes:
        return None
    neutron = run.admin.network
    wanted = [network.openstack_network for network in settings.networks if network.openstack_network]
    by: list[Values] = [{field: wanted} for field in ("name", "id")] if wanted else []
    networks = {each.id: each for query in by for each in list_records(neutron, NetworkRecord, **query)}
    here: Values = {"network_id": sorted(networks)}
    tagged = any(network.vlan for network in settings.networks) or any(bridge.vlan for bridge in settings.bridges)
    return VisibleNodes(
        cloud=run.admin.name,
        declared=paired,
        servers={node.device_id: node.name or node.device_id for node in nodes if node.device_id},
        networks=list(networks.values()),
        subnets=list_records(neutron, SubnetRecord, **here) if networks else [],
        ports=[*nodes, *(list_records(neutron, PortRecord, **here) if networks else ())],
        trunks=trunks(neutron) if tagged else [],
    )


# --- path -------------------------------------------------------------------------------------


def look(
    cloud: Cloud,
    spec: Spec,
    *,
    path: str = "SPEC",
    options: Sequence[str] = (),
    hosts: Path | None = None,
    running: Running | None = None,
    jobs: int = JOBS,
) -> PathReport:
    """Return the exposures of a spec: which address leads to what, and the state of each hop; only reads.

    ``path`` is the spec's file, and ``options`` are further words, for the commands in ``fix``; ``hosts`` is a hosts
    file to read before the resolver; ``running`` is what one of its clusters has. Raises SpecError when the spec has no
    exposed clusters; CloudError.
    """
    spec, run = open_run(cloud, spec, jobs)
    with cloud.reading():
        try:
            words = shell.join([*options, path])
            return examination_look(
                run, spec.resources, spec=spec.name, path=path, words=words, hosts=hosts, running=running
            )
        except SpecError as error:
            raise SpecError(spec.placed(error.mistakes)) from None
