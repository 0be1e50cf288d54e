"""The files by which a cluster answers at the addresses of its exposures.

Source: the pages of docs/external-access.md for each way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, SpecError
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, FromContext, Key, Observed, Resource
from openstack_prep.core.observed import owner_text
from openstack_prep.core.resource import resolve
from openstack_prep.exposures import external_ips, names, service_host, services, virtualization
from openstack_prep.exposures.cluster_fields import ClusterFields, declared_cluster
from openstack_prep.exposures.endpoint import Exposed, PlacedExposure, Way
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.machine_claims import MachineClaims
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.requirements import (
    IN_GROUPS,
    recordset_mistakes,
    route_mistakes,
    with_opened,
    with_recordsets,
)
from openstack_prep.exposures.rules import WITHOUT_ADDRESS
from openstack_prep.kubernetes import metallb
from openstack_prep.kubernetes.cilium import Cilium, announcement
from openstack_prep.kubernetes.cilium.announcement import OF_NAME, OF_NAMESPACE
from openstack_prep.kubernetes.cilium.settings import (
    DEFAULT,
    LAYER2_SINCE,
    CiliumLayer2,
    CiliumLoadBalancer,
    CiliumPool,
    minor,
)
from openstack_prep.kubernetes.service_pools import LabelExpression, LabelSelector
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.files.marked_files import MarkedFiles
from openstack_prep.resources.identity import home
from openstack_prep.resources.network.router import Router

# The pools from which a load balancer assigns the addresses of exposures: pure functions.
#
# A load balancer only assigns an address that a pool of it has. Sources: MetalLB 0.16.1,
# internal/allocator/allocator.go (Assign) and internal/config/config.go (pools must not overlap); Cilium 1.19,
# operator/pkg/lbipam/lbipam.go (findRangeOfIP, and the labels io.kubernetes.service.namespace and .name, by which a
# pool selects Services); kube-vip 1.2.3, pkg/instance/instance.go (FetchServiceAddresses: the annotation needs no
# pool).

FILES: Mapping[str, str] = {"metallb": "metallb-pool.yaml", "cilium": "cilium-pool.yaml"}
"""The files by way; kube-vip needs no pool."""
HEAD = "# Apply it unless a pool of the cluster has these addresses: pools must not overlap.\n"
ASSUMED = "1.19"
"""The release of Cilium if no cluster of the spec says it."""


def files(
    cluster: str, placed: Iterable[PlacedExposure], known: Sequence[Range], cilium: str | None = None
) -> dict[str, str]:
    """Return the pool of each load balancer; ``known`` are the addresses that pools of the spec's clusters have.

    ``cilium`` is the cluster's release of Cilium, on which the version of the resources depends.
    """
    found = {}
    wanting = [
        exposure
        for exposure in placed
        if exposure.address and exposure.exposure.target.service and not _is_in(exposure, known)
    ]
    for way, file in FILES.items():
        mine = [exposure for exposure in wanting if exposure.exposure.how == way]
        if mine:
            held = tuple(map(str, ranges.merged(Range.read(exposure.address) for exposure in mine if exposure.address)))
            name = f"{cluster}-exposures"
            documents = _metallb(name, held) if way == "metallb" else _cilium(name, held, mine, cilium or ASSUMED)
            head = (
                HEAD if cilium or way != "cilium" else f"{HEAD}# It is for Cilium {ASSUMED}: no cluster says another.\n"
            )
            found[file] = head + dump(*documents)
    return found


def _is_in(placed: PlacedExposure, known: Sequence[Range]) -> bool:
    return any(ip_address(placed.address or "") in each for each in known)


def _metallb(name: str, addresses: tuple[str, ...]) -> list[dict[str, object]]:
    """Return a pool that no other Service gets addresses of, announced by layer 2."""
    pool = metallb.MetalLBPool(name=name, addresses=addresses, auto_assign=False)
    return metallb.document(metallb.MetalLB(pools=(pool,)), {})


def _cilium(name: str, addresses: tuple[str, ...], placed: Sequence[PlacedExposure], version: str) -> list[Raw]:
    """Return a pool for these Services alone, announced by layer 2."""
    targets = [exposure.exposure.target for exposure in placed]
    mine = LabelSelector(
        match_expressions=(
            LabelExpression(
                key=OF_NAMESPACE, operator="In", values=tuple(sorted({target.namespace for target in targets}))
            ),
            LabelExpression(
                key=OF_NAME, operator="In", values=tuple(sorted({target.object_name for target in targets}))
            ),
        )
    )
    balancer = CiliumLoadBalancer(
        pools=(CiliumPool(name=name, addresses=addresses, service_selector=mine),),
        l2=CiliumLayer2(service_selector=mine) if minor(version) >= LAYER2_SINCE else None,
    )
    config = Cilium(cluster_id=1, version=version, mesh="none", kube_proxy_replacement=True, load_balancer=balancer)
    return [_named(document, name) for document in announcement.documents(config, {})]


def _named(document: Raw, name: str) -> Raw:
    """Return a document of its own name: a cluster may have a policy of the spec's cluster already."""
    return {**document, "metadata": {**document["metadata"], "name": name}}


# --- files and settings ----------------------------------------------------------------------


NEEDS: Mapping[Way, str] = {"service-host": "service_host", "external-ip": "external_ips", "bridge": "virtualization"}
"""The settings that a way needs, except for Services that lead to virtual machines."""


def file_texts(
    cluster: ClusterFields,
    placed: Sequence[PlacedExposure],
    before: Mapping[str, str],
    today: date,
    *,
    openly: bool = False,
    only_ready: bool = False,
    macs: Mapping[str, str] | None = None,
    pools: Sequence[Range] = (),
    cilium: str | None = None,
) -> dict[str, str]:
    """Return the texts of all files by name, with secrets as asterisks unless ``openly``.

    ``only_ready``: those that do not exist yet are asterisks, too; who only compares must not generate them.
    ``macs`` are MAC addresses that are reserved for machines of ``service_host``, by name.
    ``pools`` are the addresses that pools of load balancers in the spec have, ``cilium`` the release of Cilium.
    ``before`` are the existing files: zones take their serials from them, so that equal ones keep theirs.
    """
    found = services.files(placed) | files(cluster.name, placed, pools, cilium)
    if any(exposure.exposure.names for exposure in placed):
        found |= names.files(cluster.names, placed, previous=before, today=today)
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        on_openstack = cluster.router is not None
        found |= external_ips.files(
            cluster.external_ips, mine, on_openstack=on_openstack, openly=openly, only_ready=only_ready
        )
    if cluster.virtualization:
        found |= virtualization.files(cluster.virtualization, placed)
    if cluster.service_host and (mine := _by(placed, "service-host")):
        found |= service_host.files(cluster.service_host, mine, macs=macs, previous=before, today=today)
    return found


def settings_mistakes(
    cluster: ClusterFields, placed: Sequence[PlacedExposure], macs: Mapping[str, str] | None = None
) -> Iterator[Mistake]:
    """Yield all mistakes; their places are fields of the cluster."""
    yield from missing_settings(cluster, [exposure.exposure for exposure in placed])
    yield from _under("names", names.mistakes(cluster.names, placed))
    version = cluster.kubernetes_version
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        yield from _under("external_ips", external_ips.mistakes(cluster.external_ips, mine, version))
    if cluster.virtualization:
        yield from _under("virtualization", virtualization.mistakes(cluster.virtualization, placed))
    if cluster.service_host:
        mine = _by(placed, "service-host")
        yield from _under("service_host", service_host.mistakes(cluster.service_host, mine, macs))
        if (lacking := service_host.without_mac(cluster.service_host)) and not cluster.service_host.pool:
            what = f"{', '.join(lacking)} have no MAC addresses"
            fix = "set pool to a pool file for the cluster's network; or macs of each group, and mac"
            yield Mistake("service_host", what, fix)


def settings_warnings(cluster: ClusterFields, placed: Sequence[PlacedExposure]) -> Iterator[str]:
    """Yield warnings about valid settings."""
    version = cluster.kubernetes_version
    if cluster.external_ips and (mine := _by(placed, "external-ip")):
        yield from external_ips.warnings(cluster.external_ips, mine, version)
    if cluster.virtualization:
        yield from virtualization.warnings(cluster.virtualization, placed, version)
    if cluster.service_host:
        yield from service_host.warnings(cluster.service_host)


def _by(placed: Sequence[PlacedExposure], way: Way) -> list[PlacedExposure]:
    """Return the exposures of a way that lead to Services or hosts; virtual machines have their own files."""
    return [
        exposure for exposure in placed if exposure.exposure.how == way and not exposure.exposure.target.virtual_machine
    ]


def missing_settings(cluster: ClusterFields, exposures: Iterable[Exposed]) -> Iterator[Mistake]:
    """Yield the settings that exposures need and the cluster lacks."""
    for exposure in exposures:
        needed = "virtualization" if exposure.target.virtual_machine else NEEDS.get(exposure.how)
        if needed and getattr(cluster, needed) is None:
            what = f"is missing, and exposure {exposure.name} ({exposure.how}, {exposure.target}) needs it"
            yield Mistake(needed, what, "add it")


def _under(field: str, found: Iterator[Mistake]) -> Iterator[Mistake]:
    for mistake in found:
        yield replace(mistake, where=f"{field}.{mistake.where}" if mistake.where else field)


# --- exposed cluster --------------------------------------------------------------------------


@dataclass(frozen=True)
class ExposedResources(FromContext):
    """The related resources of a cluster with exposures."""

    exposures: tuple[Exposure, ...] = ()
    floating_ips: tuple[FloatingIP, ...] = ()
    """Those in its project."""
    pool_files: tuple[PoolFile, ...] = ()
    service_pools: tuple[Range, ...] = ()
    """The addresses of pools of load balancers in the spec."""
    cilium: str | None = None
    """The release of Cilium in the cluster, if the spec says it."""


@dataclass(frozen=True, kw_only=True)
class ExposedCluster(ClusterFields):
    """A cluster with exposures: the files that it needs for them, and its nodes in OpenStack if it has any there.

    The first line of each file is an ownership tag, and only the owner can read the file; a file without the tag is
    never overwritten. The line also names the file and has a digest of its folder, so that a copy is never deleted.
    Apply also opens what the exposures need in OpenStack: address pairs on the nodes' ports, rules
    in the security group ``open_in``, and attached floating IPs. The machines of ``service_host`` claim their addresses
    and MAC addresses in its ``pool``.
    """

    related: ExposedResources = field(default=ExposedResources(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    def resolve(self, context: Context) -> Sequence[Resource]:
        if self.related != ExposedResources():
            return (self,)
        mine = [each for each in self.of_project(context.declared(Exposure)) if each.cluster == self.name]
        folder = os.path.realpath(self.directory)
        others = (
            resource
            for resource in context.resources
            if resource.kind in (self.kind, "rke_cluster") and resource.key != self.key
        )
        shared = [resource for resource in others if os.path.realpath(getattr(resource, "directory", "")) == folder]
        if shared:
            what = f"directory {self.directory} is also used by {shared[0].key}"
            raise SpecError([self.mistake(what, "give each cluster its own", Code.SPEC_CONTRADICTION)])
        # the exposures as they will be looked up: with their pools
        exposures = [part for each in mine for part in each.resolve(context)]
        floating = tuple(self.of_project(context.declared(FloatingIP)))
        files, balanced = tuple(context.declared(PoolFile)), tuple(_of_balancers(context))
        related = ExposedResources(tuple(exposures), floating, files, balanced, _cilium_release(self, context))
        return (replace(self, related=related),)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        mine = [each for each in self.of_project(context.declared(Exposure)) if each.cluster == self.name]
        exposures = [part for each in mine for part in each.resolve(context)]
        yield from self._mistakes([each.expected(None) for each in exposures])
        routers = [router.name for router in self.of_project(context.declared(Router))]
        if self.router and self.router not in routers:
            what = f"router {self.router} is not in routers (they are: {', '.join(routers) or 'none'})"
            yield self.mistake(what, "declare it, or correct the name", Code.SPEC_UNRESOLVED)
        if self.router and not (self.external_ips and self.external_ips.static_routes):
            what = "router is set, but external_ips has no static_routes"
            yield self.mistake(what, "set static_routes: true, or remove router", Code.SPEC_CONTRADICTION)
        yield from self._machine_mistakes(context)
        yield from route_mistakes(self, context.declared(Router))
        for found in recordset_mistakes(self, mine, context.resources):
            yield self.mistake(f"{found.where}: {found.what}", found.fix, Code.SPEC_CONTRADICTION)

    def list_warnings(self, context: Context) -> Iterable[str]:
        mine = [each for each in self.of_project(context.declared(Exposure)) if each.cluster == self.name]
        yield from self._warnings_before_plan(mine)
        for each in mine:
            if each.allowed_cidrs and not (self.open_in and each.how in IN_GROUPS):
                why = "open_in is not set" if not self.open_in else f"how: {each.how} opens nothing there"
                what = f"allowed_cidrs of exposure {each.name} have no effect, because {why}"
                yield f"{what}; every client that reaches the address reaches the ports"

    def _warnings_before_plan(self, exposures: Sequence[Exposure]) -> Iterable[str]:
        """Yield the warnings that need no reserved address."""
        return settings_warnings(self, [each.placed(None) for each in exposures])

    def _machine_mistakes(self, context: Context) -> Iterator[Mistake]:
        """Yield what is wrong with the pool file of the machines."""
        name = self.service_host.pool if self.service_host else None
        files = context.declared(PoolFile)
        claims = machine_claims_in(self, files)
        if name and claims is None:
            known = ", ".join(each.name for each in files) or "none"
            what = f"service_host.pool {name} is not in pool_files (known: {known})"
            yield self.mistake(what, "declare it, or correct the name", Code.SPEC_UNRESOLVED)
        for found in claims.findings() if claims else ():
            yield self.mistake(*found)
        for cluster in context.declared(ExposedCluster) if claims else ():
            if cluster.name == self.name and cluster.key != self.key and machine_claims_in(cluster, files):
                what = f"{cluster.key.qualified} has the same name, by which pool files know their machines"
                yield self.mistake(what, "choose distinct names", Code.SPEC_CONTRADICTION)

    @property
    def machine_claims(self) -> MachineClaims | None:
        """The claims of its machines; None if no pool file has them."""
        return machine_claims_in(self, self.related.pool_files)

    def needs(self) -> Iterable[Key]:
        claims = self.machine_claims
        file = (claims.pool.key,) if claims else ()
        return (*super().needs(), *file, *self._floating_ips())

    def _floating_ips(self) -> list[Key]:
        """Return the keys of the floating IPs of its exposures."""
        floating = {each.floating_ip for each in self.related.exposures if each.floating_ip}
        return [self.key_of(FloatingIP.kind, each) for each in sorted(floating)]

    def outlives(self) -> Iterable[Key]:
        return (*self.follows(), *self._floating_ips())  # its other exposures still work

    def follows(self) -> Iterable[Key]:
        return tuple(each.key for each in self.related.exposures)

    def desired(self) -> Values:
        return {"directory": self.directory, "drift": frozenset()}

    # --- current state --------------------------------------------------------------------

    def files(self, run: CloudRun) -> MarkedFiles:
        """Return its files; their tag names the home project, which distinguishes specs with the same name."""
        head = f"# {home.file_ownership(run).describe(f'{self.kind}/{self.name}')}"
        return MarkedFiles(Path(self.directory), head, is_ours=partial(home.owns_file, run), placed=True)

    def placed(self, run: CloudRun) -> list[PlacedExposure] | None:
        """Return the exposures with what is reserved for them; None if something is not reserved yet."""
        found = []
        for each in self.related.exposures:
            claim, public = run.look(each), self.public_address(run, each)
            if claim is None or (each.floating_ip and public is None):
                return None
            found.append(each.placed(claim, public))
        return found

    def public_address(self, run: CloudRun, exposure: Exposure) -> str | None:
        """Return the address of the floating IP that leads to an exposure; None if it has none, or none yet."""
        floating = next(
            (floating_ip for floating_ip in self.related.floating_ips if floating_ip.name == exposure.floating_ip), None
        )
        found = run.look(floating) if floating else None
        return found.outputs.get("address") if found else None

    def find_one(self, run: CloudRun) -> Observed | None:
        there = self._is_there(run)
        drift = frozenset(self._drift(run))
        return self._observed(there, drift) if there or not drift else None

    def _is_there(self, run: CloudRun) -> bool:
        """Whether it has files, or claims of its machines from a run that was killed before it wrote the files."""
        claims = self.machine_claims
        return bool(self.files(run).there() or (claims and claims.held(run)))

    def _observed(self, there: bool, drift: frozenset[str]) -> Observed:
        values = self.desired() | {"drift": drift}
        outputs = {"directory": self.directory, "path": self.directory}
        return Observed(id=self.directory, ours=there, values=values, outputs=outputs)

    def _drift(self, run: CloudRun) -> Iterator[str]:
        """Yield how the files differ from the declaration."""
        placed, claims = self.placed(run), self.machine_claims
        differing = list(claims.drift(run)) if claims else []
        if placed is None or not _complete(placed):
            yield "addresses are not reserved yet"
        elif differing:
            yield from differing
        elif not list(settings_mistakes(self, placed)):
            files = self.files(run)
            texts, shown = (self._texts(run, placed, openly=openly, only_ready=True) for openly in (True, False))
            yield from files.drift(texts, shown)

    def _texts(
        self, run: CloudRun, placed: Sequence[PlacedExposure], *, openly: bool, only_ready: bool = False
    ) -> dict[str, str]:
        before = self.files(run).contents()
        macs = self._macs(run)
        options = {"openly": openly, "only_ready": only_ready}
        pools = self.related.service_pools
        cilium = self.related.cilium
        return file_texts(self, placed, before, date.today(), **options, macs=macs, pools=pools, cilium=cilium)

    def _macs(self, run: CloudRun) -> dict[str, str]:
        """Return the reserved MAC addresses of the machines."""
        claims = self.machine_claims
        return claims.macs(run) if claims else {}

    # --- checks ---------------------------------------------------------------------------

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        placed = self.placed(run) or [each.expected(run) for each in self.related.exposures]
        found = list(self._mistakes(placed))
        yield from found
        yield from claims.check(run) if (claims := self.machine_claims) else ()
        names = self._texts(run, placed, openly=False) if not found and _complete(placed) else ()
        for path in self.files(run).of_others(list(names)):
            what = f"{path} exists and is {owner_text(MarkedFiles.spec_of(path))}"
            yield self.mistake(what, "choose a different directory, or remove the file")

    def _mistakes(self, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
        for settings_mistake in settings_mistakes(self, placed):
            code = settings_mistake.code or Code.SPEC_CONTRADICTION
            yield self.mistake(
                f"{settings_mistake.where}: {settings_mistake.what}", settings_mistake.fix, code, settings_mistake.where
            )

    # --- operations -----------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        placed = self.placed(run)
        if placed is None or not _complete(placed):
            raise NotFound(f"{self.key}: an exposure has no address yet")
        if found := list(self._mistakes(placed)):
            raise SpecError(found)
        if claims := self.machine_claims:
            claims.claim(run, [pool_file for pool_file in self.related.pool_files if pool_file.key != claims.pool.key])
            run = run.fresh()  # the claims are read again
        self.files(run).write(self._texts(run, placed, openly=True))
        earlier = set(self._warnings_before_plan(self.related.exposures))
        for settings_warning in settings_warnings(self, placed):
            if settings_warning not in earlier:
                run.note(self.key, settings_warning)
        return self._observed(bool(self.files(run).there()), frozenset())

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        left = self.files(run).remove()
        if claims := self.machine_claims:
            claims.release(run)
        if left:
            run.note(self.key, f"{self.directory} is kept because it contains {', '.join(left)}")


def _of_balancers(context: Context) -> Iterator[Range]:
    """Yield the addresses of pools that clusters of the spec declare for their load balancers."""
    clusters = [resource for resource in context.resources if resource.kind == "rke_cluster"]
    if not clusters:
        return
    from openstack_prep.kubernetes.cluster.pool_addresses import served_pools  # with all of a cluster's files

    for resource in clusters:
        for cluster in resolve(resource, context):
            yield from (one for pool in served_pools(cluster) for one in pool.ranges)  # type: ignore[arg-type]


def _cilium_release(cluster: ClusterFields, context: Context) -> str | None:
    """Return the release of Cilium in the spec's own cluster with these nodes, as its files have it."""
    known = declared_cluster(cluster, context.resources)
    if known is None or known.cilium is None:
        return None
    release: str = known.cilium.version or DEFAULT[known.distribution]
    return release


def machine_claims_in(cluster: ClusterFields, files: Iterable[PoolFile]) -> MachineClaims | None:
    """Return the claims of a cluster's machines, which one of these pool files has; None if it names none of them."""
    name = cluster.service_host.pool if cluster.service_host else None
    return next((MachineClaims(cluster, file) for file in files if file.name == name), None)


def _complete(placed: Sequence[PlacedExposure]) -> bool:
    """Whether each exposure that needs an address has one."""
    return all(exposure.address or exposure.exposure.how in WITHOUT_ADDRESS for exposure in placed)


# --- derivation -------------------------------------------------------------------------------


def derive(resources: Sequence[Resource], values: Mapping[str, Any]) -> Iterator[tuple[Resource, Key]]:
    """Yield the resources of a spec with what each cluster's exposures need, which comes from that cluster."""
    found = list(resources)
    origins = {resource.key: resource.key for resource in resources}
    for cluster in (resource for resource in resources if isinstance(resource, ExposedCluster)):
        found = [*with_recordsets(with_opened(found, cluster), cluster)]
        for resource in found:
            origins.setdefault(resource.key, cluster.key)
    yield from ((resource, origins[resource.key]) for resource in found)
